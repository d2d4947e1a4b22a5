package narrate

import (
	"fmt"
	"strings"

	"jr2.dev/jr2/internal/event"
)

func deployKey(e event.Event) ([]string, bool) {
	switch e := e.(type) {
	case event.DeployKeyNeeded:
		return []string{
			fmt.Sprintf("deploy key: that of %s belongs in Secret %q, which is not there yet", strings.Join(e.Repos, ", "), e.Secret),
			fmt.Sprintf("  warning: whoever may read Secrets in namespace %q can read the private key there — let it open these repositories alone", e.Namespace),
		}, true
	case event.DeployKeyMade:
		if !e.Generated {
			return one("deploy key: the key %s is in Secret %q, for %s", e.Fingerprint, e.Secret, strings.Join(e.Repos, ", "))
		}
		return []string{
			fmt.Sprintf("deploy key: generated %s in Secret %q — add its public key to %s:", e.Fingerprint, e.Secret, keysOf(e.Repos)),
			"  " + e.PublicKey,
		}, true
	case event.DeployKeyReminder:
		return []string{
			fmt.Sprintf("deploy key: unless you did, add the public key of Secret %q to %s:", e.Secret, keysOf(e.Repos)),
			"  " + e.PublicKey,
		}, true
	}
	return nil, false
}

// keysOf says where a public key goes. Some hosts take a deploy key for one repository only.
func keysOf(repos []string) string {
	text := "the deploy keys of " + strings.Join(repos, " and ")
	if len(repos) > 1 {
		text += ", or to an account that may read them all"
	}
	return text
}
