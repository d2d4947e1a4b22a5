package jr2_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/preflight"
)

// TestServerIsAway refuses connections for a moment, beginning with one request after the other: a converge rides it out.
func TestServerIsAway(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	for from := 2; ; from += 4 {
		away := &outage{from: from, left: 2}
		told := w.up(t, dir, into(fmt.Sprintf("away-%d", from)), func(o *jr2.Options) { o.Config.Wrap(away.wrap) })
		if told.err != nil {
			t.Errorf("away from request %d: %v\n%s", from, told.err, told.lines)
		}
		if away.left == 2 {
			t.Logf("a converge makes less than %d requests", from)
			return
		}
	}
}

// outage refuses some connections, beginning with a request.
type outage struct {
	mu         sync.Mutex
	seen, from int
	left       int
}

func (o *outage) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		o.mu.Lock()
		o.seen++
		refuse := o.seen >= o.from && o.left > 0
		if refuse {
			o.left--
		}
		o.mu.Unlock()
		if refuse {
			return nil, syscall.ECONNREFUSED
		}
		return next.RoundTrip(r)
	})
}

// TestDamagedAssemblyIsRepaired: chunks that are gone, a pointer that nobody can read.
func TestDamagedAssemblyIsRepaired(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	must(t, w.up(t, dir, into("damaged")).err)
	maps := w.client.CoreV1().ConfigMaps("damaged")
	for name, damage := range map[string]func(){
		"chunks": func() {
			must(t, maps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: names.LabelAssembly}))
		},
		"pointer": func() {
			_, err := maps.Patch(t.Context(), names.AssemblyPointer, types.MergePatchType, []byte(`{"data":{"current":"{x"}}`), metav1.PatchOptions{})
			must(t, err)
		},
	} {
		damage()
		told := w.up(t, dir, into("damaged"))
		must(t, told.err)
		if !strings.Contains(told.lines, "the stored Assembly is damaged") && !strings.Contains(told.lines, "assembly: publishing") {
			t.Errorf("%s: the repair was not told:\n%s", name, told.lines)
		}
		if again := w.up(t, dir, into("damaged")); again.err != nil || again.result.Changed != 0 {
			t.Errorf("%s: not repaired: %v\n%s", name, again.err, again.lines)
		}
	}
}

// TestLostSigningKeyIsTold: a new key makes the tokens of live Sandboxes worthless, so it is never made without a word. The first converge has
// no word for it.
func TestLostSigningKeyIsTold(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	first := w.up(t, dir, into("lost-key"))
	must(t, first.err)
	must(t, w.client.CoreV1().Secrets("lost-key").Delete(t.Context(), names.InstanceSecret, metav1.DeleteOptions{}))
	second := w.up(t, dir, into("lost-key"))
	must(t, second.err)
	if first.found(preflight.CodeSigningKey) || !second.found(preflight.CodeSigningKey) {
		t.Errorf("told at first: %v, told then: %v", first.found(preflight.CodeSigningKey), second.found(preflight.CodeSigningKey))
	}
}

func (told told) found(code string) bool {
	for _, finding := range told.result.Findings {
		if finding.Code == code {
			return true
		}
	}
	return false
}

// TestGitTokenStays: a converge from a shell without the token leaves it in the cluster, and tells; one that nobody has is told too.
func TestGitTokenStays(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	files := map[string]string{"workflows/ping.ts": ping, "jr2.config.ts": configOf(`git: { credentials: [{ match: "*", token: "MY_TOKEN" }] }`)}
	dir := folder(t, files)
	unset := w.up(t, dir, into("token"))
	must(t, unset.err)
	must(t, w.up(t, dir, into("token"), func(o *jr2.Options) { o.Env["MY_TOKEN"] = "s3cret" }).err)
	kept := w.up(t, dir, into("token"))
	must(t, kept.err)
	secret, err := w.client.CoreV1().Secrets("token").Get(t.Context(), names.InstanceSecret, metav1.GetOptions{})
	must(t, err)
	if string(secret.Data["MY_TOKEN"]) != "s3cret" || kept.result.Changed != 0 {
		t.Errorf("the token is gone, or %d objects changed", kept.result.Changed)
	}
	if !unset.found(preflight.CodeGitToken) || !kept.found(preflight.CodeGitToken) || strings.Contains(kept.lines, "s3cret") {
		t.Errorf("told:\n%s\n%s", unset.lines, kept.lines)
	}
}

