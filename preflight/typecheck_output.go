package preflight

import (
	"bytes"
	"fmt"
	"strings"
)

// outputLimit bounds what is kept of one output of the compiler, in bytes. A wrong type in one place can be thousands of lines.
const outputLimit = 64 << 10

// boundedOutput keeps the start of what is written to it and counts the rest. The zero value is ready.
type boundedOutput struct {
	kept bytes.Buffer
	cut  int
}

// Write never fails: a compiler that may not write would end with an error of its own.
func (b *boundedOutput) Write(p []byte) (int, error) {
	room := min(outputLimit-b.kept.Len(), len(p))
	b.kept.Write(p[:room])
	b.cut += len(p) - room
	return len(p), nil
}

// lines returns what was kept, without blanks around it, and a last line about what was not.
func (b *boundedOutput) lines() []string {
	text := strings.TrimSpace(strings.ToValidUTF8(b.kept.String(), "\uFFFD"))
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, "\r")
	}
	if b.cut > 0 {
		lines = append(lines, fmt.Sprintf("… (%d more bytes)", b.cut))
	}
	return lines
}
