package jr2_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/preflight"
)

const namesMuch = `secrets: [{ name: "TRACKER", valueFrom: { secretKeyRef: { name: "tracker", key: "token" } }, hosts: ["t.test"] }],
  harness: {
    envFrom: [{ secretRef: { name: "team" } }, { configMapRef: { name: "flags" } }],
    env: [{ name: "A", valueFrom: { secretKeyRef: { name: "third", key: "k" } } }, { name: "B", valueFrom: { configMapKeyRef: { name: "flags", key: "k" } } }],
  }`

// TestWhoMayNotReadWhatTheHarnessIsGiven: somebody may read none of the Secrets that the configuration names. He is told that
// nobody could look, is not refused, and is not told that all is well; who may look hears what is wrong.
func TestWhoMayNotReadWhatTheHarnessIsGiven(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	const home = "held-blind"
	w.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home, Labels: map[string]string{names.LabelInstance: "my-instance"}}})
	_, err := w.client.CoreV1().Secrets(home).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "team"}, StringData: map[string]string{"HF_TOKEN": "hush"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = w.client.CoreV1().ConfigMaps(home).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "flags"}, Data: map[string]string{"GROQ_API_KEY": "hush"}}, metav1.CreateOptions{})
	must(t, err)
	dir := folder(t, map[string]string{"jr2.config.ts": configOf(namesMuch), "workflows/hold.ts": hold("3Gi", "1")})

	seeing := w.check(t, dir, preflight.Choice{}, into(home))
	want := "secret-missing secret-missing model-key-reaches-harness model-key-reaches-harness"
	if got := refusing(seeing); got != want {
		t.Errorf("who may look: got %s, want %s\n%s", got, want, seeing)
	}
	if !strings.Contains(seeing.String(), `harness.env[1].valueFrom names ConfigMap "flags", which has no key "k"`) {
		t.Errorf("no word of the ConfigMap's key\n%s", seeing)
	}

	given := w.roles(t, dir, "blind-of-secrets", into(home))
	for _, o := range given {
		if role, ok := o.(*rbacv1.Role); ok {
			for i, rule := range role.Rules {
				if slices.Contains(rule.Resources, "secrets") {
					role.Rules[i].Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool { return verb == "get" })
				}
			}
		}
	}
	w.give(t, given)
	w.knows(t, "blind-of-secrets", given)
	blind := w.check(t, dir, preflight.Choice{}, into(home), w.as("blind-of-secrets"))
	for _, f := range blind.Findings {
		if f.Severity == preflight.Refuse && strings.HasPrefix(f.Object, "Secret ") {
			t.Errorf("refused: %+v", f)
		}
	}
	for _, object := range []string{"Secret held-blind/tracker", "Secret held-blind/team", "Secret held-blind/third"} {
		if !strings.Contains(blind.String(), "not-looked-at  "+object) {
			t.Errorf("not told that nobody looked at %s\n%s", object, blind)
		}
	}
}
