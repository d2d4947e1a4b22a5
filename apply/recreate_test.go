package apply_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

func asMoved(err error, moved **apply.MovedError) bool { return errors.As(err, moved) }

const onceJob = `apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: NS}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: once, image: "registry.example/once:1"}]`

func onceRef(ns string) apply.Ref {
	return apply.Ref{Group: "batch", Version: "v1", Kind: "Job", Namespace: ns, Name: "once"}
}

func jobUID(t *testing.T, ns string) types.UID {
	t.Helper()
	j, err := typed(t).BatchV1().Jobs(ns).Get(t.Context(), "once", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return j.UID
}

// Field case F25: a Job is made again only where that was allowed, only for a field that the server says is immutable, and only when the
// server takes the new one; the plan says so before. Otherwise the error names the field and the ways out.
func TestAJobIsMadeAgainWhereAllowed(t *testing.T) {
	t.Parallel()
	moved := strings.Replace(onceJob, "once:1", "once:2", 1)
	allow := apply.Options{Adopt: true, Recreate: []string{"Job.batch"}}
	for _, tt := range []struct {
		name, next string
		opts       apply.Options
		want       apply.Intent
		class      apply.Class
	}{
		{name: "not allowed", next: moved, want: apply.WillFail, class: apply.ClassImmutable},
		{name: "another kind is allowed", next: moved, opts: apply.Options{Recreate: []string{"Deployment.apps", "Job"}}, want: apply.WillFail, class: apply.ClassImmutable},
		{name: "allowed", next: moved, opts: allow, want: apply.WillRecreate},
		{name: "allowed by itself", next: strings.Replace(moved, "namespace: NS}", `namespace: NS, annotations: {argocd.argoproj.io/sync-options: "Prune=false, Force=true"}}`, 1), want: apply.WillRecreate},
		{name: "not immutable", next: strings.Replace(onceJob, "spec:\n", "spec:\n  suspend: true\n", 1), opts: allow, want: apply.WillConfigure},
		{name: "unchanged", next: onceJob, opts: allow, want: apply.WillLeave},
		{name: "an empty selector", next: strings.Replace(onceJob, "spec:\n", "spec:\n  selector: {}\n", 1), want: apply.WillLeave},
		{name: "the new one is refused", next: strings.Replace(moved, "Never", "Never, hostNetwork: 7", 1), opts: allow, want: apply.WillFail, class: apply.ClassInvalid},
		{name: "the new one is refused too", next: strings.Replace(moved, "name: once, image", "name: Once, image", 1), opts: allow, want: apply.WillFail, class: apply.ClassInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			mustApply(t, set(t, ns, onceJob), apply.Options{})
			before := jobUID(t, ns)
			next := set(t, ns, strings.Replace(tt.next, "Never, hostNetwork: 7", "Never\n      hostNetwork: 7", 1))
			p := mustPlan(t, next, tt.opts)
			step, _ := p.Step(onceRef(ns))
			if step.Intent != tt.want || apply.Classify(p.Err()) != tt.class {
				t.Fatalf("planned %v\n%s", p.Err(), p)
			}
			if tt.want == apply.WillRecreate && (step.Why != "spec.template can't be changed once it is made" || !strings.HasSuffix(p.String(), "\n1 to delete and make again\n")) {
				t.Errorf("the plan says\n%s", p)
			}
			dry, dryErr := apply.Apply(t.Context(), config(t), next, apply.Options{DryRun: true, Recreate: tt.opts.Recreate})
			if jobUID(t, ns) != before {
				t.Fatal("a look deleted it")
			}
			out, err := apply.Apply(t.Context(), config(t), next, tt.opts)
			if apply.Classify(err) != tt.class || apply.Classify(dryErr) != tt.class {
				t.Fatalf("%v; dry: %v", err, dryErr)
			}
			did := map[apply.Intent]apply.Action{apply.WillRecreate: apply.Recreated, apply.WillConfigure: apply.Configured, apply.WillLeave: apply.Unchanged}[tt.want]
			if out.Did(onceRef(ns)) != did || dry.Did(onceRef(ns)) != did {
				t.Errorf("did %q, dry %q", out.Did(onceRef(ns)), dry.Did(onceRef(ns)))
			}
			if again := jobUID(t, ns) != before; again != (tt.want == apply.WillRecreate) {
				t.Errorf("made again: %t", again)
			}
			var fixed *apply.ImmutableError
			if tt.class == apply.ClassImmutable && (!errors.As(err, &fixed) || !slices.Equal(fixed.Fields, []string{"spec.template"}) || !strings.Contains(err.Error(), "make it a hook")) {
				t.Errorf("got %v", err)
			}
			if tt.class == apply.ClassNone && mustApply(t, next, tt.opts).Changed() != 0 {
				t.Error("the next run changed something")
			}
		})
	}
}

