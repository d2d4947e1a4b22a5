package apply_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

func mustPlan(t *testing.T, s *apply.Set, opts apply.Options) *apply.Plan {
	t.Helper()
	p, err := apply.MakePlan(t.Context(), config(t), s, opts)
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	return p
}

// wantText compares a plan's text; NS stands for the namespace.
func wantText(t *testing.T, p *apply.Plan, ns, want string) {
	t.Helper()
	want = strings.ReplaceAll(strings.TrimPrefix(want, "\n"), "NS", ns)
	if got := p.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A plan of a set with its own namespace and kind, on a cluster with neither, writes nothing, and can be applied. Field case F22.
func TestPlanOnAnEmptyCluster(t *testing.T) {
	t.Parallel()
	ns := "t-plan-empty"
	group := ns + ".example.com"
	s := set(t, ns, small(1)+"\n---\n"+custom(group, "Cherry")+"\n---\n"+crd(group, "Cherry"))
	p := mustPlan(t, s, apply.Options{Prune: true})
	wantText(t, p, ns, `
arrives     ConfigMap NS/conf: its kind or its namespace arrives with this set
arrives     ConfigMap NS/only-1: its kind or its namespace arrives with this set
create      Namespace NS
arrives     Secret NS/words: its kind or its namespace arrives with this set
arrives     Service NS/web: its kind or its namespace arrives with this set
create      CustomResourceDefinition.apiextensions.k8s.io cherrys.NS.example.com
arrives     Deployment.apps NS/web: its kind or its namespace arrives with this set
arrives     Cherry.NS.example.com NS/x: its kind or its namespace arrives with this set
2 to create, 6 to create on what arrives with the set
`)
	if _, err := typed(t).CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{}); apply.Classify(err) != apply.ClassNotFound {
		t.Errorf("the namespace: %v", err)
	}
	out, err := p.Apply(t.Context(), config(t))
	if err != nil || out.Count(apply.Created) != len(s.Objects) {
		t.Fatalf("%+v, %v", out.Objects, err)
	}
	wantText(t, mustPlan(t, s, apply.Options{Prune: true}), ns, "8 unchanged\n")
	// Its namespace and its kind are there now, so the plan does not hold.
	_, err = p.Apply(t.Context(), config(t))
	var moved *apply.MovedError
	if !errors.As(err, &moved) || moved.Plan.Changes() != 0 || len(moved.Moved) != 8 {
		t.Errorf("got %v", err)
	}
}

const wordOfOld, wordOfNew = "hush", "whisper-whisper"

func TestPlanTellsTheFields(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, set(t, ns, stack+"\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: old, namespace: NS}"), apply.Options{Prune: true})
	changed := strings.NewReplacer(`{a: "1"}`, `{a: "2", "b.c": "x\ny"}`, "word: hush", "word: "+wordOfNew+", more: "+wordOfNew, "replicas: 1", "replicas: 2",
		"containers: [{name: web, image: \"registry.example/web:1\"", "containers: [{name: log, image: \"registry.example/log:1\"}, {name: web, image: \"registry.example/web:2\"",
		"{name: http, port: 80}", "{name: http, port: 81}").Replace(stack)
	changed = strings.Replace(changed, "kind: PersistentVolumeClaim\nmetadata: {name: state,", "kind: PersistentVolumeClaim\nmetadata: {name: state2,", 1)
	p := mustPlan(t, set(t, ns, changed), apply.Options{Prune: true})
	wantText(t, p, ns, `
DELETES 1 object:
prune       ConfigMap NS/old
configure   ConfigMap NS/conf
            data.a: "1" -> "2"
            data["b.c"]: (absent) -> "x\ny"
create      PersistentVolumeClaim NS/state2
configure   Secret NS/words
            data.more: (absent) -> ****
            data.word: **** -> ****
configure   Service NS/web
            spec.ports[name="http"].port: 80 -> 81
            spec.ports[name="http"].targetPort: 80 -> 81
configure   Deployment.apps NS/web
            spec.replicas: 1 -> 2
            spec.template.spec.containers[name="web"].image: "registry.example/web:1" -> "registry.example/web:2"
            spec.template.spec.containers[name="log"]: (absent) -> {"image":"registry.example/log:1","imagePullPolicy":"IfNotPresent","name":"log","resources":{},"terminationMessagePath":… (177 characters)
keep        PersistentVolumeClaim NS/state: it holds data; name it to have it removed (Options.PruneData; jr2 apply --prune-data)
1 to create, 4 to configure, 1 to prune, 1 to keep, 3 unchanged
`)
	out, err := p.Apply(t.Context(), config(t))
	if err != nil || out.Changed() != p.Changes() {
		t.Fatalf("%+v, %v", out.Objects, err)
	}
	for _, step := range p.Steps {
		want := map[apply.Intent]apply.Action{apply.WillCreate: apply.Created, apply.WillConfigure: apply.Configured, apply.WillLeave: apply.Unchanged, apply.WillPrune: apply.Pruned, apply.WillKeep: apply.Kept}[step.Intent]
		if got := out.Did(step.Ref); got != want {
			t.Errorf("%s: planned %s, did %s", step.Ref, step.Intent, got)
		}
	}
	wantText(t, mustPlan(t, set(t, ns, changed), apply.Options{Prune: true}), ns, "keep        PersistentVolumeClaim NS/state: it holds data; name it to have it removed (Options.PruneData; jr2 apply --prune-data)\n1 to keep, 8 unchanged\n")
}

