package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"jr2.dev/jr2/internal/terminal"
)

var (
	urlUser   = regexp.MustCompile("([A-Za-z][A-Za-z0-9+.-]*)://([^\\s\"'`<>]*)@")
	plainUser = regexp.MustCompile(`^([^/\s:@]+):(\S*)@`)
	hostPort  = regexp.MustCompile(`^(\[[0-9A-Fa-f:.]+\]|[^:@\s]*)(:[0-9]*)?$`)
)

// RedactURL masks the password of an address as net/url's Redacted does, "https://me:xxxxx@host/path", also where the address does
// not parse or has no scheme. A user without a password is masked for https and http, where it is most often a token. Any other text
// comes back as it is.
func RedactURL(address string) string {
	if strings.Contains(address, "://") {
		return redactText(address)
	}
	return plainUser.ReplaceAllString(address, "${1}:xxxxx@")
}

// redactText masks the passwords of all URLs in a text.
func redactText(text string) string {
	return urlUser.ReplaceAllStringFunc(text, func(found string) string {
		m := urlUser.FindStringSubmatch(found)
		scheme, user := m[1], m[2]
		if host, _, isPath := strings.Cut(user, "/"); isPath && hostPort.MatchString(host) {
			return found // the "@" stands in the path
		}
		if name, _, secret := strings.Cut(user, ":"); secret {
			return scheme + "://" + name + ":xxxxx@"
		}
		if strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http") {
			return scheme + "://xxxxx@"
		}
		return found
	})
}

// hasUserinfo says whether an address carries a user or a password before its host.
func hasUserinfo(address string) bool {
	_, rest, ok := strings.Cut(address, "://")
	if !ok {
		rest = address
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return strings.Contains(rest, "@") || RedactURL(address) != address
}

// oneLine keeps a text on its line, and masks passwords of URLs.
func oneLine(text string) string { return terminal.Line(redactText(text)) }

// fileName spells the name of a file: as it is, or quoted when it holds what would break a line.
func fileName(name string) string {
	if terminal.Line(name) != name {
		return strconv.QuoteToASCII(name)
	}
	return name
}

// A lineError is an error whose text would take more than one line.
type lineError struct{ err error }

func (e *lineError) Error() string { return oneLine(e.err.Error()) }
func (e *lineError) Unwrap() error { return e.err }

// asLine spells an error on one line, or each of several on its own.
func asLine(err error) error {
	if several, ok := err.(*faults); ok {
		lines := make([]error, len(several.errs))
		for i, one := range several.errs {
			lines[i] = asLine(one)
		}
		return &faults{lines}
	}
	if err == nil || oneLine(err.Error()) == err.Error() {
		return err
	}
	return &lineError{err}
}

// userinfoProblem is the refusal of an address with a user or password; its text never shows the password.
func userinfoProblem(address string) string {
	return fmt.Sprintf("%q carries a user or a password, which is refused: it would be written in the clear", clip(RedactURL(address)))
}
