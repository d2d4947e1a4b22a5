package images

import (
	"errors"
	"testing"
)

func TestK07RulesForABuilderOfOurOwn(t *testing.T) {
	for want, rules := range map[string]RegistryRules{
		"": {CAFiles: []string{"ca.pem"}},
		"[registry.\"r.test:5000\"]\n  http = true\n": {Insecure: []string{"r.test:5000", "r.test:5000"}},
		"[registry.\"docker.io\"]\n  mirrors = [\"m.test:5000/hub\", \"n.test\"]\n": {
			Mirrors: Mirrors{"registry-1.docker.io": {"m.test:5000/hub/", "n.test"}}},
		"[registry.\"docker.io\"]\n  mirrors = [\"m.test\", \"n.test\"]\n": {
			Mirrors: Mirrors{"docker.io": {"m.test"}, "index.docker.io": {"n.test"}}},
		"[registry.\"10.0.0.7:5000\"]\n  http = true\n[registry.\"127.0.0.1:5000\"]\n  http = false\n[registry.\"ghcr.io\"]\n  mirrors = [\"10.0.0.7:5000/a\", \"127.0.0.1:5000\"]\n": {
			Mirrors: Mirrors{"ghcr.io": {"http://10.0.0.7:5000/a", "https://127.0.0.1:5000"}}},
		"[registry.\"m.test\"]\n  http = true\n[registry.\"r.test\"]\n  http = true\n  mirrors = [\"m.test\"]\n": {
			Insecure: []string{"r.test", "m.test"}, Mirrors: Mirrors{"r.test": {"https://m.test"}}},
	} {
		got, err := rules.buildkitd()
		if err != nil || got != want {
			t.Errorf("%+v: %v\n%s\nwant\n%s", rules, err, got, want)
		}
	}
	var wrong *MirrorError
	if _, err := (RegistryRules{Mirrors: Mirrors{"r.test": {"team"}}}).buildkitd(); !errors.As(err, &wrong) {
		t.Errorf("%v", err)
	}
}