// No form of a plan shows what a Secret holds: not the value, not its base64, not what kubectl noted of it.
func TestPlanHidesSecrets(t *testing.T) {
	ns := newNamespace(t, nil)
	doc := func(word string) *apply.Set {
		return set(t, ns, `apiVersion: v1
kind: Secret
metadata: {name: words, namespace: NS, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"stringData":{"word":"`+word+`"}}'}}
stringData: {word: `+word+`}`)
	}
	mustApply(t, doc(wordOfOld), apply.Options{})
	p := mustPlan(t, doc(wordOfNew), apply.Options{})
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join([]string{p.String(), string(raw), fmt.Sprintf("%v %+v %#v", p, p, p), fmt.Sprintf("%v %+v %#v", *p, *p, p.Steps), fmt.Sprintf("%#v", p.Steps[0].Fields[0].New)}, "\n")
	for _, word := range []string{wordOfOld, wordOfNew, "aHVzaA", "d2hpc3Blc"} {
		if strings.Contains(all, word) {
			t.Errorf("%s is shown:\n%s", word, all)
		}
	}
	if want := `{"path":"data.word","old":"****","new":"****"}`; !strings.Contains(string(raw), want) {
		t.Errorf("%s is not in %s", want, raw)
	}
	// Another hand changes the value: the fields of the plan are the same, and yet it does not hold.
	if _, err := typed(t).CoreV1().Secrets(ns).Patch(t.Context(), "words", types.MergePatchType, []byte(`{"data":{"word":"YQ=="}}`), metav1.PatchOptions{FieldManager: apply.DefaultFieldManager}); err != nil {
		t.Fatal(err)
	}
	_, err = p.Apply(t.Context(), config(t))
	var moved *apply.MovedError
	if !errors.As(err, &moved) {
		t.Errorf("got %v", err)
	}
	// What the server says about a value that it refuses may quote it. A value that is no text is refused before the server sees it.
	for _, data := range []string{"data: {word: not-base64-hush}", "type: {a: hush}", "type: kubernetes.io/tls\nstringData: {tls.crt: hush}"} {
		bad := set(t, ns, "apiVersion: v1\nkind: Secret\nmetadata: {name: bad, namespace: NS}\n"+data)
		p := mustPlan(t, bad, apply.Options{})
		_, err := apply.Apply(t.Context(), config(t), bad, apply.Options{})
		if text := fmt.Sprintf("%s %v %+v %v", p, p.Err(), p.Steps, err); p.Steps[0].Intent != apply.WillFail || apply.Classify(err) != apply.ClassInvalid || strings.Contains(text, "hush") {
			t.Errorf("%s: %s", data, text)
		}
	}
	for _, data := range []string{"data: {word: {a: hush}}", "data: {word: [hush]}\ntype: kubernetes.io/tls"} {
		_, err := apply.NewSet("app", ns, objects(t, ns, "apiVersion: v1\nkind: Secret\nmetadata: {name: bad, namespace: NS}\n"+data)...)
		if err == nil || !strings.Contains(err.Error(), "data.word: want string, got ") || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", data, err)
		}
	}
}

