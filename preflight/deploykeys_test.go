package preflight_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/preflight"
)

// testDeployKeys: a key that is there is no finding, a missing one is one for all its repositories, and one that nobody names is one for each
// repository. None of them refuses. https repositories have no deploy key.
func testDeployKeys(t *testing.T, client kubernetes.Interface) {
	slot := func(url string) config.RepoSlot { return config.RepoSlot{Slot: "s", State: config.SlotBound, URL: url} }
	inst := &config.Instance{
		Name: "keys",
		Git: config.Git{Credentials: []config.GitCredential{
			{Match: "there.test/", SSHKey: "there"}, {Match: "gone.test/", SSHKey: "gone"}, {Match: "token.test/", Token: "T"},
		}},
		Workflows: []config.Workflow{{Name: "w", Workspaces: []config.Workspace{{Repos: []config.RepoSlot{
			slot("git@there.test:a/b.git"), slot("git@gone.test:a/b.git"), slot("ssh://git@gone.test/c/d"), slot("git@token.test:a/b.git"),
			slot("https://token.test/e/f"), slot("git@other.test:a/b.git"),
		}}}}},
	}
	makeNamespace(t, client, "keys", nil)
	_, err := client.CoreV1().Secrets("keys").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "there"}}, metav1.CreateOptions{})
	must(t, err)
	findings, err := preflight.NamedSecrets(t.Context(), client.CoreV1().Secrets("keys"), inst, "keys")
	must(t, err)
	var got []string
	for _, finding := range findings {
		got = append(got, finding.Code+" "+finding.Object)
		if finding.Severity != preflight.Warn || finding.Fix == "" {
			t.Errorf("%+v", finding)
		}
	}
	if text := findings[0].Message; !strings.HasPrefix(text, "repos git@gone.test:a/b.git, ssh://git@gone.test/c/d are cloned with the deploy key") {
		t.Errorf("got %s", text)
	}
	want := []string{"deploy-key-missing Secret keys/gone", "deploy-key-unnamed Repo token.test/a/b", "deploy-key-unnamed Repo other.test/a/b"}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %q, want %q", got, want)
	}
}
