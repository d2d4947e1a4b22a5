package apply_test

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"jr2.dev/jr2/apply"
)

func TestGenerators(t *testing.T) {
	t.Parallel()
	bytesOf := func(decode func(string) ([]byte, error), n int) func(string) error {
		return func(s string) error {
			b, err := decode(s)
			if err == nil && len(b) != n {
				err = fmt.Errorf("%d bytes", len(b))
			}
			return err
		}
	}
	raw := func(s string) ([]byte, error) { return []byte(s), nil }
	word := func(n int) func(string) error {
		return func(s string) error {
			if !regexp.MustCompile(fmt.Sprintf(`^[a-km-zA-HJ-NP-Z2-9]{%d}$`, n)).MatchString(s) || !strings.ContainsAny(s, "23456789") ||
				strings.ToLower(s) == s || strings.ToUpper(s) == s {
				return fmt.Errorf("%q", s)
			}
			return nil
		}
	}
	for _, tt := range []struct {
		text, canonical string
		check           func(string) error
	}{
		{"hex:32", "hex:32", bytesOf(hex.DecodeString, 32)},
		{"hex", "hex:32", bytesOf(hex.DecodeString, 32)},
		{"hex:4096", "hex:4096", bytesOf(hex.DecodeString, 4096)},
		{"bytes:16", "bytes:16", bytesOf(raw, 16)},
		{"base64:33", "base64:33", bytesOf(base64.StdEncoding.DecodeString, 33)},
		{"base64url:32", "base64url:32", bytesOf(base64.RawURLEncoding.DecodeString, 32)},
		{"password", "password:24", word(24)},
		{"password:16", "password:16", word(16)},
		{"uuid", "uuid", func(s string) error {
			id, err := uuid.Parse(s)
			if err == nil && id.Version() != 4 {
				err = fmt.Errorf("version %d", id.Version())
			}
			return err
		}},
		{"ed25519", "ed25519", pemKey},
		{"rsa", "rsa:4096", nil}, // making one takes long
		{"rsa:2048", "rsa:2048", pemKey},
	} {
		g, err := apply.ParseGenerator(tt.text)
		if err != nil || g.String() != tt.canonical {
			t.Errorf("%s: %v, %v", tt.text, g, err)
			continue
		}
		var again apply.Generator
		text, err := json.Marshal(g)
		if err == nil {
			err = json.Unmarshal(text, &again)
		}
		if err != nil || again != g {
			t.Errorf("%s: as JSON %s: %v, %v", tt.text, text, again, err)
		}
		seen := map[string]bool{}
		for range 20 {
			if tt.check == nil || strings.HasPrefix(tt.text, "rsa") && len(seen) == 1 {
				break
			}
			value, err := g.Generate()
			if err == nil {
				err = tt.check(string(value))
			}
			if err != nil || seen[string(value)] {
				t.Errorf("%s: %v, made before: %t", tt.text, err, seen[string(value)])
			}
			seen[string(value)] = true
		}
	}
	if _, err := (apply.Generator{}).Generate(); err == nil {
		t.Error("the zero Generator made a value")
	}
}

func pemKey(s string) error {
	block, rest := pem.Decode([]byte(s))
	if block == nil || block.Type != "PRIVATE KEY" || len(rest) > 0 {
		return fmt.Errorf("no PEM of one private key")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if k, ok := key.(*rsa.PrivateKey); ok && k.N.BitLen() != 2048 {
		return fmt.Errorf("%d bits", k.N.BitLen())
	}
	return err
}

func TestParseGeneratorRefusesWithoutRepeating(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "hunter2", "hex:", "hex:15", "hex:4097", "hex:032", "hex:+32", "hex: 32", "hex:32:1", "HEX:32", "uuid:4", "ed25519:1",
		"rsa:1024", "rsa:2049", "rsa:hunter2", "password:8", "password:hunter2"} {
		_, err := apply.ParseGenerator(text)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
