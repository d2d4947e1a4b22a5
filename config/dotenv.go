package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"jr2.dev/jr2/internal/folder"
)

// EnvFile is the name of the environment file beside jr2.config.ts.
const EnvFile = ".env"

const maxEnvFile = 1 << 20

// An Assignment is one line of a .env file.
type Assignment struct {
	Name  string
	Value Secret
}

// ReadDotEnv reads a .env file. A file that does not exist has no assignments; that is no error. Lines that do not parse are
// skipped. A file over 1 MiB, one that is no regular file, and a link that leads out of the file's folder are errors.
func ReadDotEnv(path string) ([]Assignment, error) {
	dir, err := folder.Open(filepath.Dir(path))
	if err == nil {
		defer dir.Close()
		var text []byte
		if text, err = dir.ReadFile(filepath.Base(path), maxEnvFile); err == nil {
			return ParseDotEnv(string(text)), nil
		}
	}
	switch {
	case os.IsNotExist(err):
		return nil, nil
	case errors.Is(err, folder.ErrOutside):
		return nil, fmt.Errorf("%s: is a link that leads out of its folder — put the file there", path)
	case errors.Is(err, folder.ErrNotRegular), errors.Is(err, folder.ErrTooLarge):
		return nil, fmt.Errorf("%s: want a regular file of at most %s", path, FormatMemory(maxEnvFile))
	}
	return nil, err
}

// ParseDotEnv reads the text of a .env file.
//
// The grammar is the one that Instances are written for, and no library has it exactly: godotenv expands $NAME and fails on a line
// that does not parse, gotenv unescapes inside single quotes, and both know escapes that these files keep as written.
//
//	[export ]KEY = 'literal' | "escapes \n \r \t \" \' \\" | bare until # or the end of the line
//
// Quoted values may span lines; a quote that is never closed makes its line one that does not parse.
func ParseDotEnv(text string) []Assignment {
	text = strings.TrimPrefix(text, "\uFEFF")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var out []Assignment
	for text != "" {
		assignment, rest, ok := parseAssignment(text)
		if !ok {
			_, rest, _ = strings.Cut(text, "\n")
		} else {
			out = append(out, assignment)
		}
		text = rest
	}
	return out
}

func parseAssignment(text string) (a Assignment, rest string, ok bool) {
	text = strings.TrimLeft(text, " \t")
	if after, found := strings.CutPrefix(text, "export"); found && after != strings.TrimLeft(after, " \t") {
		text = strings.TrimLeft(after, " \t")
	}
	n := 0
	for n < len(text) && isKeyByte(text[n], n == 0) {
		n++
	}
	if n == 0 {
		return a, "", false
	}
	a.Name, text = text[:n], strings.TrimLeft(text[n:], " \t")
	text, ok = strings.CutPrefix(text, "=")
	if !ok {
		return a, "", false
	}
	text = strings.TrimLeft(text, " \t")
	if text != "" && (text[0] == '\'' || text[0] == '"') {
		return parseQuoted(a, text)
	}
	line, rest, _ := strings.Cut(text, "\n")
	line, _, _ = strings.Cut(line, "#")
	a.Value = NewSecret(strings.TrimRight(line, " \t\r"))
	return a, rest, true
}

func parseQuoted(a Assignment, text string) (Assignment, string, bool) {
	quote, end := text[0], 1
	for end < len(text) && text[end] != quote {
		if quote == '"' && text[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(text) {
		return a, "", false
	}
	value := text[1:end]
	if quote == '"' {
		value = unescape(value)
	}
	tail, rest, _ := strings.Cut(text[end+1:], "\n")
	if tail = strings.TrimLeft(tail, " \t\r"); tail != "" && tail[0] != '#' {
		return a, "", false
	}
	a.Value = NewSecret(value)
	return a, rest, true
}

func unescape(value string) string {
	return strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t", `\"`, `"`, `\'`, `'`, `\\`, `\`).Replace(value)
}

func isKeyByte(c byte, first bool) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || !first && '0' <= c && c <= '9'
}

// MergeEnv lays a .env file under the environment of the shell: a name that the shell has, even with an empty value, keeps the
// shell's value. Of a name that the file gives twice the last value counts. applied holds the names that came from the file, each
// once, in the order of the file; it never holds values.
func MergeEnv(file []Assignment, shell map[string]string) (merged map[string]string, applied []string) {
	merged = make(map[string]string, len(shell)+len(file))
	for _, a := range file {
		if _, taken := shell[a.Name]; taken {
			continue
		}
		if _, seen := merged[a.Name]; !seen {
			applied = append(applied, a.Name)
		}
		merged[a.Name] = a.Value.Reveal()
	}
	for name, value := range shell {
		merged[name] = value
	}
	return merged, applied
}