// Field case F19: what the server holds for equal is no change, in a plan and in an apply, and starts no rollout.
func TestPlanOfEqualQuantities(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	group := ns + ".example.com"
	quota := strings.Replace(crd(group, "Quota"), "{n: {type: integer}}", "{nominal: {x-kubernetes-int-or-string: true}, list: {type: array, items: {type: string}}}", 1)
	text := `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: NS}
spec:
  replicas: 0
  selector: {matchLabels: {app: db}}
  serviceName: db
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - name: db
        image: registry.example/db:1
        resources: {requests: {cpu: CPU, memory: MEMORY}, limits: {cpu: LIMIT}}
        readinessProbe: {tcpSocket: {port: 1}, initialDelaySeconds: 0}
      - {name: side, image: "registry.example/side:1", resources: {}, env: []}
---
apiVersion: ` + group + `/v1
kind: Quota
metadata: {name: x, namespace: NS}
spec: {nominal: "12000m", list: []}
---
` + quota
	spelled := func(cpu, memory, limit string) *apply.Set {
		return set(t, ns, strings.NewReplacer("CPU", cpu, "MEMORY", memory, "LIMIT", limit).Replace(text))
	}
	first := spelled("1000m", "1000M", "\"1.5\"")
	mustApply(t, first, apply.Options{})
	generation := func() int64 {
		s, err := typed(t).AppsV1().StatefulSets(ns).Get(t.Context(), "db", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s.Generation
	}
	before := generation()
	for name, s := range map[string]*apply.Set{"the same": first, "other words": spelled(`"1"`, "1G", "1500m"), "more other words": spelled("1", "1000000k", "1.50")} {
		t.Run(name, func(t *testing.T) {
			if p := mustPlan(t, s, apply.Options{}); p.Changes() != 0 {
				t.Errorf("%s", p)
			}
			if out := mustApply(t, s, apply.Options{}); out.Changed() != 0 {
				t.Errorf("%+v", out.Objects)
			}
		})
	}
	if after := generation(); after != before {
		t.Errorf("generation %d, then %d", before, after)
	}
	if p := mustPlan(t, spelled("1001m", "1G", "1500m"), apply.Options{}); p.Changes() != 1 || !strings.Contains(p.String(), `resources.requests.cpu: "1" -> "1001m"`) {
		t.Errorf("a real change: %s", p)
	}
}

// Field case F19, of other kinds and fields: a claim, a quota, a volume, an autoscaler and a device in other words than the server's.
func TestPlanOfEqualValuesOfOtherKinds(t *testing.T) {
	t.Parallel()
	const meta = "metadata: {name: x, namespace: NS}\n"
	const template = "selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {"
	for name, tt := range map[string]struct{ doc, old, equal, other string }{
		"a claim": {"apiVersion: v1\nkind: PersistentVolumeClaim\n" + meta + "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1536Mi}}}", "1536Mi", "1.5Gi", "1537Mi"},
		"a quota": {"apiVersion: v1\nkind: ResourceQuota\n" + meta + "spec: {hard: {requests.cpu: 2000m, requests.memory: 1Gi}}", "2000m", "2.000", "2001m"},
		"an autoscaler": {"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\n" + meta +
			"spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x}, metrics: [{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 2048Mi}}}]}", "2048Mi", "2Gi", "3Gi"},
		"a volume in memory": {"apiVersion: apps/v1\nkind: DaemonSet\n" + meta + "spec: {" + template + "nodeSelector: {no: where}, volumes: [{name: v, emptyDir: {sizeLimit: 1024Ki}}], " + plainContainer + "}}}", "1024Ki", "1Mi", "2Mi"},
		"a device":           {"apiVersion: apps/v1\nkind: Deployment\n" + meta + "spec: {replicas: 0, " + template + `containers: [{name: a, image: "registry.example/a:1", resources: {limits: {example.com/gpu: "1"}}}]}}}`, `"1"`, "1000m", `"2"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			said := func(words string) *apply.Set { return set(t, ns, strings.Replace(tt.doc, tt.old, words, 1)) }
			mustApply(t, said(tt.old), apply.Options{})
			if p := mustPlan(t, said(tt.equal), apply.Options{}); p.Count(apply.WillLeave) != 1 {
				t.Errorf("%s", p)
			}
			if out := mustApply(t, said(tt.equal), apply.Options{}); out.Changed() != 0 {
				t.Errorf("%+v", out.Objects)
			}
			if p := mustPlan(t, said(tt.other), apply.Options{}); p.Count(apply.WillConfigure) != 1 && p.Err() == nil {
				t.Errorf("a real change: %s", p)
			}
		})
	}
}

// A plan holds everything that stands in its way, at once, and Apply refuses it with all of that.
func TestPlanTellsAllThatIsInTheWay(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, set(t, ns, stack), apply.Options{})
	_, err := typed(t).AppsV1().Deployments(ns).Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{FieldManager: "hand"})
	if err != nil {
		t.Fatal(err)
	}
	other := mapsSet(t, ns, "theirs")
	other.Name = "other"
	mustApply(t, other, apply.Options{})
	s := set(t, ns, strings.Replace(stack, "port: 80", "port: 800000", 1)+"\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: NS}\n---\n"+custom("nowhere.example.com", "Ghost"))
	p := mustPlan(t, s, apply.Options{})
	for ref, want := range map[string]apply.Intent{"Service " + ns + "/web": apply.WillFail, "Deployment.apps " + ns + "/web": apply.WillConflict, "ConfigMap " + ns + "/theirs": apply.WillConflict, "Ghost.nowhere.example.com " + ns + "/x": apply.WillFail} {
		found := false
		for _, step := range p.Steps {
			found = found || step.Ref.String() == ref && step.Intent == want && step.Why != ""
		}
		if !found {
			t.Errorf("%s is not %s in\n%s", ref, want, p)
		}
	}
	out, err := p.Apply(t.Context(), config(t))
	var conflict *apply.ConflictError
	var owned *apply.OwnedError
	var object *apply.ObjectError
	if !errors.As(err, &conflict) || !errors.As(err, &owned) || !errors.As(err, &object) || len(out.Objects) != 0 {
		t.Errorf("got %v", err)
	}
	// With the right to take, it is a change like any other.
	p = mustPlan(t, set(t, ns, stack), apply.Options{Conflicts: apply.Conflicts{TakeFrom: []string{"hand"}}})
	wantText(t, p, ns, "configure   Deployment.apps NS/web\n            spec.replicas: 5 -> 1\n1 to configure, 7 unchanged\n")
	if out, err := p.Apply(t.Context(), config(t)); err != nil || out.Changed() != 1 {
		t.Errorf("%+v, %v", out.Objects, err)
	}
}

// A plan is refused when something else would come out, before any write; what does not matter to it may move.
func TestApplyOfAPlanThatDoesNotHold(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, set(t, ns, stack), apply.Options{})
	changed := set(t, ns, strings.Replace(stack, `{a: "1"}`, `{a: "2"}`, 1))
	patch := func(body, manager string) {
		t.Helper()
		if _, err := typed(t).CoreV1().ConfigMaps(ns).Patch(t.Context(), "conf", types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: manager}); err != nil {
			t.Fatal(err)
		}
	}
	p := mustPlan(t, changed, apply.Options{})
	patch(`{"data":{"a":"3"}}`, "hand")
	out, err := p.Apply(t.Context(), config(t))
	var moved *apply.MovedError
	if !errors.As(err, &moved) || len(moved.Moved) != 1 || moved.Moved[0].String() != "ConfigMap "+ns+"/conf" || len(out.Objects) != 0 {
		t.Fatalf("got %v, %+v", err, out.Objects)
	}
	if step, _ := moved.Plan.Step(configMap(ns, "conf")); step.Intent != apply.WillConflict || step.Conflicts[0].Manager != "hand" {
		t.Errorf("the new plan: %s", moved.Plan)
	}

	p = mustPlan(t, changed, apply.Options{Conflicts: apply.Conflicts{TakeFrom: []string{"hand"}}})
	patch(`{"data":{"other":"x"}}`, "somebody")
	if out, err := p.Apply(t.Context(), config(t)); err != nil || out.Changed() != 1 {
		t.Errorf("a field of somebody else: %+v, %v", out.Objects, err)
	}
}

// The object moves between the look and the write: it is not written when that matters, and is when it does not.
func TestApplyOfAPlanWhileTheClusterMoves(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, body string
		moved      bool
	}{{"our field", `{"data":{"a":"3"}}`, true}, {"a field of somebody else", `{"data":{"other":"x"}}`, false}} {
		t.Run(tt.name, func(t *testing.T) {
			ns := newNamespace(t, nil)
			mustApply(t, set(t, ns, stack), apply.Options{})
			p := mustPlan(t, set(t, ns, strings.Replace(stack, `{a: "1"}`, `{a: "2"}`, 1)), apply.Options{})
			var once atomic.Bool
			cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/conf") && r.URL.Query().Get("dryRun") == "" && once.CompareAndSwap(false, true) {
					if _, err := typed(t).CoreV1().ConfigMaps(ns).Patch(t.Context(), "conf", types.MergePatchType, []byte(tt.body), metav1.PatchOptions{FieldManager: "hand"}); err != nil {
						t.Error(err)
					}
				}
				return next.RoundTrip(r)
			})
			_, err := p.Apply(t.Context(), cfg)
			var moved *apply.MovedError
			if errors.As(err, &moved) != tt.moved || !tt.moved && err != nil || !once.Load() {
				t.Errorf("got %v", err)
			}
			if tt.moved && (moved == nil || moved.Plan.Err() == nil) {
				t.Errorf("no new plan: %+v", moved)
			}
		})
	}
}

// A plan of an equal set costs reads of metadata only.
func TestPlanOfAnEqualSetReadsMetadataOnly(t *testing.T) {
	ns := newNamespace(t, nil)
	s := set(t, ns, stack)
	mustApply(t, s, apply.Options{Prune: true})
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet || strings.Contains(r.URL.Path, "/secrets") && !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		return next.RoundTrip(r)
	})
	p, err := apply.MakePlan(t.Context(), cfg, s, apply.Options{Prune: true})
	if err != nil || p.Changes() != 0 || p.Count(apply.WillLeave) != len(s.Objects) {
		t.Errorf("%s, %v", p, err)
	}
}

// A custom resource that its definition, as it is now, does not allow comes with the definition that does; one that is wrong in both is
// refused.
func TestPlanOfAKindWhoseDefinitionChanges(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	group := ns + ".example.com"
	mustApply(t, set(t, ns, crd(group, "Plum")+"\n---\n"+custom(group, "Plum")), apply.Options{})
	more := strings.Replace(crd(group, "Plum"), "{n: {type: integer}}", "{n: {type: integer}, s: {type: string}}", 1)
	changed := set(t, ns, more+"\n---\n"+strings.Replace(custom(group, "Plum"), "n: 1", "n: 1, s: x", 1))
	p := mustPlan(t, changed, apply.Options{})
	if p.Count(apply.WillArrive) != 1 || !strings.Contains(p.String(), "as its kind is defined now; the set changes the definition") {
		t.Errorf("%s", p)
	}
	if out, err := p.Apply(t.Context(), config(t)); err != nil || out.Changed() != 2 {
		t.Errorf("%+v, %v", out.Objects, err)
	}
	wrong := set(t, ns, more+"\n---\n"+strings.Replace(custom(group, "Plum"), "n: 1", "n: 1, typo: x", 1))
	if p := mustPlan(t, wrong, apply.Options{}); p.Count(apply.WillFail) != 1 {
		t.Errorf("%s", p)
	}
}

// What the plan keeps is kept, also when it becomes something that could be pruned while the plan is carried out.
func TestAPlanPrunesOnlyWhatItSaid(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, set(t, ns, four), apply.Options{})
	next := set(t, ns, strings.Replace(strings.Split(four, "\n---\n")[0], `a: "1"`, `a: "2"`, 1))
	opts := apply.Options{Prune: true}
	p := mustPlan(t, next, opts)
	secret := apply.Ref{Version: "v1", Kind: "Secret", Namespace: ns, Name: "x"}
	if step, _ := p.Step(secret); step.Intent != apply.WillKeep || p.Count(apply.WillPrune) != 2 {
		t.Fatalf("%s", p)
	}
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPatch && r.URL.Query().Get("dryRun") == "" {
			if _, err := typed(t).CoreV1().Secrets(ns).Patch(t.Context(), "x", types.MergePatchType, []byte(`{"data":null}`), metav1.PatchOptions{FieldManager: "hand"}); err != nil {
				t.Error(err)
			}
		}
		return next.RoundTrip(r)
	})
	out, err := p.Apply(t.Context(), cfg)
	if err != nil || out.Did(secret) != apply.Kept || out.Count(apply.Pruned) != 2 {
		t.Errorf("%+v, %v", out.Objects, err)
	}
	if out := mustApply(t, next, opts); out.Did(secret) != apply.Pruned {
		t.Errorf("the next run: %+v", out.Objects)
	}
}
