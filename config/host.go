package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$`)

// A HostPort is where a held secret may be sent. Host is in normal form: lower case, no trailing dot, no brackets, IPv6 compressed.
type HostPort struct {
	Host string
	Port int
}

func (h HostPort) String() string {
	if strings.Contains(h.Host, ":") {
		return fmt.Sprintf("[%s]:%d", h.Host, h.Port)
	}
	return fmt.Sprintf("%s:%d", h.Host, h.Port)
}

// ParseHost reads a host entry of a held secret: "host", "host:port", "[v6]:port", a bare IPv6 literal, or an https:// URL, of which
// host and port count and the path is ignored. The port is 443 when none is given.
func ParseHost(entry string) (HostPort, error) {
	text, shown := entry, clip(RedactURL(entry))
	if hasUserinfo(entry) {
		return HostPort{}, fmt.Errorf("%q carries a user or a password, which is refused", shown)
	}
	if _, ok := cutPrefixFold(entry, "https://"); ok {
		u, err := url.Parse(entry)
		if err != nil || u.Host == "" {
			return HostPort{}, fmt.Errorf("%q is no https url of a host", shown)
		}
		text = strings.TrimSuffix(u.Host, ":")
	} else if strings.Contains(entry, "://") {
		return HostPort{}, fmt.Errorf("%q has a scheme other than https", shown)
	}
	host, port, err := splitHostPort(text)
	if err != nil {
		return HostPort{}, fmt.Errorf("%q is no host: %w", shown, err)
	}
	return HostPort{host, port}, nil
}

func splitHostPort(text string) (string, int, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return bareAddress(address, 443)
	}
	host, port := text, 443
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
		n, err := strconv.ParseUint(text[i+1:], 10, 16)
		if err != nil || n == 0 {
			return "", 0, errors.New("the port is none of 1 to 65535")
		}
		host, port = text[:i], int(n)
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		address, err := netip.ParseAddr(inner)
		if !ok || err != nil || !address.Is6() {
			return "", 0, errors.New("brackets hold an IPv6 address")
		}
		return bareAddress(address, port)
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if !hostName.MatchString(host) || len(host) > 253 {
		return "", 0, errors.New("want a host name without wildcard, user and path")
	}
	return host, port, nil
}

func bareAddress(address netip.Addr, port int) (string, int, error) {
	if address.Zone() != "" {
		return "", 0, errors.New("an address with a zone means something on one machine only")
	}
	return address.String(), port, nil
}
