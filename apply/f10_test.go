package apply_test

import (
	"errors"
	"strings"
	"testing"

	"jr2.dev/jr2/apply"
)

// TestF10TheCaseItself is case F10 as it is written: the projects a and b hold one Namespace, only a sets a keep annotation, they converge a, b, a, and
// b stops rendering it. And what the case does not name: other kinds, and the same when it was asked to be taken over.
func TestF10TheCaseItself(t *testing.T) {
	t.Parallel()
	cluster := func(head string) string { return head + "\nmetadata: {name: SHARED, annotations: {KEEP}}\n" }
	for name, doc := range map[string]string{
		"a namespace":    cluster("apiVersion: v1\nkind: Namespace"),
		"a map":          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: SHARED, namespace: NS, annotations: {KEEP}}\n",
		"a class":        cluster("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nvalue: 7"),
		"a cluster role": cluster("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole"),
	} {
		for _, adopt := range []bool{false, true} {
			row := name
			if adopt {
				row += ", taken over"
			}
			t.Run(row, func(t *testing.T) {
				t.Parallel()
				ns := newNamespace(t, nil)
				of := func(owner, keep string) *apply.Set {
					return mustSet(t, owner, ns, strings.NewReplacer("SHARED", "f10-"+ns[len(ns)-5:], "KEEP", keep).Replace(doc))
				}
				a, b := of("a", `example.com/keep: "yes"`), of("b", "")
				ref := apply.RefOf(a.Objects[0])
				kept := func(when string) {
					t.Helper()
					p := mustPlan(t, a, apply.Options{AdoptFrom: []string{ns + "/b"}})
					step, _ := p.Step(ref)
					for _, f := range step.Fields {
						t.Errorf("%s it has lost %s", when, f)
					}
				}
				opts := apply.Options{Prune: true, PruneData: []apply.Ref{ref}}
				if adopt {
					opts.AdoptFrom = []string{ns + "/a", ns + "/b"}
				}
				mustApply(t, a, opts)
				out, err := apply.Apply(t.Context(), config(t), b, opts)
				var owned *apply.OwnedError
				if refused := errors.As(err, &owned) && owned.Owner == ns+"/a" && len(out.Objects) == 0; refused == adopt || adopt && err != nil {
					t.Fatalf("b: %v, %+v", err, out.Objects)
				}
				if !adopt {
					kept("after b was refused")
				}
				mustApply(t, a, opts)
				kept("after a's second run")
				none, err := apply.NewSet("b", ns)
				if err != nil {
					t.Fatal(err)
				}
				opts.AdoptFrom = nil
				if out := mustApply(t, none, opts); out.Count(apply.Pruned) != 0 {
					t.Errorf("b stopped rendering it, and deleted it: %+v", out.Objects)
				}
				kept("after b stopped rendering it")
				if out := mustApply(t, a, opts); out.Did(ref) != apply.Unchanged {
					t.Errorf("a's third run: %+v", out.Objects)
				}
			})
		}
	}
}
