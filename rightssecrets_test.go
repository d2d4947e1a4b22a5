package jr2_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/preflight"
)

// TestRightsWithoutSecrets: who may read no Secret but the Instance's own converges, and hears that nobody looked at those which the configuration
// names. Who may not even read that one is refused, by one finding that says for what it is read: without its signing key nothing can be made.
func TestRightsWithoutSecrets(t *testing.T) {
	w := theWorld(t, node("a"))
	const ns = "rights-sealed"
	dir := folder(t, map[string]string{
		"jr2.config.ts": configOf(`operator: { manage: false }, platforms: ["linux/amd64"], git: { credentials: [{ match: "git.example.test/team", sshKey: "sealed-key" }] },
  harness: { envFrom: [{ secretRef: { name: "sealed-env" } }] }, secrets: [{ name: "A", valueFrom: { secretKeyRef: { name: "sealed-held", key: "k" } }, hosts: ["api.example.test"] }]`),
		"workflows/hold.ts": strings.Replace(hold("3Gi", "1"), "https://git.example.test/team/app.git", "git@git.example.test:team/app.git", 1),
	})
	w.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	for _, name := range []string{"sealed-key", "sealed-env", "sealed-held"} {
		_, err := w.client.CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"k": "x", "identity": "x"}}, metav1.CreateOptions{})
		must(t, err)
	}
	once := read(t, dir)
	must(t, w.up(t, dir, into(ns), once, adopted).err) // what its roles grant to pods is granted by an admin
	objs := w.roles(t, dir, "sealed", into(ns), once)
	w.give(t, objs)
	w.knows(t, "sealed", objs)
	report := w.check(t, dir, preflight.Choice{}, into(ns), once, w.as("sealed"))
	for _, object := range []string{"Secret " + ns + "/sealed-env", "Secret " + ns + "/sealed-held"} {
		if !slices.ContainsFunc(report.Findings, func(f preflight.Finding) bool { return f.Code == preflight.CodeNotLookedAt && f.Object == object }) {
			t.Errorf("nobody says that %s was not looked at", object)
		}
	}
	if report.Err() != nil {
		t.Errorf("who may read the Instance's Secret alone:\n%s", report)
	}
	if up := w.up(t, dir, into(ns), once, w.as("sealed")); up.err != nil {
		t.Errorf("the converge of who may read the Instance's Secret alone: %v", up.err)
	}

	all := singles(objs)
	at := slices.IndexFunc(all, func(one single) bool { return one.verb == "get" && one.resource == "secrets" })
	if at < 0 {
		t.Fatalf("the roles read no Secret: %v", all)
	}
	blind := without(objs, all[at], "sealed-blind")
	w.give(t, blind)
	w.knows(t, "sealed-blind", objs)
	report = w.check(t, dir, preflight.Choice{}, into(ns), once, w.as("sealed-blind"))
	var refused []preflight.Finding
	for _, f := range report.Findings {
		if f.Severity == preflight.Refuse {
			refused = append(refused, f)
		}
	}
	if len(refused) != 1 || refused[0].Object != "get secrets in namespace "+ns || !strings.Contains(refused[0].Message, "the Instance's tokens") {
		t.Errorf("who may read no Secret:\n%s", report)
	}
}
