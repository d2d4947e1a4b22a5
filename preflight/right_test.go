package preflight

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// TestFixesSurviveAShell: a user's name is whatever the one who vouches for users says. A shell must hand it to kubectl as it is, and run nothing.
func TestFixesSurviveAShell(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh")
	}
	for _, user := range []string{
		"alice", "system:serviceaccount:team-a:builder", "https://issuer.example.com/#jane", "Jane Doe", `CORP\jane`, "o'neil", "$(echo hacked)", "`echo hacked`",
		"a;echo hacked", "a&&echo hacked", "größe", "*", "~", "-x", `"`, "!!", "a\nb",
	} {
		for _, namespace := range []string{"", "team-a"} {
			fix := Right{Verb: "get", Resource: "pods", Namespace: namespace}.Fix(user)
			out, err := exec.Command(shell, "-c", `kubectl() { cat; }; `+fix).CombinedOutput()
			var list struct {
				Items []struct{ Subjects []rbacv1.Subject }
			}
			if err == nil {
				err = json.Unmarshal(out, &list)
			}
			if err != nil || len(list.Items) != 2 || list.Items[1].Subjects[0].Name != user {
				t.Errorf("%q: %v, %s of %s", user, err, out, fix)
			}
		}
	}
	if fix := (Right{Verb: "get", Resource: "pods"}).Fix(""); !strings.Contains(fix, `"name":"USER"`) {
		t.Error(fix)
	}
}
