package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/distribution/reference"
)

// checkRegistries wants prefixes of image references. Empty is present and says nothing: a converge then pushes nowhere, and pulls Kit
// images from their published home, as if the field were absent.
func checkRegistries(p *problems) {
	for _, registry := range []struct {
		path  string
		value *string
	}{{"registry", p.inst.Registry}, {"kitRegistry", p.inst.KitRegistry}} {
		if registry.value == nil || *registry.value == "" {
			continue
		}
		if why := registryProblem(*registry.value); why != "" {
			p.add(hintRegistry, registry.path, "%s", why)
		}
	}
}

// registryProblem says why a text makes no image references; one trailing slash is let pass, as everywhere.
func registryProblem(text string) string {
	shown := clip(RedactURL(text))
	prefix := strings.TrimSuffix(text, "/")
	host, rest, hasPath := strings.Cut(prefix, "/")
	last := prefix[strings.LastIndex(prefix, "/")+1:]
	switch {
	case hasUserinfo(text) && !strings.Contains(text, "@sha256:"):
		return fmt.Sprintf("%q carries a user or a password, which is refused: log in to the registry instead", shown)
	case strings.Contains(text, "://") || strings.ContainsAny(text, " \t\r\n@"):
		return fmt.Sprintf("%q is no prefix of image names: no scheme, no blanks, no digest", shown)
	case hasPath && strings.Contains(last, ":"):
		return fmt.Sprintf("%q is no prefix of image names: no tag", shown)
	case !hasPath && strings.Contains(host, ":") && !portFollows(host), hasPath && strings.Contains(rest, ":"):
		return fmt.Sprintf("%q is no prefix of image names: no tag, and a port is a number from 1 to 65535", shown)
	case hasPath && strings.Contains(host, ":") && !portFollows(host):
		return fmt.Sprintf("%q has no port from 1 to 65535", shown)
	}
	named, err := reference.ParseNormalizedNamed(prefix + "/x:y")
	if err != nil {
		return fmt.Sprintf("%q is no prefix of image names: %v", shown, err)
	}
	if _, tagged := named.(reference.Tagged); !tagged {
		return fmt.Sprintf("%q is no prefix of image names", shown)
	}
	return ""
}

// portFollows says whether a host that holds a colon ends with a port, or is an IPv6 address in brackets.
func portFollows(host string) bool {
	if strings.HasSuffix(host, "]") {
		return true
	}
	digits := host[strings.LastIndexByte(host, ':')+1:]
	port, err := strconv.ParseUint(digits, 10, 16)
	return err == nil && port > 0
}
