package clip_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"jr2.dev/jr2/internal/clip"
)

func TestTextIsBounded(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"ana@laptop":                   "ana@laptop",
		"a\xffb":                       "a\uFFFDb",
		strings.Repeat("x", 200):       strings.Repeat("x", 200),
		strings.Repeat("x", 201):       strings.Repeat("x", 200) + "… (201 bytes)",
		strings.Repeat("ä", 150):       strings.Repeat("ä", 100) + "… (300 bytes)",
		"x" + strings.Repeat("ä", 150): "x" + strings.Repeat("ä", 99) + "… (301 bytes)",
	} {
		if got := clip.Text(text); got != want {
			t.Errorf("%.20q: %q", text, got)
		}
	}
	for _, bytes := range []string{strings.Repeat("\x80", 1<<20), strings.Repeat("\xf0\x9f", 300)} {
		if got := clip.Text(bytes); len(got) > 3*clip.Most+30 || !utf8.ValidString(got) {
			t.Errorf("%d bytes of %q", len(got), got[:10])
		}
	}
}
