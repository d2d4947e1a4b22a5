package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/apply"
)

// A lake is a set with a custom resource and what serves it.
type lake struct {
	ns, group string
	client    dynamic.Interface
}

func newLake(t *testing.T) *lake {
	t.Helper()
	ns := newNamespace(t, nil)
	client, err := dynamic.NewForConfig(config(t))
	if err != nil {
		t.Fatal(err)
	}
	l := &lake{ns: ns, group: ns + ".example.com", client: client}
	mustApply(t, l.whole(t), apply.Options{Prune: true})
	return l
}

func (l *lake) served() string {
	return strings.Replace(custom(l.group, "Lake"), "name: x", "name: logs", 1)
}

func (l *lake) operator() string {
	return join(account("operator"), deployment("operator"))
}

func (l *lake) whole(t *testing.T) *apply.Set {
	return set(t, l.ns, join(crd(l.group, "Lake"), l.served(), l.operator(), conf("conf", "x")))
}

// definition is the set without the resource and what serves it.
func (l *lake) definition(t *testing.T) *apply.Set {
	return set(t, l.ns, join(crd(l.group, "Lake"), conf("conf", "x")))
}

func (l *lake) ref() apply.Ref {
	return apply.Ref{Group: l.group, Version: "v1", Kind: "Lake", Namespace: l.ns, Name: "logs"}
}

func (l *lake) deployment() apply.Ref {
	return apply.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: l.ns, Name: "operator"}
}

func (l *lake) lakes() dynamic.ResourceInterface {
	return l.client.Resource(schema.GroupVersionResource{Group: l.group, Version: "v1", Resource: "lakes"}).Namespace(l.ns)
}

// finalize sets the finalizers of the resource, as a controller does.
func (l *lake) finalize(t *testing.T, finalizers string) {
	t.Helper()
	patch := []byte(`{"metadata":{"finalizers":` + finalizers + `}}`)
	if _, err := l.lakes().Patch(context.WithoutCancel(t.Context()), "logs", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "operator"}); err != nil {
		t.Error(err)
	}
}

// operates says whether the operator's Deployment and account are there.
func (l *lake) operates(t *testing.T) (deployment, account bool) {
	t.Helper()
	_, err := typed(t).AppsV1().Deployments(l.ns).Get(t.Context(), "operator", metav1.GetOptions{})
	_, accountErr := typed(t).CoreV1().ServiceAccounts(l.ns).Get(t.Context(), "operator", metav1.GetOptions{})
	return err == nil, accountErr == nil
}

// Field case F33: a custom resource goes before what serves it, and is waited for; the plan shows that order, and who holds it is named.
func TestACustomResourceGoesBeforeWhatServesIt(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]func(*testing.T, *lake) *apply.Set{
		"the definition stays": func(t *testing.T, l *lake) *apply.Set { return l.definition(t) },
		"the set is empty": func(t *testing.T, l *lake) *apply.Set {
			s, err := apply.NewSet("app", l.ns)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLake(t)
			l.finalize(t, `["example.com/drain"]`)
			s := second(t, l)
			p := mustPlan(t, s, apply.Options{Prune: true})
			var order []string
			for _, step := range p.Steps {
				if step.Intent == apply.WillPrune {
					order = append(order, step.Ref.Kind)
				}
			}
			if len(order) < 3 || order[0] != "Lake" {
				t.Errorf("planned in the order %v", order)
			}
			if step, _ := p.Step(l.deployment()); !strings.Contains(step.Why, "after Lake") {
				t.Errorf("the plan does not say that the Deployment waits: %+v", step)
			}
			held := ""
			out := mustApply(t, s, apply.Options{Prune: true, Events: func(e apply.Event) {
				if w, ok := e.(apply.Waiting); ok && w.Ref == l.ref() {
					held = w.Reason
					if there, account := l.operates(t); !there || !account {
						t.Error("what serves the resource went before it")
					}
					l.finalize(t, `null`)
				}
			}})
			if !strings.Contains(held, "example.com/drain") || out.Did(l.ref()) != apply.Pruned || out.Did(l.deployment()) != apply.Pruned {
				t.Errorf("held by %q, %+v", held, out.Objects)
			}
			if there, account := l.operates(t); there || account {
				t.Error("what served the resource is there still")
			}
		})
	}
}

// When the wait ends, what may serve the resource is kept, the error names who holds it and the command, and the next run goes on.
func TestWhatServesAHeldResourceIsKept(t *testing.T) {
	t.Parallel()
	l := newLake(t)
	l.finalize(t, `["example.com/drain"]`)
	brief := apply.Options{Prune: true, Ready: apply.WaitOptions{Timeout: 300 * time.Millisecond}}
	for range 2 {
		out, err := apply.Apply(t.Context(), config(t), l.definition(t), brief)
		var removal *apply.RemovalError
		if !errors.As(err, &removal) || len(removal.Held) != 1 || removal.Held[0].Ref != l.ref() || len(removal.Kept) != 2 {
			t.Fatalf("got %v", err)
		}
		for _, want := range []string{"example.com/drain", "Deployment.apps " + l.ns + "/operator", "kubectl describe lake." + l.group + " logs -n " + l.ns} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error lacks %q: %v", want, err)
			}
		}
		if out.Did(l.ref()) != apply.Terminating || out.Did(l.deployment()) != apply.Kept {
			t.Errorf("%+v", out.Objects)
		}
		if there, account := l.operates(t); !there || !account {
			t.Error("what serves the resource is gone")
		}
	}
	l.finalize(t, `null`)
	out := mustApply(t, l.definition(t), apply.Options{Prune: true})
	if there, account := l.operates(t); there || account || out.Did(l.deployment()) != apply.Pruned {
		t.Errorf("the next run: %+v", out.Objects)
	}
}

