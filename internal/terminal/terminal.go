// Package terminal is the one place where text of others is made safe to show: names and messages of objects, files and processes that
// somebody else chose.
//
// It decides which characters stand for themselves. One that a terminal acts upon, that hides, or that turns the direction of the text
// is spelled \u001b, as JSON spells it, so that text and JSON can go the same way. It does not decide what is shown, nor shorten it.
package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text makes a text safe that may have several lines: only line ends and tabs stand for themselves among the control characters.
func Text(s string) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case plain(r):
			b.WriteString(s[i : i+size])
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += size
	}
	return b.String()
}

// Line makes a text safe that is to stay on its line: a line end in it is spelled.
func Line(s string) string { return strings.ReplaceAll(Text(s), "\n", `\n`) }

// Below makes a text safe whose lines after the first are to be seen as its own: they are indented, by two blanks at least.
func Below(s string) string {
	lines := strings.Split(Text(s), "\n")
	for i, line := range lines {
		if i > 0 && line != "" && !strings.HasPrefix(line, "  ") {
			lines[i] = "  " + line
		}
	}
	return strings.Join(lines, "\n")
}

func clean(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return false
		} else if c >= utf8.RuneSelf {
			return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) })
		}
	}
	return true
}

// plain says of a character that it stands for itself. Two that join letters are needed to write some languages.
func plain(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	switch r {
	case '\n', '\t', nonJoiner, joiner:
		return true
	}
	return !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) && r != '\u2028' && r != '\u2029'
}

// Writer gives a writer that makes everything safe on its way to w.
func Writer(w io.Writer) io.Writer { return &writer{to: w} }

type writer struct {
	to io.Writer
	// begun is a character of which only the first bytes were written yet.
	begun []byte
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	text := append(w.begun, p...)
	whole := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if utf8.RuneStart(text[len(text)-back]) {
			if !utf8.FullRune(text[len(text)-back:]) {
				whole = len(text) - back
			}
			break
		}
	}
	w.begun = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(w.to, Text(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}
