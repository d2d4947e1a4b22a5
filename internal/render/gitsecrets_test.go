package render_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/render"
)

// TestTheRepoCacheReadsTheSecretsOfGitAlone: held secrets, provider keys and tokens of Sandboxes are in the same namespace.
func TestTheRepoCacheReadsTheSecretsOfGitAlone(t *testing.T) {
	for name, test := range map[string]struct {
		credentials []config.GitCredential
		want        []string
	}{
		"none":         {nil, nil},
		"one of https": {[]config.GitCredential{{Match: "*", Token: "TOKEN"}}, []string{config.TokenSecretName("*")}},
		"one of ssh":   {[]config.GitCredential{{Match: "git.example.com/", SSHKey: "deploy"}}, []string{"deploy"}},
		"both, and one key twice": {[]config.GitCredential{{Match: "git.example.com/", Token: "TOKEN", SSHKey: "deploy"}, {Match: "*", SSHKey: "deploy"}},
			[]string{"deploy", config.TokenSecretName("git.example.com/")}},
	} {
		in := hold()
		instance := *in.Instance
		instance.Git.Credentials = test.credentials
		in.Instance = &instance
		var got []string
		for _, object := range render.RepoCache(in) {
			role, ok := object.(*rbacv1.Role)
			if !ok || role.Name != names.RepoCacheName {
				continue
			}
			for _, rule := range role.Rules {
				if slices.Contains(rule.Resources, "secrets") {
					if len(rule.ResourceNames) == 0 || !slices.Equal(rule.Verbs, []string{"get"}) {
						t.Errorf("%s: %+v", name, rule)
					}
					got = append(got, rule.ResourceNames...)
				}
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: it reads %q, want %q", name, got, test.want)
		}
	}
}
