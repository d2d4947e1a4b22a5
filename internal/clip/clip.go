// Package clip bounds text that somebody else wrote before it goes into an error, an event or a result.
package clip

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Most is how many bytes of a text Text keeps.
const Most = 200

// Text is the text, or its beginning and how long it is. What is no UTF-8 is replaced. It escapes nothing: that is done where text is shown.
func Text(s string) string {
	if len(s) <= Most {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	end := Most
	for end > Most-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(s[:end], "\uFFFD"), len(s))
}
