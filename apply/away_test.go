package apply_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"jr2.dev/jr2/apply"
)

// A group whose own server is away stops its kinds alone, under that name, and what the set has there is neither pruned nor forgotten. Not
// parallel: namespaces can't be deleted while a group is away.
func TestAGroupWhoseServerIsAway(t *testing.T) {
	ns := newNamespace(t, nil)
	group := ns + ".example.com"
	service := set(t, ns, `apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.`+group+`}
spec: {group: `+group+`, version: v1, groupPriorityMinimum: 1, versionPriority: 1, insecureSkipTLSVerify: true, service: {namespace: NS, name: none}}`)
	service.Name = "away"
	mustApply(t, service, apply.Options{})
	dead := apply.Ref{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService", Name: "v1." + group}
	defer func() {
		if _, err := apply.Remove(context.WithoutCancel(t.Context()), config(t), apply.RemoveOptions{}, dead); err != nil {
			t.Error(err)
		}
	}()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := typed(t).Discovery().RESTClient().Get().AbsPath("/apis", group, "v1").Do(ctx).Error()
		return apierrors.IsServiceUnavailable(err), nil
	})
	if err != nil {
		t.Fatal(err)
	}

	s := set(t, ns, custom(group, "Thing")+"\n---\n"+four)
	opts := apply.Options{Prune: true, Retry: apply.Retry{Limit: 300 * time.Millisecond}}
	p := mustPlan(t, s, opts)
	thing := apply.Ref{Group: group, Version: "v1", Kind: "Thing", Namespace: ns, Name: "x"}
	if step, _ := p.Step(thing); step.Intent != apply.WillFail || !strings.Contains(step.Why, "the server that serves "+group+"/v1 is away") || p.Count(apply.WillCreate) != 4 {
		t.Errorf("planned %s", p)
	}
	out, err := apply.Apply(t.Context(), config(t), s, opts)
	if out.Count(apply.Created) != 4 || apply.Classify(err) != apply.ClassUnavailable || !strings.Contains(err.Error(), thing.String()+": the server that serves "+group+"/v1 is away") {
		t.Errorf("%+v, %v", out.Objects, err)
	}
	for range 2 {
		out = mustApply(t, set(t, ns, four), opts)
		if out.Changed() != 0 || out.Did(thing) != apply.Kept || !strings.Contains(out.Objects[4].Why, "is away") {
			t.Errorf("%+v", out.Objects)
		}
	}
}

// What a run costs, in requests: nothing for each object that is as asked, and one look more for one that changed.
func TestRequestsOfARun(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	s := set(t, ns, forty(1))
	mustApply(t, s, apply.Options{Prune: true})
	// The controller of Deployments writes their status; that costs nothing.
	var mu sync.Mutex
	var requests []string
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		mu.Lock()
		requests = append(requests, r.Method+" "+r.URL.Path)
		mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "/secrets") && !strings.HasPrefix(r.Header.Get("Accept"), "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList") {
			t.Errorf("a list of %s", r.Header.Get("Accept"))
		}
		return next.RoundTrip(r)
	})
	if _, err := apply.Apply(t.Context(), cfg, s, apply.Options{Prune: true}); err != nil || len(requests) != 7 {
		t.Errorf("no change: %v, %d requests: %s", err, len(requests), requests)
	}
	requests = nil
	one := set(t, ns, strings.Replace(forty(1), `data: {a: "1"}`, `data: {a: "2"}`, 1))
	if out, err := apply.Apply(t.Context(), cfg, one, apply.Options{Prune: true}); err != nil || out.Changed() != 1 || len(requests) != 10 {
		t.Errorf("one change: %v, %d requests: %s", err, len(requests), requests)
	}
}

// Verify: full sees what the metadata were made to hide.
func TestVerifyFullTrustsNoNotes(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	s := set(t, ns, four)
	mustApply(t, s, apply.Options{})
	at := driftedKind{kind: "deployments", group: "apps"}.at(t, ns)
	web, err := at.Get(t.Context(), "x", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, restore := range []bool{false, true} { // a label changed, then the notes put back as they were
		err := change(t.Context(), at, func(o *unstructured.Unstructured) error {
			if restore {
				o.SetManagedFields(web.GetManagedFields())
			}
			return unstructured.SetNestedField(o.Object, "red", "metadata", "labels", "team")
		}, "hand")
		if err != nil {
			t.Fatal(err)
		}
	}
	ref := apply.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: ns, Name: "x"}
	if out := mustApply(t, s, apply.Options{}); out.Changed() != 0 {
		t.Fatalf("the notes were not put back, so this shows nothing: %+v", out.Objects)
	}
	opts := apply.Options{Verify: apply.VerifyFull}
	if p := mustPlan(t, s, opts); p.Changes() != 1 || !strings.Contains(p.String(), `metadata.labels.team: "red" -> "blue"`) {
		t.Errorf("%s", p)
	}
	if out := mustApply(t, s, opts); out.Changed() != 1 || out.Did(ref) != apply.Configured {
		t.Errorf("%+v", out.Objects)
	}
	noAlarm(t, s)
}
