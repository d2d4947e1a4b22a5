package jr2_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/preflight"
)

const manyConfig = `kitRegistry: "mirror",
  priorityClasses: { control: "many-control", sandbox: "many-sandbox" },
  harness: {
    envFrom: [{ secretRef: { name: "gone-1" } }, { secretRef: { name: "gone-2" } }],
    env: [{ name: "A", valueFrom: { secretKeyRef: { name: "gone-3", key: "k" } } }, { name: "B", valueFrom: { secretKeyRef: { name: "half", key: "k" } } }],
  },
  git: { credentials: [{ match: "git.example.test/team/app", token: "MANY_TOKEN" }, { match: "git.example.test/keyed/a", sshKey: "gone-key" }] }`

// TestCheckOfEverythingAtOnce: an Instance and a cluster that are wrong in more than 25 ways are told so at once, each with its object and its fix; and
// when each fix is followed as it is printed, nothing is left but what nobody can see from here. Some fixes uncover what could not be seen before
// them, so they are followed again.
func TestCheckOfEverythingAtOnce(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	w.manyFaults(t)
	with := func(workflow, url string) string {
		return strings.Replace(workflow, "https://git.example.test/team/app.git", url, 1)
	}
	bundled := strings.Replace(hold("3Gi", "1"), "resources:", `image: "go", resources:`, 1)
	const keyed, bare = "git@git.example.test:keyed/a.git", "git@git.example.test:bare/b.git"
	off := false
	p := &person{w: w, bundle: images.Bundle{Home: "registry.example.com/boxes", Version: "1", Images: map[string]images.Bundled{"go": {Enabled: &off}}}}
	p.dir = folder(t, map[string]string{
		"jr2.config.ts": configOf(manyConfig), "workflows/one.ts": hold("300Mi", "1"), "workflows/two.ts": hold("3Gi", "50m"),
		"workflows/three.ts": openPart(), "workflows/four.ts": openPart(), "workflows/five.ts": hold("512Gi", "1"),
		"workflows/six.ts": with(hold("3Gi", "1"), keyed), "workflows/seven.ts": with(hold("3Gi", "1"), bare), "workflows/eight.ts": bundled,
	})
	p.checks = append(p.checks, preflight.NewCheck("freeze", func(context.Context) ([]preflight.Finding, error) {
		return []preflight.Finding{{Severity: preflight.Refuse, Code: "frozen", Object: "Namespace many", Message: "refusing: many is frozen", Fix: "have it thawed"}}, nil
	}, "frozen"))
	const rounds = 6
	for round := range rounds {
		wrong := faulty(t, p.check(t))
		if len(wrong) == 0 {
			return
		}
		if round == 0 && len(wrong) < 25 {
			t.Errorf("%d findings", len(wrong))
		}
		for _, f := range wrong {
			p.follow(t, f)
		}
	}
	t.Errorf("after %d rounds of fixes:\n%s", rounds, p.check(t))
}

// A person does what fixes say, in an Instance folder and with a kubectl.
type person struct {
	w        *world
	dir      string
	bundle   images.Bundle
	checks   []preflight.Check
	takeFrom []string
	adopt    bool
	typed    map[string]bool
}

func (p *person) check(t *testing.T) *jr2.Report {
	t.Helper()
	return p.w.check(t, p.dir, preflight.Choice{}, into("many"), func(o *jr2.Options) {
		o.Checks, o.Bundle, o.TakeFrom, o.Adopt = p.checks, p.bundle, p.takeFrom, p.adopt
	})
}

