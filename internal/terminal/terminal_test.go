package terminal_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"jr2.dev/jr2/internal/terminal"
)

func TestCharactersThatDoSomethingAreSpelled(t *testing.T) {
	for in, want := range map[string]string{
		"plain, größe — 漢字 👩‍💻": "plain, größe — 漢字 👩‍💻", "a\x1b[2Jb": `a\u001b[2Jb`, "a\rb": `a\u000db`, "\x07\x00\x7f": `\u0007\u0000\u007f`,
		"\u009b31m": `\u009b31m`, "x\u202ey": `x\u202ey`, "\u2066\u2069\u200e\u061c": `\u2066\u2069\u200e\u061c`, "\u200b\ufeff\u2060": `\u200b\ufeff\u2060`,
		"\u2028\u2029": `\u2028\u2029`, "bad\xff\xc3": `bad\xff\xc3`, "two\nlines\tand a tab": "two\nlines\tand a tab", "\U000e0041": `\udb40\udc41`,
	} {
		if got := terminal.Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
		if again := terminal.Text(terminal.Text(in)); again != want {
			t.Errorf("Text of Text(%q) = %q: it is not to be spelled twice", in, again)
		}
	}
	if got := terminal.Line("a\nb\r\n"); got != `a\nb\u000d\n` {
		t.Errorf("Line: %q", got)
	}
	if got := terminal.Below("error: a\nerror: b\n  c\n"); got != "error: a\n  error: b\n  c\n" {
		t.Errorf("Below: %q", got)
	}
}

// TestJSONStaysJSON: what the writer spells in a document of JSON means the same.
func TestJSONStaysJSON(t *testing.T) {
	const nasty = "\u202e\u009b\x7f\x1b\u2028\U000e0041 \"\\"
	text, err := json.Marshal(map[string]string{nasty: nasty})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if _, err := terminal.Writer(&out).Write(text); err != nil {
		t.Fatal(err)
	}
	var back map[string]string
	if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back[nasty] != nasty {
		t.Errorf("%s: %v, %q", out.String(), err, back)
	}
}

func FuzzWriter(f *testing.F) {
	f.Add("größe\x1b[0m", 3)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		cut = max(0, min(cut, len(text)))
		var out strings.Builder
		w := terminal.Writer(&out)
		for _, part := range []string{text[:cut], text[cut:], "\n"} {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if got, want := out.String(), terminal.Text(text+"\n"); got != want {
			t.Errorf("in two parts %q, in one %q", got, want)
		}
		if !utf8.ValidString(out.String()) || strings.ContainsAny(out.String(), "\x1b\r\x00\x7f\u202e") {
			t.Errorf("%q", out.String())
		}
	})
}
