package jr2_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"jr2.dev/jr2"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/preflight"
)

// faultyFolder has faults of all kinds: of fields, of modules, of Sizes, of open parts, of held secrets, and one that only the cluster shows.
func faultyFolder(t *testing.T, more string) string {
	t.Helper()
	return folder(t, map[string]string{
		"jr2.config.ts": configOf(more + `registry: 3, git: { credentials: [{ match: "*", password: "x" }] }, priorityClasses: { other: "x" },
			secrets: [{ name: "JR2_A", value: "hush", hosts: ["a.test"] }, { name: "B", value: "hush ", hosts: ["b.test"] },
				{ name: "C", valueFrom: { secretKeyRef: { name: "absent", key: "k" } }, hosts: ["c.test"] }],
			harness: { env: [{ name: "OPENAI_API_KEY", value: "hushed" }] }`),
		"workflows/boom.ts": "throw new Error('boom');", "workflows/syntax.ts": "const x = ;", "workflows/open.ts": openPart(),
		"workflows/small.ts": hold("300Mi", "1"), "workflows/thin.ts": hold("3Gi", "50m"), "workflows/sound.ts": ping,
	})
}

// TestCheckOfAFaultyConfiguration: a wrong field ends neither the reading of the Workflows nor the looks that do not stand on it.
func TestCheckOfAFaultyConfiguration(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := faultyFolder(t, "")
	report := w.check(t, dir, preflight.Choice{}, into("checked-faulty"))
	const fields = "config-field config-field config-field config-module config-module open-part size-too-small size-too-small config-field config-field config-field"
	if got := refusing(report); got != fields+" secret-missing" {
		t.Errorf("got  %s\nwant %s secret-missing\n%s", got, fields, report)
	}
	for _, want := range []struct{ object, says, fix string }{
		{"Instance my-instance at git.credentials[0]", `unrecognized key "password"`, "match, token?, sshKey?"},
		{"Instance my-instance at registry", "want string, got number", "registry.example.com/team"},
		{"Instance my-instance at priorityClasses", `unrecognized key "other"`, "control?, sandbox?"},
		{"Instance my-instance at secrets[0].name", "starts with JR2_", "does not start with JR2_"},
		{"Instance my-instance at secrets[1].value", "ends with a blank", "off its ends"},
		{"Instance my-instance at harness.env[0].name", "is a model key", `secrets: [{ name: "OPENAI_API_KEY"`},
		{"Workflow boom", "Error: boom", "correct"},
		{"Workflow syntax", "syntax.ts:1:", "correct"},
		{"Workflow open", "leaves Repo Slot", "customize("},
		{"Workflow small", "less than the floor", "320Mi"},
		{"Secret checked-faulty/absent", "does not exist", "kubectl -n checked-faulty create secret"},
	} {
		if !slices.ContainsFunc(report.Findings, func(f preflight.Finding) bool {
			return f.Object == want.object && strings.Contains(f.Message, want.says) && strings.Contains(f.Fix, want.fix)
		}) {
			t.Errorf("not told: %+v", want)
		}
	}
	if t.Failed() {
		t.Logf("the report\n%s", report)
	}
	// Faults of the configuration kept others from looking, so they are told whatever was asked for.
	if got := refusing(w.check(t, dir, preflight.Choice{Only: []string{preflight.CodeSecretMissing}}, into("checked-faulty"))); !strings.HasPrefix(got, "config-field config-field config-field config-module") ||
		!strings.HasSuffix(got, " secret-missing") {
		t.Errorf("of one code: %s", got)
	}
	// Where nobody can say whose namespace it would be, no cluster is asked, and the rest is told.
	nameless := w.check(t, faultyFolder(t, "name: 3, "), preflight.Choice{}, unreachable)
	if got := refusing(nameless); got != "config-field "+fields || nameless.Namespace != "" {
		t.Errorf("without a name: %s", got)
	}
	// A look that stands on the field at fault is left out, with those that stand on it; the others go on.
	without := w.check(t, folder(t, map[string]string{
		"jr2.config.ts": configOf(`platforms: "linux/s390x", harness: { envFrom: [{ secretRef: { name: "gone" } }] }`), "workflows/ping.ts": ping,
	}), preflight.Choice{}, into("checked-faulty"))
	if got := refusing(without); got != "config-field secret-missing" {
		t.Errorf("without platforms: %s\n%s", got, without)
	}
}

func unreachable(o *jr2.Options) { o.Config = &rest.Config{Host: "https://127.0.0.1:1"} }

// TestConvergeEndsAtAFaultyConfiguration: with all faults, one a line, before it asks the cluster.
func TestConvergeEndsAtAFaultyConfiguration(t *testing.T) {
	t.Parallel()
	options := jr2.Options{Dir: faultyFolder(t, ""), Context: "nowhere", Env: map[string]string{}, RegistryTransport: loopbackOnly{http.DefaultTransport}}
	unreachable(&options)
	_, converged := jr2.Converge(t.Context(), options)
	_, planned := jr2.MakePlan(t.Context(), options)
	for _, err := range []error{converged, planned} {
		if !errors.As(err, new(*config.FieldError)) || !errors.As(err, new(*config.ModuleError)) {
			t.Fatalf("got %v", err)
		}
		lines := strings.Split(jr2.NarrateError(err), "\n")
		if len(lines) != 5 {
			t.Errorf("got %d lines\n%s", len(lines), strings.Join(lines, "\n"))
		}
		for n, line := range lines {
			if !strings.HasPrefix(line, "error: /") || strings.Contains(line, "jr2.config.ts at ") != (n < 3) {
				t.Errorf("line %d is %s", n, line)
			}
		}
	}
	// A Go value is held to the same.
	value := &config.Instance{Name: "fx", Git: config.Git{Credentials: []config.GitCredential{{}, {Match: "*", Token: "a b"}}}}
	options.Dir, options.Instance = "", value
	if _, err := jr2.Converge(t.Context(), options); len(strings.Split(jr2.NarrateError(err), "\n")) != 2 {
		t.Errorf("got %v", err)
	}
}

// TestDownWithoutAName: what is torn down is never guessed from the folder.
func TestDownWithoutAName(t *testing.T) {
	t.Parallel()
	for fields, read := range map[string]bool{`name: 3`: false, `operator: { manage: "no" }`: false, `registry: 3`: true} {
		options := jr2.DownOptions{Dir: folder(t, map[string]string{"jr2.config.ts": configOf(fields)}), Context: "nowhere"}
		options.Config = &rest.Config{Host: "https://127.0.0.1:1"}
		if _, err := jr2.Down(t.Context(), options); errors.As(err, new(*config.FieldError)) == read || errors.As(err, new(*jr2.UnreachableError)) != read {
			t.Errorf("%s: got %v", fields, err)
		}
	}
}
