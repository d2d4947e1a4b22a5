package apply_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

// Field case F10: what one set made is refused to the next, is taken over only when that is asked for, stays the new owner's when the first
// comes back or stops rendering it, and keeps what only the owner put there. A Namespace and other things without one are no exception.
func TestTwoSetsDoNotTakeEachOthersObjects(t *testing.T) {
	t.Parallel()
	const meta = "metadata: {name: NAME, namespace: NS, annotations: {example.com/keep: \"VALUE\"}}\n"
	cluster := strings.Replace(meta, ", namespace: NS", "", 1)
	for name, doc := range map[string]string{
		"a map":           "apiVersion: v1\nkind: ConfigMap\n" + meta,
		"a namespace":     "apiVersion: v1\nkind: Namespace\n" + cluster,
		"a cluster role":  "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n" + cluster,
		"a minted Secret": "apiVersion: v1\nkind: Secret\n" + strings.Replace(meta, "{example", "{jr2.dev/mint: 'KEY: hex', example", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			of := func(owner, value string) *apply.Set {
				s := set(t, ns, strings.NewReplacer("VALUE", value, "NAME", "shared-"+ns[len(ns)-5:]).Replace(doc))
				s.Name = owner
				return s
			}
			ref := apply.RefOf(of("a", "").Objects[0])
			refused := func(s *apply.Set, owner string) {
				t.Helper()
				out, err := apply.Apply(t.Context(), config(t), s, apply.Options{})
				var owned, planned *apply.OwnedError
				if !errors.As(err, &owned) || owned.Owner != ns+"/"+owner || len(out.Objects) != 0 {
					t.Errorf("got %v, %+v", err, out.Objects)
				}
				if p := mustPlan(t, s, apply.Options{}); !errors.As(p.Err(), &planned) || p.Count(apply.WillConflict) != 1 {
					t.Errorf("planned %s", p)
				}
			}
			mustApply(t, of("a", "1"), apply.Options{})
			refused(of("b", "2"), "a")
			mustApply(t, of("b", "2"), apply.Options{AdoptFrom: []string{ns + "/a"}})
			refused(of("a", "1"), "b")
			// The first owner stops rendering it, and does not delete it, though it is named as data that may go.
			none, err := apply.NewSet("a", ns)
			if err != nil {
				t.Fatal(err)
			}
			if out := mustApply(t, none, apply.Options{Prune: true, PruneData: []apply.Ref{ref}}); out.Did(ref) != apply.Kept || out.Changed() != 0 {
				t.Errorf("pruned: %+v", out.Objects)
			}
			if out := mustApply(t, of("b", "2"), apply.Options{}); out.Changed() != 0 {
				t.Errorf("the owner's next run: %+v", out.Objects)
			}
		})
	}
}

// A change by another manager is a conflict that names it and the field; it is taken over only from managers that are listed.
func TestConflicts(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	s := set(t, ns, stack)
	mustApply(t, s, apply.Options{})
	deployments := typed(t).AppsV1().Deployments(ns)
	_, err := deployments.Patch(t.Context(), "web", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"registry.example/web:hand"}]}}}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	if err != nil {
		t.Fatal(err)
	}
	for _, opts := range []apply.Options{{}, {Conflicts: apply.Conflicts{TakeFrom: []string{"helm"}}}} {
		_, err = apply.Apply(t.Context(), config(t), s, opts)
		var conflict *apply.ConflictError
		want := apply.Conflict{Manager: "kubectl-edit", Field: `.spec.template.spec.containers[name="web"].image`}
		if !errors.As(err, &conflict) || len(conflict.Conflicts) != 1 || conflict.Conflicts[0] != want || apply.Classify(err) != apply.ClassConflict {
			t.Fatalf("got %v", err)
		}
	}
	out := mustApply(t, s, apply.Options{Conflicts: apply.Conflicts{TakeFrom: []string{"kubectl-edit"}}})
	if out.Changed() != 1 {
		t.Errorf("got %+v", out.Objects)
	}
	d, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || d.Spec.Template.Spec.Containers[0].Image != "registry.example/web:1" {
		t.Errorf("the image is not ours again: %v", err)
	}
}

// Fields of managers to whom they are to be left are not asked for, others of the same object are; nothing is taken from them by the way.
func TestFieldsAreLeftToTheirManagers(t *testing.T) {
	t.Parallel()
	for _, planned := range []bool{false, true} {
		ns := newNamespace(t, nil)
		mustApply(t, set(t, ns, four), apply.Options{})
		deployments := typed(t).AppsV1().Deployments(ns)
		for manager, patch := range map[string]string{
			"scaler":   `{"spec":{"replicas":4,"template":{"spec":{"containers":[{"name":"x","image":"registry.example/x:theirs"}]}}}}`,
			"hand":     `{"spec":{"template":{"spec":{"containers":[{"name":"x","env":[{"name":"A","value":"hand"}]}]}}}}`,
			"nobody's": `{"metadata":{"labels":{"x.example.com/more":"x"}}}`,
		} {
			if _, err := deployments.Patch(t.Context(), "x", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}); err != nil {
				t.Fatal(err)
			}
		}
		s := set(t, ns, strings.Replace(four, `value: "2"`, `value: "3"`, 1))
		opts := apply.Options{Conflicts: apply.Conflicts{LeaveTo: []string{"scaler"}}}
		if p := mustPlan(t, s, opts); apply.Classify(p.Err()) != apply.ClassConflict {
			t.Errorf("with a person in the way too: %s", p)
		}
		opts.Conflicts.TakeFrom = []string{"hand"}
		p := mustPlan(t, s, opts)
		if text := p.String(); p.Changes() != 1 || strings.Contains(text, "replicas:") || !strings.Contains(text, `.spec.replicas to "scaler"`) || !strings.Contains(text, `env[name="A"].value: "hand" -> "1"`) || !strings.Contains(text, `env[name="B"].value: "2" -> "3"`) {
			t.Errorf("%s", p)
		}
		var err error
		if planned {
			_, err = p.Apply(t.Context(), config(t))
		} else {
			_, err = apply.Apply(t.Context(), config(t), s, opts)
		}
		d, getErr := deployments.Get(t.Context(), "x", metav1.GetOptions{})
		if err != nil || getErr != nil {
			t.Fatal(err, getErr)
		}
		c := d.Spec.Template.Spec.Containers[0]
		if *d.Spec.Replicas != 4 || c.Image != "registry.example/x:theirs" || c.Env[0].Value != "1" || c.Env[1].Value != "3" {
			t.Errorf("%d replicas, %+v", *d.Spec.Replicas, c)
		}
		for _, verify := range []apply.Verification{apply.VerifyMetadata, apply.VerifyFull} {
			opts.Verify = verify
			if out := mustApply(t, s, opts); out.Changed() != 0 {
				t.Errorf("the next run (%q): %+v", verify, out.Objects)
			}
		}
	}
}
