package config_test

import (
	"strings"
	"testing"

	"jr2.dev/jr2/config"
)

func FuzzDotEnv(f *testing.F) {
	for _, seed := range []string{"A=1", "export A='x\ny'\n", "A=\"\\\"", "\uFEFF=\n=\n", "A=\"x\" # y\r\nB=#"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, a := range config.ParseDotEnv(text) {
			if a.Name == "" || strings.ContainsAny(a.Name, " \n=") || !a.Value.Present() {
				t.Errorf("%q gives %q", text, a.Name)
			}
		}
	})
}

// FuzzQuantity: what is printed reads back as the same number.
func FuzzQuantity(f *testing.F) {
	for _, seed := range []string{"1", "1.5Gi", ".1m", "999999999999999999999E", "1e9", "0x1", "  3Ki "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := config.ParseMemory(text); err == nil {
			if again, err := config.ParseMemory(config.FormatMemory(n)); err != nil || again != n || n <= 0 {
				t.Errorf("%q: %d, then %d %v", text, n, again, err)
			}
		}
		if n, err := config.ParseCPU(text); err == nil {
			if again, err := config.ParseCPU(config.FormatCPU(n)); err != nil || again != n || n <= 0 {
				t.Errorf("%q: %d, then %d %v", text, n, again, err)
			}
		}
	})
}

// FuzzRepoURL: an identity is its own identity, and a key is a DNS label of at most 49 characters.
func FuzzRepoURL(f *testing.F) {
	for _, seed := range []string{"https://h.test/o/r.git", "git@h:o/r", "ssh://u@[::1]:22/x", "file:///a%2e%2e/b", "/a/../b", "https://h/..", "https://h.test:443//.git/.git", "0:#"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := config.ParseRepoURL(text)
		if err != nil {
			return
		}
		if len(a.Key) > 49 || strings.Trim(a.Key, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.HasPrefix(a.Key, "-") {
			t.Errorf("%q has the key %q", text, a.Key)
		}
		url := a.Identity
		if a.Scheme != "local" {
			url = a.Scheme + "://" + a.Identity
		}
		if !strings.HasSuffix(a.Identity, ".git") && !strings.ContainsAny(a.Identity, "?# ") { // the scp form knows no query; a file: url may encode a blank
			if again, err := config.ParseRepoURL(url); err != nil || again.Identity != a.Identity {
				t.Errorf("%q: %q, then %q %v", text, a.Identity, again.Identity, err)
			}
		}
	})
}
