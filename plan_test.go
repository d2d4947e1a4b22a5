package jr2_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2"
	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/preflight"
)

// A planned converge: what the looks told, and the plan.
type planned struct {
	lines string
	plan  *jr2.Plan
	err   error
}

// plan plans as up converges, and fails the test when the API server's audit log has a request of it that could have stored something.
func (w *world) plan(t *testing.T, dir string, change ...func(*jr2.Options)) planned {
	t.Helper()
	var lines bytes.Buffer
	options := jr2.Options{Dir: dir, Config: w.Config(), Context: contextName, Env: map[string]string{}, Events: jr2.Narrate(&lines)}
	for _, c := range change {
		c(&options)
	}
	stored := w.watched(t, &options)
	plan, err := jr2.MakePlan(t.Context(), options)
	wroteNothing(t, "the plan", stored())
	return planned{lines: lines.String(), plan: plan, err: err}
}

// writes are the requests that change something.
type writes struct {
	mu   sync.Mutex
	seen []string
}

func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		question := strings.HasSuffix(r.URL.Path, "reviews") // an answer is all that becomes of it
		if r.Method != http.MethodGet && r.Method != http.MethodHead && !question && r.URL.Query().Get("dryRun") != metav1.DryRunAll {
			w.mu.Lock()
			w.seen = append(w.seen, r.Method+" "+r.URL.String())
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

func (w *writes) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

func (p planned) layer(t *testing.T, name string) *apply.Plan {
	t.Helper()
	for _, layer := range p.plan.Layers {
		if layer.Name == name {
			return layer.Plan
		}
	}
	t.Fatalf("no layer %s:\n%s", name, p.plan)
	return nil
}

// TestPlanOfAFirstContact plans into a cluster that has neither the namespace nor, as far as it goes, anything else, and asks nobody.
func TestPlanOfAFirstContact(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	told := w.plan(t, dir, into("planned"))
	must(t, told.err)
	w.isAbsent(t, "planned")
	if told.plan.FirstContact != `create namespace "planned"` || !told.plan.Assembly.Publish || told.plan.Assembly.Current != "" || told.plan.Err() != nil {
		t.Errorf("planned\n%s", told.plan)
	}
	if mint := told.plan.Mint; mint == nil || !slices.Equal(mint.Keys, []string{names.KeyInstanceToken, names.KeySigningKey}) || mint.Secret.Name != names.InstanceSecret {
		t.Errorf("minted: %+v", mint)
	}
	if p := told.layer(t, "namespace"); p.Changes() != 1 {
		t.Errorf("the namespace:\n%s", p)
	}
	instance := told.layer(t, "instance")
	if instance.Count(apply.WillArrive) != len(instance.Steps) || len(instance.Steps) < 10 {
		t.Errorf("the instance:\n%s", instance)
	}
	if first := strings.SplitN(told.lines, "\n", 2)[0]; first != `jr2 plan — instance "my-instance" → context shared / namespace planned` {
		t.Errorf("it opens with %s", first)
	}
	raw, err := json.Marshal(told.plan)
	must(t, err)
	if !strings.HasPrefix(string(raw), `{"version":1,"instance":"my-instance",`) || strings.Contains(string(raw), "made by the converge") {
		t.Errorf("got %s", raw)
	}
	told.holds(t, w, dir)
}

// holds converges as planned, and finds that the plan said what was done and that another one has nothing to say.
func (p planned) holds(t *testing.T, w *world, dir string) {
	t.Helper()
	up := w.up(t, dir, into("planned"), func(o *jr2.Options) { o.Plan = p.plan })
	must(t, up.err)
	if up.result.Changed != p.plan.Changes() || up.result.Assembly != p.plan.Assembly.Hash {
		t.Errorf("planned %d changes and did %d:\n%s\n%s", p.plan.Changes(), up.result.Changed, p.plan, up.lines)
	}
	again := w.plan(t, dir, into("planned"))
	must(t, again.err)
	if again.plan.Changes() != 0 || !strings.HasSuffix(again.plan.String(), "\nnothing would change\n") {
		t.Errorf("after the converge:\n%s", again.plan)
	}
	p.hides(t, w)
	old := w.up(t, dir, into("planned"), func(o *jr2.Options) { o.Plan = p.plan })
	var moved *jr2.MovedError
	if !errors.As(old.err, &moved) || moved.Plan.Changes() != 0 || !slices.Contains(moved.Moved, "the Assembly") || !slices.Contains(moved.Moved, "Namespace planned") {
		t.Errorf("the old plan: %v", old.err)
	}
}

// hides checks that a plan in which the Secrets change holds none of their values.
func (p planned) hides(t *testing.T, w *world) {
	t.Helper()
	secret, err := w.client.CoreV1().Secrets("planned").Get(t.Context(), names.InstanceSecret, metav1.GetOptions{})
	must(t, err)
	dir := folder(t, map[string]string{"workflows/hold.ts": hold("3Gi", "1"), "jr2.config.ts": configOf(`git: { credentials: [{ match: "*", token: "MY_TOKEN" }] }`)})
	told := w.plan(t, dir, into("planned"), func(o *jr2.Options) { o.Env["MY_TOKEN"] = "s3cret" })
	must(t, told.err)
	raw, err := json.Marshal(told.plan)
	must(t, err)
	text := fmt.Sprintf("%s %s %s %+v", told.plan, raw, told.lines, told.plan)
	if !strings.Contains(text, "data.MY_TOKEN: (absent) -> ****") {
		t.Errorf("the token is not in the plan:\n%s", told.plan)
	}
	for _, value := range append(slices.Collect(maps.Values(secret.Data)), []byte("s3cret")) {
		if strings.Contains(text, string(value)) || strings.Contains(text, base64.StdEncoding.EncodeToString(value)) {
			t.Errorf("the plan shows a value:\n%s", text)
		}
	}
}

// TestPlanOfAChange names what changes, and a converge that is held to a plan does nothing when the cluster moved since.
func TestPlanOfAChange(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	must(t, w.up(t, dir, into("replanned")).err)
	must(t, os.WriteFile(filepath.Join(dir, "workflows/hold.ts"), []byte(hold("3Gi", "1")), 0o644))
	first := w.plan(t, dir, into("replanned"))
	must(t, first.err)
	if a := first.plan.Assembly; !a.Publish || a.Current == "" || a.Current == a.Hash || first.plan.Mint != nil || first.layer(t, "instance").Count(apply.WillCreate) == 0 {
		t.Errorf("planned\n%s", first.plan)
	}
	secrets, configs := w.client.CoreV1().Secrets("replanned"), w.client.CoreV1().ConfigMaps("replanned")
	before := w.versions(t, "replanned")
	_, err := configs.Patch(t.Context(), names.ImagesConfig, types.MergePatchType, []byte(`{"data":{"images.json":"{}"}}`), metav1.PatchOptions{FieldManager: "ana"})
	must(t, err)
	held := w.up(t, dir, into("replanned"), func(o *jr2.Options) { o.Plan = first.plan })
	if held.err == nil || !strings.Contains(held.err.Error(), `.data.images.json by "ana"`) {
		t.Errorf("a field of another manager: %v", held.err)
	}
	conflict := w.plan(t, dir, into("replanned"))
	if conflict.err != nil || conflict.plan.Err() == nil || conflict.layer(t, "instance").Count(apply.WillConflict) != 1 {
		t.Errorf("%v:\n%s", conflict.err, conflict.plan)
	}
	for object, version := range w.versions(t, "replanned") {
		if before[object] != version && object != "ConfigMap "+names.ImagesConfig {
			t.Errorf("%s was written", object)
		}
	}
	must(t, secrets.Delete(t.Context(), names.InstanceSecret, metav1.DeleteOptions{}))
	lost := w.plan(t, dir, into("replanned"), func(o *jr2.Options) { o.TakeFrom = []string{"ana"} })
	must(t, lost.err)
	if lost.plan.Mint == nil || !slices.ContainsFunc(lost.plan.Findings, func(f preflight.Finding) bool { return f.Code == preflight.CodeSigningKey }) {
		t.Errorf("planned\n%s\n%s", lost.plan, lost.lines)
	}
}

// TestPlanOfImages says which are built. That no builder answers is a warning; a registry that is away is a note.
func TestPlanOfImages(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	told := w.plan(t, "examples/instances/review", into("plan-images"), func(o *jr2.Options) {
		o.Env["JR2_REGISTRY"], o.BuildkitHost = "127.0.0.1:1/team", "unix:///nowhere"
	})
	must(t, told.err)
	if len(told.plan.Images) != 1 || told.plan.Images[0].Intent != jr2.WillBuild || told.plan.Images[0].Why != "the cluster has no record of it" {
		t.Errorf("planned %+v", told.plan.Images)
	}
	if want := fmt.Sprintf("sandbox image \"toolbox\": build %s — ", told.plan.Images[0].Ref); !strings.Contains(told.plan.String(), want) {
		t.Errorf("got\n%s", told.plan)
	}
	if !strings.Contains(told.lines, "nobody could say whether the registry holds ") || !strings.Contains(told.lines, "its builder does not answer: BuildKit at unix:///nowhere") {
		t.Errorf("told\n%s", told.lines)
	}
}