// A plan has it made again only when it said so, and what holds data never is.
func TestWhatIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: state, namespace: NS, annotations: {argocd.argoproj.io/sync-options: Replace=true}}\nspec: {storageClassName: a, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
	db := "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db, namespace: NS}\nspec: {replicas: 0, serviceName: a, persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {" + plainContainer + "}}}"
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: fixed, namespace: NS}\nimmutable: true\nstringData: {word: hush}"
	opts := apply.Options{Recreate: []string{"PersistentVolumeClaim", "StatefulSet.apps", "Secret"}}
	mustApply(t, set(t, ns, claim+"\n---\n"+db+"\n---\n"+secret), opts)
	for field, doc := range map[string]string{
		"spec":  strings.Replace(claim, "storageClassName: a", "storageClassName: b", 1),
		"spec ": strings.Replace(db, "serviceName: a", "serviceName: b", 1),
		"data":  strings.Replace(secret, "hush", "hush-hush", 1),
	} {
		var fixed *apply.ImmutableError
		_, err := apply.Apply(t.Context(), config(t), set(t, ns, doc), opts)
		if !errors.As(err, &fixed) || !slices.Equal(fixed.Fields, []string{strings.TrimSpace(field)}) || !errors.As(mustPlan(t, set(t, ns, doc), opts).Err(), &fixed) {
			t.Errorf("%s: %v", field, err)
		}
	}
	// A stranger's object is not deleted.
	stranger := newNamespace(t, nil)
	other := set(t, stranger, onceJob)
	mustApply(t, other, apply.Options{Shared: true})
	allow := apply.Options{Adopt: true, Recreate: []string{"Job.batch"}}
	if _, err := apply.Apply(t.Context(), config(t), set(t, stranger, strings.Replace(onceJob, "once:1", "once:2", 1)), allow); apply.Classify(err) != apply.ClassImmutable {
		t.Errorf("a stranger's: %v", err)
	}
}

// Field case F25: a Job that its time to live took away is not run again, in an apply or a plan; a changed one is.
func TestAJobThatIsOverIsNotRunAgain(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	brief := strings.Replace(onceJob, "spec:\n", "spec:\n  ttlSecondsAfterFinished: 100\n", 1)
	s := set(t, ns, brief)
	mustApply(t, s, apply.Options{})
	lasting := set(t, ns, strings.Replace(onceJob, "name: once, n", "name: lasting, n", 1))
	lasting.Name = "lasting"
	mustApply(t, lasting, apply.Options{})
	now := metav1.DeletePropagationBackground
	for _, name := range []string{"once", "lasting"} {
		if err := typed(t).BatchV1().Jobs(ns).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &now}); err != nil {
			t.Fatal(err)
		}
	}
	for _, opts := range []apply.Options{{}, {Wait: true}, {Verify: apply.VerifyFull}, {DryRun: true}, {Prune: true}} {
		out := mustApply(t, s, opts)
		if out.Did(onceRef(ns)) != apply.Unchanged || !strings.Contains(out.Objects[0].Why, "not run again") {
			t.Errorf("%+v: %+v", opts, out.Objects)
		}
	}
	if p := mustPlan(t, s, apply.Options{}); p.Changes() != 0 {
		t.Errorf("%s", p)
	}
	// Nor while it goes.
	other := newNamespace(t, nil)
	going := set(t, other, brief)
	mustApply(t, going, apply.Options{})
	hold(t, other, "once")
	if out, p := mustApply(t, going, apply.Options{Wait: true}), mustPlan(t, going, apply.Options{}); out.Changed() != 0 || p.Changes() != 0 {
		t.Errorf("%+v\n%s", out.Objects, p)
	}
	letGo(t, other, "once")
	if out := mustApply(t, set(t, ns, strings.Replace(brief, "once:1", "once:2", 1)), apply.Options{}); out.Did(onceRef(ns)) != apply.Created {
		t.Errorf("changed: %+v", out.Objects)
	}
	if out := mustApply(t, lasting, apply.Options{}); out.Count(apply.Created) != 1 {
		t.Errorf("without a time to live: %+v", out.Objects)
	}
}

// A run that is cut off while it makes a Job again is completed by the next one, wherever that was, and the Job is made again once.
func TestMakingAgainIsCompletedAfterACrash(t *testing.T) {
	t.Parallel()
	opts := apply.Options{Recreate: []string{"Job.batch"}, Concurrency: 1}
	brief := strings.Replace(onceJob, "spec:\n", "spec:\n  ttlSecondsAfterFinished: 1000\n", 1)
	for n := 1; ; n++ {
		ns := newNamespace(t, nil)
		mustApply(t, set(t, ns, brief), opts)
		before := jobUID(t, ns)
		next := set(t, ns, strings.Replace(brief, "once:1", "once:2", 1))
		ctx, kill := context.WithCancel(t.Context())
		var count atomic.Int64
		cfg := through(t, func(forward http.RoundTripper, r *http.Request) (*http.Response, error) {
			resp, err := forward.RoundTrip(r)
			if count.Add(1) < int64(n) || err != nil {
				return resp, err
			}
			kill()
			return nil, errors.Join(resp.Body.Close(), context.Canceled)
		})
		_, err := apply.Apply(ctx, cfg, next, opts)
		reached := int(count.Load()) >= n
		kill()
		if reached != (err != nil) {
			t.Fatalf("cut off at request %d: %t, %v", n, reached, err)
		}
		mustApply(t, next, opts)
		after := jobUID(t, ns)
		j, err := typed(t).BatchV1().Jobs(ns).Get(t.Context(), "once", metav1.GetOptions{})
		if err != nil || before == after || j.Spec.Template.Spec.Containers[0].Image != "registry.example/once:2" {
			t.Errorf("request %d: %v, made again: %t, %+v", n, err, before != after, j.Spec.Template.Spec.Containers)
		}
		if out := mustApply(t, next, opts); out.Changed() != 0 || jobUID(t, ns) != after {
			t.Errorf("request %d, the third run: %+v", n, out.Objects)
		}
		if !reached {
			if n < 10 {
				t.Errorf("a run of %d requests does not make anything again", n)
			}
			return
		}
	}
}