// TestLiteralSecretsAreTold: what is written into jr2.config.ts travels in the Assembly; what is read from the environment does not.
func TestLiteralSecretsAreTold(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	files := map[string]string{"workflows/ping.ts": ping, "jr2.config.ts": configOf(
		`harness: { env: [{ name: "WRITTEN", value: "written-down" }, { name: "READ", value: process.env.READ }] }`)}
	told := w.up(t, folder(t, files), into("literal"), func(o *jr2.Options) { o.Env["READ"] = "from-the-shell" })
	must(t, told.err)
	if !strings.Contains(told.lines, "harness.env[0].value stands literally") || strings.Contains(told.lines, "harness.env[1]") || strings.Contains(told.lines, "written-down") {
		t.Errorf("told:\n%s", told.lines)
	}
	maps, err := w.client.CoreV1().ConfigMaps("literal").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, found := range maps.Items {
		text := fmt.Sprint(found.Data, found.Annotations)
		for _, chunk := range found.BinaryData {
			text += string(chunk)
		}
		if strings.Contains(text, "from-the-shell") {
			t.Errorf("ConfigMap %s holds a value of the environment", found.Name)
		}
	}
}

// TestInstancesDoNotFightOverTheOperator: each of two Instances with different classes and mirrors finds nothing to change.
func TestInstancesDoNotFightOverTheOperator(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	w.classes(t, "team-high")
	plain := folder(t, map[string]string{"jr2.config.ts": configOf(`name: "plain"`), "workflows/ping.ts": ping})
	other := folder(t, map[string]string{"workflows/ping.ts": ping,
		"jr2.config.ts": configOf(`name: "other", kitRegistry: "mirror.example.test/kit", priorityClasses: { control: "team-high" }`)})
	must(t, w.up(t, plain).err)
	must(t, w.up(t, other).err)
	for _, dir := range []string{plain, other, plain} {
		if told := w.up(t, dir); told.err != nil || told.result.Changed != 0 {
			t.Errorf("%v, %d changes:\n%s", told.err, told.result.Changed, told.lines)
		}
	}
}

// TestFieldsAreTakenWhenAsked: a field that somebody else set is an error that says who, and Options.TakeFrom takes it back.
func TestFieldsAreTakenWhenAsked(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	must(t, w.up(t, dir, into("taken")).err)
	patch := []byte(`{"data":{"images.json":"{}"}}`)
	_, err := w.client.CoreV1().ConfigMaps("taken").Patch(t.Context(), names.ImagesConfig, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "ana"})
	must(t, err)
	told := w.up(t, dir, into("taken"))
	if !strings.Contains(told.lastLine(), `by "ana"`) || !strings.Contains(told.lastLine(), "take fields from") {
		t.Errorf("told %s", told.lastLine())
	}
	must(t, w.up(t, dir, into("taken"), func(o *jr2.Options) { o.TakeFrom = []string{"ana"} }).err)
	if again := w.up(t, dir, into("taken")); again.err != nil || again.result.Changed != 0 {
		t.Errorf("not taken: %v", again.err)
	}
}

// TestKitVersionOfAGoValue: empty means the default, and what is no version is told before any cluster is asked.
func TestKitVersionOfAGoValue(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	instance := &config.Instance{Name: "kit-version", Workflows: []config.Workflow{{Name: "ping"}}}
	told := w.up(t, "", func(o *jr2.Options) { o.Instance = instance })
	must(t, told.err)
	if instance.KitVersion != "" {
		t.Error("the caller's value was changed")
	}
	instance.KitVersion = "not a version"
	told = w.up(t, "", func(o *jr2.Options) { o.Instance, o.Namespace = instance, "kit-none" })
	if told.err == nil || !strings.Contains(told.err.Error(), "kitVersion") {
		t.Errorf("told %v", told.err)
	}
	w.isAbsent(t, "kit-none")
}
