package config_test

import (
	"testing"

	"jr2.dev/jr2/config"
)

func TestParseHost(t *testing.T) {
	for entry, want := range map[string]string{
		"API.Test.":                "api.test:443",
		"api.test:8443":            "api.test:8443",
		"https://Api.test/v1?x=1":  "api.test:443",
		"https://api.test:8443/v1": "api.test:8443",
		"[2001:DB8:0::1]:99":       "[2001:db8::1]:99",
		"2001:db8:0:0::1":          "[2001:db8::1]:443",
		"10.0.0.1:80":              "10.0.0.1:80",
		"https://[::1]":            "[::1]:443",
	} {
		got, err := config.ParseHost(entry)
		if err != nil || got.String() != want {
			t.Errorf("%s: got %v %v, want %s", entry, got, err, want)
		}
	}
	for _, entry := range []string{"", "*.test", "u@h.test", "https://u:p@h.test", "http://h.test", "h.test/v1", "h.test:0", "h.test:65536", "h.test:", "[1.2.3.4]:1", "fe80::1%eth0", "h test", "-h", "h..x", "https://"} {
		if got, err := config.ParseHost(entry); err == nil {
			t.Errorf("%q is taken as %v", entry, got)
		}
	}
}
