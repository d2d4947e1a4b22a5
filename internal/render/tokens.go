package render

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
)

// InstanceSecretKeys gives the keys of jr2-instance that are minted once and then kept, each with its generator: live Sandboxes hold
// tokens signed with the kept key, so a new value must never replace one that is there. Mint them before Instance is called: the
// other keys of jr2-instance, which Instance renders, derive from JR2_SIGNING_KEY or from the environment.
func InstanceSecretKeys() map[string]func() ([]byte, error) {
	return map[string]func() ([]byte, error){
		names.KeyInstanceToken: func() ([]byte, error) {
			random, err := randomBytes(24)
			return []byte(hex.EncodeToString(random)), err
		},
		names.KeySigningKey: func() ([]byte, error) {
			random, err := randomBytes(32)
			return []byte(base64.StdEncoding.EncodeToString(random)), err
		},
	}
}

func randomBytes(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := rand.Read(b)
	return b, err
}

// HarnessToken derives JR2_INSTANCE_HARNESS_TOKEN: the HMAC-SHA-256 of the name jr2-instance-harness under the text of the signing
// key, in base64url without padding.
func HarnessToken(signingKey config.Secret) config.Secret {
	return config.NewSecret(base64.RawURLEncoding.EncodeToString(mac(signingKey, names.InstanceHarnessName)))
}

func mac(key config.Secret, parts ...string) []byte {
	h := hmac.New(sha256.New, []byte(key.Reveal()))
	if len(parts) == 1 {
		h.Write([]byte(parts[0]))
		return h.Sum(nil)
	}
	for _, part := range parts {
		// The length keeps two lists apart whose parts join to the same text.
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return h.Sum(nil)
}

// digest is the short form in which an HMAC stands in an annotation.
func digest(key config.Secret, parts ...string) string {
	return base64.RawURLEncoding.EncodeToString(mac(key, parts...))[:32]
}

// GitTokens gives the tokens that git.credentials name and the environment holds, by variable name. One that is not set, or set to
// nothing, is left out.
func GitTokens(in Input) map[string]config.Secret {
	tokens := map[string]config.Secret{}
	for _, credential := range in.Instance.Git.Credentials {
		if credential.Token == "" || in.Env == nil {
			continue
		}
		if value, ok := in.Env(credential.Token); ok && value != "" {
			tokens[credential.Token] = config.NewSecret(value)
		}
	}
	return tokens
}

// derivedKeys are the keys of jr2-instance that are not minted.
func derivedKeys(in Input) map[string]config.Secret {
	keys := GitTokens(in)
	keys[names.KeyHarnessToken] = HarnessToken(in.SigningKey)
	return keys
}

// envDigest moves when a key of jr2-instance moves. The Orchestrator reads the Secret as its environment, which a running process
// never sees change: without this a new git token would be applied and not used. An HMAC, because anyone may read the annotation.
func envDigest(in Input) string {
	return digest(in.SigningKey, append([]string{"env"}, flat(derivedKeys(in))...)...)
}

// heldDigest moves when anything moves that the containers of the Instance Harness read once: the files of its Custodian with its
// certificates, the values that it holds, and the environment of the Harness.
func heldDigest(in Input) string {
	parts := []string{"held", heldManifest(in)}
	parts = append(parts, in.Certificates.fingerprints()...)
	parts = append(parts, flat(heldLiterals(in))...)
	parts = append(parts, custodianBootstrap(in), custodianScript, harnessJSON(in))
	return digest(in.SigningKey, append(parts, flat(harnessLiterals(in))...)...)
}

// flat lists names and values in name order, after their number.
func flat(values map[string]config.Secret) []string {
	parts := []string{fmt.Sprint(len(values))}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, name, values[name].Reveal())
	}
	return parts
}