// A definition that goes takes its resources along, so it goes before what serves them; so does an object of a built-in kind that a controller of
// somebody's holds by a finalizer.
func TestWhatAFinalizerHoldsGoesBeforeWhatMayServeIt(t *testing.T) {
	t.Parallel()
	t.Run("a definition", func(t *testing.T) {
		t.Parallel()
		l := newLake(t)
		if _, err := apply.Apply(t.Context(), config(t), set(t, l.ns, join(crd(l.group, "Lake"), l.operator())), apply.Options{}); err != nil {
			t.Fatal(err)
		}
		l.finalize(t, `["example.com/drain"]`)
		definition := apply.RefOf(set(t, l.ns, crd(l.group, "Lake")).Objects[0])
		none, err := apply.NewSet("app", l.ns)
		if err != nil {
			t.Fatal(err)
		}
		brief := apply.Options{Prune: true, PruneData: []apply.Ref{definition}, Ready: apply.WaitOptions{Timeout: 300 * time.Millisecond}}
		var removal *apply.RemovalError
		if _, err = apply.Apply(t.Context(), config(t), none, brief); !errors.As(err, &removal) {
			t.Fatalf("got %v", err)
		}
		if there, account := l.operates(t); !there || !account {
			t.Error("what serves the definition's resources is gone")
		}
		l.finalize(t, `null`)
		brief.Ready.Timeout = time.Minute
		mustApply(t, none, brief)
		if there, _ := l.operates(t); there {
			t.Error("what served them is there still")
		}
	})
	t.Run("a map with a finalizer", func(t *testing.T) {
		t.Parallel()
		ns := newNamespace(t, nil)
		mustApply(t, set(t, ns, join(conf("held", "x"), account("operator"), deployment("operator"), conf("conf", "x"))), apply.Options{})
		maps := typed(t).CoreV1().ConfigMaps(ns)
		finalize := func(list string) {
			if _, err := maps.Patch(context.WithoutCancel(t.Context()), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":`+list+`}}`), metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		}
		finalize(`["example.com/hold"]`)
		t.Cleanup(func() { finalize(`null`) })
		brief := apply.Options{Prune: true, Ready: apply.WaitOptions{Timeout: 300 * time.Millisecond}}
		out, err := apply.Apply(t.Context(), config(t), set(t, ns, conf("conf", "x")), brief)
		if !errors.As(err, new(*apply.RemovalError)) || out.Count(apply.Kept) != 2 {
			t.Errorf("%v, %+v", err, out.Objects)
		}
	})
}

// One delete that is refused stops no other.
func TestOneRefusedDeleteStopsNoOther(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, mapsSet(t, ns, "a", "b", "c", "stays"), apply.Options{})
	cfg := refusing(t, "DELETE", "/configmaps/b")
	out, err := apply.Apply(t.Context(), cfg, mapsSet(t, ns, "stays"), apply.Options{Prune: true})
	if object := (*apply.ObjectError)(nil); !errors.As(err, &object) || object.Ref != configMap(ns, "b") {
		t.Errorf("got %v", err)
	}
	if out.Did(configMap(ns, "a")) != apply.Pruned || out.Did(configMap(ns, "c")) != apply.Pruned || out.Did(configMap(ns, "b")) != apply.Kept {
		t.Errorf("%+v", out.Objects)
	}
	if out := mustApply(t, mapsSet(t, ns, "stays"), apply.Options{Prune: true}); out.Did(configMap(ns, "b")) != apply.Pruned {
		t.Errorf("the next run: %+v", out.Objects)
	}
}

// deployment is one without pods, so that nothing is waited for.
func deployment(name string) string {
	return strings.ReplaceAll(`apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: NS}
spec: {replicas: 0, selector: {matchLabels: {app: NAME}}, template: {metadata: {labels: {app: NAME}}, spec: {`+plainContainer+`}}}`, "NAME", name)
}

// refusing is a cluster that forbids one request.
func refusing(t *testing.T, method, path string) *rest.Config {
	return through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method == method && strings.HasSuffix(r.URL.Path, path) {
			return answer(r, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"not allowed"}`), nil
		}
		return next.RoundTrip(r)
	})
}

// Names of roles may hold what a shell reads, and whoever makes one is not who pastes the command.
func TestACommandToPasteHoldsNoOtherCommand(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	dir := t.TempDir()
	mustApply(t, mapsSet(t, ns, "stays"), apply.Options{})
	name := "a'b; touch '" + strings.ReplaceAll(dir, "/", "$(printf '\\057')") + "$(printf '\\057')pasted"
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := typed(t).RbacV1().Roles(ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(apply.Ref{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role", Namespace: ns, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	addRecord(t, ns, "app", string(raw))
	out := mustApply(t, mapsSet(t, ns, "stays"), apply.Options{Prune: true})
	at := slices.IndexFunc(out.Objects, func(o apply.ObjectResult) bool { return o.Ref.Name == name })
	if at < 0 {
		t.Fatalf("%+v", out.Objects)
	}
	_, command, ok := strings.Cut(out.Objects[at].Why, "to delete it: ")
	if !ok {
		t.Fatalf("no command: %s", out.Objects[at].Why)
	}
	if _, err := shared.Shell(t.Context(), command); err != nil {
		t.Error(err)
	}
	if _, err := typed(t).RbacV1().Roles(ns).Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the role: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the command did more: %v %v", left, err)
	}
}
