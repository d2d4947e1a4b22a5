package preflight

import (
	"os/exec"
	"strings"
	"testing"
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
			fix := grantFix(Right{Verb: "get", Resource: "pods", Namespace: namespace}, user)
			out, err := exec.Command(shell, "-c", `kubectl() { for word; do printf '%s\0' "$word"; done; }; `+fix).CombinedOutput()
			words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
			if err != nil || words[len(words)-1] != "--user="+user {
				t.Errorf("%q: %v, %q of %s", user, err, words, fix)
			}
		}
	}
	if fix := grantFix(Right{Verb: "get", Resource: "pods"}, ""); !strings.HasSuffix(fix, "--user=USER") {
		t.Error(fix)
	}
}
