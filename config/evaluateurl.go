package config

import (
	"net/url"
	"strings"
)

func repoProblem(text string) string {
	if _, err := ParseRepoURL(text); err != nil {
		return err.Error()
	}
	return ""
}

// parseURL is what the URL class of the evaluator stands on; nil means invalid.
func parseURL(text, base string) map[string]any {
	u, err := url.Parse(strings.TrimSpace(text))
	if err == nil && base != "" {
		var b *url.URL
		if b, err = url.Parse(base); err == nil {
			u = b.ResolveReference(u)
		}
	}
	if err != nil || u.Scheme == "" || (u.Host == "" && u.Opaque == "" && u.Scheme != "file") {
		return nil
	}
	u.Host = strings.ToLower(u.Host)
	port := u.Port()
	if port == map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}[u.Scheme] {
		u.Host, port = strings.TrimSuffix(u.Host, ":"+port), ""
	}
	if u.Host != "" && u.Path == "" {
		u.Path = "/"
	}
	pathname := u.EscapedPath()
	if u.Opaque != "" {
		pathname = u.Opaque
	}
	prefixed := func(mark, text string) string {
		if text == "" {
			return ""
		}
		return mark + text
	}
	password, _ := u.User.Password()
	origin := "null"
	if u.Host != "" && u.Scheme != "file" {
		origin = u.Scheme + "://" + u.Host
	}
	return map[string]any{
		"href": u.String(), "protocol": u.Scheme + ":", "host": u.Host, "hostname": strings.TrimSuffix(u.Host, ":"+port),
		"port": port, "pathname": pathname, "search": prefixed("?", u.RawQuery), "hash": prefixed("#", u.EscapedFragment()),
		"origin": origin, "username": u.User.Username(), "password": password,
	}
}
