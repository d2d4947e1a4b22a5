package render

import (
	"encoding/base64"
	"encoding/hex"
	"reflect"
	"testing"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
)

func TestMintedKeys(t *testing.T) {
	keys := InstanceSecretKeys()
	if len(keys) != 2 {
		t.Fatalf("%d keys are minted", len(keys))
	}
	decode := map[string]func(string) ([]byte, error){names.KeyInstanceToken: hex.DecodeString, names.KeySigningKey: base64.StdEncoding.DecodeString}
	for name, size := range map[string]int{names.KeyInstanceToken: 24, names.KeySigningKey: 32} {
		one, err := keys[name]()
		if err != nil {
			t.Fatal(err)
		}
		two, err := keys[name]()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := decode[name](string(one))
		if err != nil || len(raw) != size {
			t.Errorf("%s has %d bytes, %v; want %d", name, len(raw), err, size)
		}
		if reflect.DeepEqual(one, two) {
			t.Errorf("%s is the same twice", name)
		}
	}
}

func TestDerivedToken(t *testing.T) {
	one, two := HarnessToken(config.NewSecret("a")), HarnessToken(config.NewSecret("b"))
	if one.Reveal() == two.Reveal() || one.Reveal() != HarnessToken(config.NewSecret("a")).Reveal() {
		t.Error("the token is no function of the signing key")
	}
	if raw, err := base64.RawURLEncoding.DecodeString(one.Reveal()); err != nil || len(raw) != 32 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
}

func TestGitTokens(t *testing.T) {
	in := review(t)
	in.Env = func(name string) (string, bool) { return map[string]string{"JR2_GIT_TOKEN": "t"}[name], name != "GONE" }
	got := GitTokens(in)
	if len(got) != 1 || got["JR2_GIT_TOKEN"].Reveal() != "t" {
		t.Errorf("got %v", got)
	}
	in.Env = nil
	if got := GitTokens(in); len(got) != 0 {
		t.Errorf("without an environment: %v", got)
	}
}
