package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/term"

	"jr2.dev/jr2"
	"jr2.dev/jr2/config"
)

// generateKey is the word of --deploy-key for a key that is made; every other one is a path.
const generateKey = "generate"

// askForKeys has the source of deploy keys told by --deploy-key, else chosen on the terminal. --yes, and having nobody to ask, are the library's.
func (u *up) askForKeys(ctx context.Context) {
	if u.deployKey != "" {
		source := jr2.DeployKeySource{File: fromHome(u.deployKey)}
		if u.deployKey == generateKey {
			source = jr2.DeployKeySource{Generate: true}
		}
		u.options.DeployKey = func(context.Context, jr2.DeployKeyRequest) (jr2.DeployKeySource, error) { return source, nil }
		return
	}
	tty := terminalOf(u.streams)
	if tty == nil || u.options.Yes {
		return
	}
	menu := keyMenu{in: tty, out: u.streams.Err}
	u.options.DeployKey = menu.ask
	tell := u.options.Events
	u.options.Events = func(e jr2.Event) {
		tell(e)
		if made, ok := e.(jr2.DeployKeyMade); ok && made.Generated {
			menu.line(ctx, "press Enter when it is added, or to go on without: ") //nolint:errcheck // the converge sees that ctx ended
		}
	}
}

// A keyMenu asks on a terminal where a deploy key comes from.
type keyMenu struct {
	in  *os.File
	out io.Writer
}

// A keyChoice is one line of the menu.
type keyChoice struct {
	text string
	// source asks further where it has to; the zero source declines.
	source func(context.Context) (jr2.DeployKeySource, error)
}

// ask shows the menu until a source does, or none is chosen.
func (m keyMenu) ask(ctx context.Context, request jr2.DeployKeyRequest) (jr2.DeployKeySource, error) {
	for {
		choices, unfit := m.choices(ctx)
		fmt.Fprintf(m.out, "where is the key in Secret %q to come from?\n", request.Secret)
		for i, choice := range choices {
			fmt.Fprintf(m.out, "  %d  %s\n", i+1, choice.text)
		}
		for _, line := range unfit {
			fmt.Fprintf(m.out, "     %s\n", line)
		}
		answer, err := m.line(ctx, fmt.Sprintf("1 to %d, or anything else to stop: ", len(choices)))
		if err != nil {
			return jr2.DeployKeySource{}, err
		}
		n, err := strconv.Atoi(answer)
		if err != nil || n < 1 || n > len(choices) {
			return jr2.DeployKeySource{}, nil
		}
		source, err := choices[n-1].source(ctx)
		if err != nil || source == (jr2.DeployKeySource{}) {
			return source, err
		}
		if _, err := source.Fingerprint(ctx); err == nil {
			return source, nil
		} else {
			fmt.Fprintf(m.out, "that does not do: %v\n", err)
		}
	}
}

// choices are what can be chosen, and lines about keys of this machine that can't.
func (m keyMenu) choices(ctx context.Context) (choices []keyChoice, unfit []string) {
	fixed := func(source jr2.DeployKeySource) func(context.Context) (jr2.DeployKeySource, error) {
		return func(context.Context) (jr2.DeployKeySource, error) { return source, nil }
	}
	choices = []keyChoice{{"generate one that nothing else uses (recommended)", fixed(jr2.DeployKeySource{Generate: true})}}
	for _, file := range filesOf(fromHome("~/.ssh")) {
		source := jr2.DeployKeySource{File: file}
		print, err := source.Fingerprint(ctx)
		switch {
		case err == nil:
			choices = append(choices, keyChoice{file + " — " + print, fixed(source)})
		case errors.Is(err, jr2.ErrPassphrase):
			unfit = append(unfit, file+" can't be used: it has a passphrase")
		}
	}
	return append(choices, keyChoice{"another private key of this machine", m.path}, keyChoice{"paste a private key", m.paste}), unfit
}

// filesOf lists the plain files of a folder; none where it can't be read.
func filesOf(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var files []string
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			files = append(files, path)
		}
	}
	return files
}

// fromHome puts the home of the user in the place of a "~" that no shell replaced.
func fromHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	home, err := os.UserHomeDir()
	if !ok || err != nil {
		return path
	}
	return filepath.Join(home, rest)
}

func (m keyMenu) path(ctx context.Context) (jr2.DeployKeySource, error) {
	answer, err := m.line(ctx, "its path: ")
	return jr2.DeployKeySource{File: fromHome(answer)}, err
}

// line reads the answer to a question.
func (m keyMenu) line(ctx context.Context, question string) (string, error) {
	return ask(ctx, m.in, m.out, question)
}

// paste reads a key that the terminal does not show.
func (m keyMenu) paste(ctx context.Context) (jr2.DeployKeySource, error) {
	before, err := term.MakeRaw(int(m.in.Fd()))
	if err != nil {
		return jr2.DeployKeySource{}, fmt.Errorf("the terminal can't be kept from showing the key: %w", err)
	}
	defer term.Restore(int(m.in.Fd()), before)                                                                              //nolint:errcheck // nothing better is left to do
	fmt.Fprint(m.out, "paste it, to the line end after its last line; nothing is shown (Ctrl-D ends it, Ctrl-C stops)\r\n") // in this state a terminal returns by "\r" alone
	text, err := readKey(ctx, m.in)
	if err != nil || strings.TrimSpace(text) == "" {
		return jr2.DeployKeySource{}, err
	}
	return jr2.DeployKeySource{Key: config.NewSecret(text)}, nil
}

const (
	ctrlC = 0x03
	ctrlD = 0x04
	// longestKey bounds what is pasted, in bytes.
	longestKey = 64 << 10
)

// readKey reads a private key byte by byte, so that nothing after it is taken: to the end of the line that closes it, or Ctrl-D. Ctrl-C gives none. It
// gives up when ctx ends, as readLine does.
func readKey(ctx context.Context, in io.Reader) (string, error) {
	return untilDone(ctx, func() (string, error) {
		var text []byte
		one := make([]byte, 1)
		for {
			_, err := in.Read(one)
			switch {
			case errors.Is(err, io.EOF), err == nil && one[0] == ctrlD:
				return plainText(text), nil
			case err != nil:
				return "", err
			case one[0] == ctrlC:
				return "", nil
			}
			text = append(text, one[0])
			if (one[0] == '\r' || one[0] == '\n') && closes(text) || len(text) > longestKey {
				return plainText(text), nil
			}
		}
	})
}

// closes says that the last line is the end of a private key.
func closes(text []byte) bool {
	lines := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\r' || r == '\n' })
	if len(lines) == 0 {
		return false
	}
	last := strings.TrimSpace(lines[len(lines)-1])
	return strings.HasPrefix(last, "-----END ") && strings.HasSuffix(last, "PRIVATE KEY-----")
}

// plainText has the line ends of a text, and none of the marks that some terminals put around what is pasted.
func plainText(text []byte) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x1b[200~", "", "\x1b[201~", "").Replace(string(text))
}