// edits are the fixes that are no commands: what is written, where. A fix that none of them knows can't be followed.
func (p *person) edits() map[string]func(t *testing.T, words []string) {
	workflow := func(name string) string { return filepath.Join("workflows", name+".ts") }
	return map[string]func(t *testing.T, words []string){
		`^write resources\.limits\.(memory|cpu): ("\S+") or more in (workflows/\S+\.ts)$`: func(t *testing.T, words []string) {
			p.edit(t, words[3], words[1]+`: "[^"]*"`, words[1]+": "+words[2])
		},
		`^write resources\.limits of at most memory (\S+), cpu (\S+) in (workflows/\S+\.ts), or add a node`: func(t *testing.T, words []string) {
			p.edit(t, words[3], `memory: "[^"]*"`, `memory: "5Gi"`) // less than what is said
		},
		`^write another image than "go" in (workflows/\S+\.ts), or turn go on again in the bundle$`: func(t *testing.T, words []string) {
			p.edit(t, words[1], `image: "go", `, "")
		},
		`^write (kitRegistry): ("docker\.io/mirror") in jr2\.config\.ts, or`: func(t *testing.T, words []string) {
			p.edit(t, "jr2.config.ts", words[1]+`: "[^"]*"`, words[1]+": "+words[2])
		},
		`^add (\{ match: .* \}) to git\.credentials in jr2\.config\.ts$`: func(t *testing.T, words []string) {
			p.edit(t, "jr2.config.ts", `credentials: \[`, "credentials: ["+words[1]+", ")
		},
		`^export const machine = customize\((\w+), \{ repos: \{ app: "<url>" \} \}\)$`: func(t *testing.T, words []string) {
			name := workflow(words[1])
			p.edit(t, name, `export const machine = `, "const "+words[1]+" = ")
			p.edit(t, name, `import \{`, "import { customize,")
			p.edit(t, name, `$`, "\n"+strings.Replace(words[0], "<url>", "https://git.example.test/team/app.git", 1)+";\n")
		},
		`^--take-from (\S+)$`: func(t *testing.T, words []string) { p.takeFrom = append(p.takeFrom, words[1]) },
		`^--adopt$`:           func(*testing.T, []string) { p.adopt = true },
		`^have it thawed$`:    func(*testing.T, []string) { p.checks = nil },
		`^bring up the server of the webhook many\.example\.test, or delete its configuration`: func(t *testing.T, _ []string) {
			p.shell(t, "kubectl delete --ignore-not-found validatingwebhookconfiguration many")
		},
	}
}

// follow does what one fix says: a command is typed as it stands, in the Instance folder.
func (p *person) follow(t *testing.T, f preflight.Finding) {
	t.Helper()
	if p.typed[f.Fix] {
		return // two findings with one fix
	}
	if p.typed == nil {
		p.typed = map[string]bool{}
	}
	p.typed[f.Fix] = true
	if isCommand(f.Fix) {
		p.shell(t, strings.ReplaceAll(f.Fix, "=...", "=only-i-know")) // what only a person knows; as it stands it is no value
		return
	}
	for form, edit := range p.edits() {
		if words := regexp.MustCompile(form).FindStringSubmatch(f.Fix); words != nil {
			edit(t, words)
			return
		}
	}
	t.Errorf("can't be followed: %s (%s %s)", f.Fix, f.Code, f.Object)
}

func (p *person) shell(t *testing.T, command string) {
	t.Helper()
	if _, err := p.w.Shell(t.Context(), "cd '"+p.dir+"' && "+command); err != nil {
		t.Errorf("a fix: %v", err)
	}
}

// edit writes into a file of the folder, once, where it has the old text.
func (p *person) edit(t *testing.T, name, old, text string) {
	t.Helper()
	path := filepath.Join(p.dir, name)
	raw, err := os.ReadFile(path)
	must(t, err)
	at := regexp.MustCompile(old).FindIndex(raw)
	if at == nil {
		t.Fatalf("%s has no %s:\n%s", name, old, raw)
	}
	must(t, os.WriteFile(path, slices.Concat(raw[:at[0]], []byte(text), raw[at[1]:]), 0o644))
}

// faulty are the findings that are no notes; each must name an object and a fix.
func faulty(t *testing.T, report *jr2.Report) []preflight.Finding {
	t.Helper()
	var wrong []preflight.Finding
	for _, f := range report.Findings {
		if f.Severity == preflight.Note {
			continue
		}
		wrong = append(wrong, f)
		if f.Object == "" || f.Fix == "" {
			t.Errorf("without object or fix: %+v", f)
		}
	}
	return wrong
}

// manyFaults makes a namespace in which much is wrong.
func (w *world) manyFaults(t *testing.T) {
	t.Helper()
	ctx, core := t.Context(), w.client.CoreV1()
	w.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "many", Labels: map[string]string{
		names.LabelInstance: "my-instance", names.LabelManagedBy: "helm", "pod-security.kubernetes.io/enforce": "restricted", "many": "faults"}}})
	_, err := core.ResourceQuotas("many").Create(ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceLimitsMemory: quantity("512Mi")}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = core.Secrets("many").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "half"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = core.Services("many").Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: names.Orchestrator, Annotations: map[string]string{"jr2.dev/set": "elsewhere/other"}},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "theirs", Port: 80}}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = core.PersistentVolumeClaims("many").Create(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "jr2-state"},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: quantity("7Gi")}}}}, metav1.CreateOptions{})
	must(t, err)
	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "many"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "many.example.test", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		ClientConfig:      admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "many", Name: "nobody"}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"many": "faults"}},
		Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{APIGroups: []string{"networking.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"networkpolicies"}}}},
	}}}
	hooks := w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err = hooks.Create(ctx, hook, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { hooks.Delete(context.WithoutCancel(t.Context()), hook.Name, metav1.DeleteOptions{}) }) //nolint:errcheck // a fix may have
}
