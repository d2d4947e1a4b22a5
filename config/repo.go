package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// A RepoAddress is what the url of a repository says.
type RepoAddress struct {
	// Scheme is "https", "http", "ssh", "git" or "local".
	Scheme string
	// Identity is the same for every spelling of one repository: "git.example.test/team/app".
	Identity string
	// Key names the repository in the cluster: a DNS label of at most 49 characters.
	Key string
}

// A Repo is a repository that a Workflow binds in code.
type Repo struct {
	// URL is the first spelling that the walk met.
	URL string `json:"url"`
	Ref string `json:"ref,omitempty"`

	Scheme   string `json:"scheme"`
	Identity string `json:"identity"`
	Key      string `json:"key"`
}

var (
	schemeForm = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://(.*)$`)
	scpForm    = regexp.MustCompile(`^(?:[^@/:]+@)?(\[[0-9A-Fa-f:.]+\]|[^@/:\[\]]+):(.+)$`)
	hostForm   = regexp.MustCompile(`^(?:[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?\.?|\[[0-9a-f:.]+\])$`)
	notSlug    = regexp.MustCompile(`[^a-z0-9]+`)
)

// ParseRepoURL reads the url of a repository: an https, http, ssh, git+ssh or git url, the scp form "[user@]host:path", a file:
// url or an absolute path.
func ParseRepoURL(text string) (RepoAddress, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return RepoAddress{}, errors.New("the url is empty")
	case strings.HasPrefix(text, "-"):
		return RepoAddress{}, fmt.Errorf("%q starts with a dash, which git would take for an option", shownURL(text))
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return RepoAddress{}, fmt.Errorf("%q holds a blank or a control character", shownURL(text))
	case strings.HasPrefix(text, "/"):
		return localAddress(text)
	}
	if m := schemeForm.FindStringSubmatch(text); m != nil {
		return schemeAddress(strings.ToLower(m[1]), m[2], text)
	}
	if rest, ok := cutPrefixFold(text, "file:"); ok {
		return schemeAddress("file", rest, text)
	}
	if m := scpForm.FindStringSubmatch(text); m != nil {
		return hostAddress("ssh", m[1], m[2], text)
	}
	return RepoAddress{}, fmt.Errorf("%q is no repository url: it names no host and is no absolute path", shownURL(text))
}

// shownURL is a url as a message may show it.
func shownURL(text string) string { return clip(RedactURL(text)) }

func schemeAddress(scheme, rest, text string) (RepoAddress, error) {
	if scheme == "git+ssh" {
		scheme = "ssh"
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	if i := strings.IndexAny(tail, "?#"); i >= 0 {
		tail = tail[:i]
	}
	switch scheme {
	case "file":
		if authority != "" && authority != "localhost" {
			return RepoAddress{}, fmt.Errorf("%q names a host, which a file: url cannot reach", shownURL(text))
		}
		plain, err := url.PathUnescape(tail)
		if err != nil || !strings.HasPrefix(plain, "/") {
			return RepoAddress{}, fmt.Errorf("%q is no absolute path", shownURL(text))
		}
		return localAddress(plain)
	case "https", "http", "ssh", "git":
		return hostAddress(scheme, authority[strings.LastIndex(authority, "@")+1:], tail, text)
	}
	return RepoAddress{}, fmt.Errorf("%q has the scheme %q; git reaches https, http, ssh, git+ssh, git and file", shownURL(text), clip(scheme))
}

func hostAddress(scheme, host, tail, text string) (RepoAddress, error) {
	host, port, err := splitPort(strings.ToLower(host))
	if err != nil || !hostForm.MatchString(host) {
		return RepoAddress{}, fmt.Errorf("%q names no host", shownURL(text))
	}
	if port == map[string]int{"ssh": 22, "https": 443, "http": 80, "git": 9418}[scheme] {
		port = 0
	}
	if port != 0 {
		host += ":" + strconv.Itoa(port)
	}
	segments := repoPath(tail)
	if len(segments) == 0 {
		return RepoAddress{}, fmt.Errorf("%q names no path on its host", shownURL(text))
	}
	return addressOf(scheme, host+"/"+strings.Join(segments, "/")), nil
}

// splitPort cuts ":<port>" off a host; port 0 means none was given.
func splitPort(authority string) (host string, port int, err error) {
	i := strings.LastIndexByte(authority, ':')
	if i < 0 || strings.HasSuffix(authority, "]") {
		return authority, 0, nil
	}
	digits := authority[i+1:]
	if digits == "" {
		return authority[:i], 0, nil
	}
	port, err = strconv.Atoi(digits)
	if err != nil || port < 1 || port > 65535 || digits[0] == '+' {
		return "", 0, errors.New("no port")
	}
	return authority[:i], port, nil
}

// repoPath normalises the path of a url: no empty and "." segments, ".." resolved, one trailing ".git" dropped.
func repoPath(tail string) []string {
	var segments []string
	for _, segment := range strings.Split(tail, "/") {
		switch segment {
		case "", ".":
		case "..":
			segments = segments[:max(len(segments)-1, 0)]
		default:
			segments = append(segments, segment)
		}
	}
	if n := len(segments); n > 0 {
		switch last := strings.TrimSuffix(segments[n-1], ".git"); last {
		case "":
			segments = segments[:n-1]
		case ".", "..": // "..git" is a name; "." and ".." are none
		default:
			segments[n-1] = last
		}
	}
	return segments
}

func localAddress(name string) (RepoAddress, error) {
	clean := path.Clean(name)
	if clean == "/" || strings.ContainsFunc(clean, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return RepoAddress{}, fmt.Errorf("%q is no path of a repository", shownURL(name))
	}
	return addressOf("local", clean), nil
}

func addressOf(scheme, identity string) RepoAddress {
	slug := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(path.Base(identity)), "-"), "-")
	if len(slug) > 40 {
		slug = strings.TrimRight(slug[:40], "-")
	}
	if slug == "" {
		slug = "repo"
	}
	return RepoAddress{Scheme: scheme, Identity: identity, Key: slug + "-" + shortHash(identity)}
}

// shortHash is the first 8 hex digits of the SHA-256 of a text.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

func cutPrefixFold(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return text[len(prefix):], true
}
