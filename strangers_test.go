package jr2_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2"
	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
	"jr2.dev/jr2/preflight"
)

// A stranger works with the cluster as others do, by kubectl: the server notes it as the manager of what it makes.
type stranger struct {
	*world
	objects dynamic.Interface
}

func (w *world) stranger(t *testing.T) stranger {
	t.Helper()
	cfg := rest.CopyConfig(w.Config())
	cfg.QPS, cfg.UserAgent = -1, "kubectl"
	objects, err := dynamic.NewForConfig(cfg)
	must(t, err)
	return stranger{w, objects}
}

var (
	secretKind     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	configMapKind  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	claimKind      = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	namespaceKind  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	deploymentKind = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	lakeKind       = schema.GroupVersionResource{Group: "stranger.test", Version: "v1", Resource: "lakes"}
	definitions    = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	repoKind       = v1alpha1.GroupVersion().WithResource("repos")
	sandboxKind    = v1alpha1.GroupVersion().WithResource("sandboxes")
)

// makes makes an object from JSON.
func (s stranger) makes(t *testing.T, kind schema.GroupVersionResource, namespace, object string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	must(t, json.Unmarshal([]byte(object), &o.Object))
	made, err := s.objects.Resource(kind).Namespace(namespace).Create(t.Context(), o, metav1.CreateOptions{})
	must(t, err)
	return made
}

// lakes serves a kind of the stranger's own.
func (s stranger) lakes(t *testing.T) {
	t.Helper()
	o := &unstructured.Unstructured{}
	must(t, json.Unmarshal([]byte(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "lakes.stranger.test"}, "spec": {
		"group": "stranger.test", "scope": "Namespaced", "names": {"plural": "lakes", "singular": "lake", "kind": "Lake"}, "versions": [{"name": "v1", "served": true, "storage": true,
		"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`), &o.Object))
	if _, err := s.objects.Resource(definitions).Create(t.Context(), o, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		_, err := s.objects.Resource(lakeKind).Namespace("default").List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
}

// waitFor waits for a state of the cluster.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatal("the cluster did not get there in two minutes")
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// belongings are what a stranger has in a namespace.
type belongings struct {
	stranger
	namespace string
	uids      map[schema.GroupVersionResource]types.UID
}

// movesIn makes a Deployment, a Secret, a claim and a resource of a kind of its own, each called "theirs".
func (s stranger) movesIn(t *testing.T, namespace string) belongings {
	t.Helper()
	s.lakes(t)
	b := belongings{s, namespace, map[schema.GroupVersionResource]types.UID{}}
	for kind, object := range map[schema.GroupVersionResource]string{
		deploymentKind: `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "theirs"}, "spec": {"selector": {"matchLabels": {"app": "theirs"}},
			"template": {"metadata": {"labels": {"app": "theirs"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}`,
		secretKind: `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs"}, "data": {"password": "aHVudGVy"}}`,
		claimKind: `{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "theirs"}, "spec": {"accessModes": ["ReadWriteOnce"],
			"storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}}}}`,
		lakeKind: `{"apiVersion": "stranger.test/v1", "kind": "Lake", "metadata": {"name": "theirs", "labels": {"deep": "yes"}}}`,
	} {
		b.uids[kind] = s.makes(t, kind, namespace, object).GetUID()
	}
	return b
}

// areThere checks that each is there as it was, and not on its way out.
func (b belongings) areThere(t *testing.T) {
	t.Helper()
	for kind, uid := range b.uids {
		now, err := b.objects.Resource(kind).Namespace(b.namespace).Get(t.Context(), "theirs", metav1.GetOptions{})
		if err != nil || now.GetUID() != uid || now.GetDeletionTimestamp() != nil {
			t.Errorf("the stranger's %s: %v", kind.Resource, err)
		}
	}
}

// leftNothing checks that nothing of the Instance is in a namespace that is there, and that the next removal knows of none.
func (w *world) leftNothing(t *testing.T, namespace string) {
	t.Helper()
	w.stays(t, namespace)
	s := w.stranger(t)
	home, err := s.objects.Resource(namespaceKind).Get(t.Context(), namespace, metav1.GetOptions{})
	must(t, err)
	if home.GetLabels()[names.LabelInstance] != "" || home.GetAnnotations()[names.AnnotationMadeBy] != "" {
		t.Errorf("the namespace is marked still: %v %v", home.GetLabels(), home.GetAnnotations())
	}
	lists, err := w.client.Discovery().ServerPreferredNamespacedResources()
	must(t, err)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for _, r := range list.APIResources {
			if strings.Contains(fmt.Sprint(r.Verbs), "list") && r.Kind != "Event" {
				found, err := s.objects.Resource(gv.WithResource(r.Name)).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
				must(t, err)
				for _, o := range found.Items {
					if strings.HasPrefix(o.GetName(), "jr2-") && o.GetDeletionTimestamp() == nil {
						t.Errorf("%s %s is there still", o.GetKind(), o.GetName())
					}
				}
			}
		}
	}
	var absent *jr2.NotDeployedError
	if again := w.down(t, namespace); !errors.As(again.err, &absent) || !absent.Unlabelled {
		t.Errorf("the second time: %v", again.err)
	}
}

// byUID fails the test when a removal deletes an object that it does not name by its UID.
func byUID(t *testing.T) func(*jr2.DownOptions) {
	uid := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	return func(o *jr2.DownOptions) {
		o.Config = rest.CopyConfig(o.Config)
		o.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method != http.MethodDelete {
					return next.RoundTrip(r)
				}
				body, err := io.ReadAll(r.Body)
				if err != nil || !uid.Match(body) {
					t.Errorf("%s names no UID: %s, %v", r.URL.Path, body, err)
				}
				r = r.Clone(r.Context())
				r.Body = io.NopCloser(bytes.NewReader(body))
				return next.RoundTrip(r)
			})
		})
	}
}

// TestDownLeavesWhatStrangersHave in both situations: a converge made the namespace and the stranger came later; the stranger was there before, and the
// namespace was adopted.
func TestDownLeavesWhatStrangersHave(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := plainFolder(t)
	for name, test := range map[string]struct {
		namespace string
		before    bool
		why       string
	}{
		"made by a converge": {"strangers-later", false, "it holds what is not the instance's"},
		"adopted":            {"strangers-before", true, "no converge made it"},
	} {
		t.Run(name, func(t *testing.T) {
			var theirs belongings
			if test.before {
				w.home(t, test.namespace, "")
				theirs = w.stranger(t).movesIn(t, test.namespace)
			}
			must(t, w.up(t, dir, into(test.namespace), adopted).err)
			if !test.before {
				theirs = w.stranger(t).movesIn(t, test.namespace)
			}
			asked := ""
			told := w.down(t, test.namespace, byUID(t), func(o *jr2.DownOptions) {
				o.Yes, o.Confirm = false, func(_ context.Context, r jr2.Removal) (bool, error) { asked = r.Question(); return true, nil }
			})
			must(t, told.err)
			theirs.areThere(t)
			for _, part := range []string{"stays because " + test.why, "Deployment.apps " + test.namespace + "/theirs (kubectl", "Secret " + test.namespace + "/theirs (kubectl)", "and 2 more"} {
				if !strings.Contains(asked, part) && part != "and 2 more" {
					t.Errorf("%q does not say %q", asked, part)
				}
			}
			for _, line := range []string{
				"namespace " + test.namespace + ": stays — " + test.why, "  stays: PersistentVolumeClaim " + test.namespace + "/theirs (kubectl)",
				"  stays: Lake.stranger.test " + test.namespace + "/theirs (kubectl)", "  Deployment.apps " + test.namespace + "/jr2-orchestrator pruned",
			} {
				if !strings.Contains(told.lines, "\n"+line+"\n") {
					t.Errorf("no line %q in\n%s", line, told.lines)
				}
			}
			if told.result.Gone || told.result.Stays == nil || len(told.result.Stays.Objects) < 4 || len(told.result.Removed) < 8 {
				t.Errorf("result %+v", told.result)
			}
			w.leftNothing(t, test.namespace)
			theirs.areThere(t)
		})
	}
}

func adopted(o *jr2.Options) { o.AdoptNamespace = true }

// TestF76TheCaseItself: a namespace with a Deployment and a Secret of others, up --yes, down --yes.
func TestF76TheCaseItself(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := plainFolder(t)
	w.home(t, "f76", "")
	theirs := w.stranger(t).movesIn(t, "f76")
	yes := w.up(t, dir, into("f76"))
	var occupied *jr2.OccupiedError
	if !errors.As(yes.err, &occupied) || !strings.Contains(yes.lines, "Secret f76/theirs (kubectl)") || !strings.Contains(yes.lines, "--adopt-namespace") {
		t.Fatalf("up --yes: %v", yes.err)
	}
	home, err := w.client.CoreV1().Namespaces().Get(t.Context(), "f76", metav1.GetOptions{})
	if must(t, err); home.Labels[names.LabelInstance] != "" {
		t.Error("it was adopted all the same")
	}
	report := w.check(t, dir, preflight.Choice{}, into("f76"))
	if !has(report.Findings, preflight.CodeNamespaceOccupied, preflight.Refuse) {
		t.Errorf("a check: %v", report.Findings)
	}
	if report = w.check(t, dir, preflight.Choice{}, into("f76"), adopted); !has(report.Findings, preflight.CodeNamespaceOccupied, preflight.Note) {
		t.Errorf("a check with the option: %v", report.Findings)
	}
	asked := ""
	declined := w.up(t, dir, into("f76"), func(o *jr2.Options) {
		o.Confirm = func(_ context.Context, f jr2.FirstContact) (bool, error) { asked = f.Question(); return false, nil }
	})
	if !errors.Is(declined.err, jr2.ErrDeclined) || !strings.Contains(asked, `adopt the existing namespace "f76", which holds`) || !strings.Contains(asked, "Deployment.apps f76/theirs") {
		t.Errorf("asked %q: %v", asked, declined.err)
	}
	must(t, w.up(t, dir, into("f76"), adopted).err)
	must(t, w.up(t, dir, into("f76")).err) // it is this Instance's now
	must(t, w.down(t, "f76").err)
	theirs.areThere(t)
	w.leftNothing(t, "f76")
}

func has(findings []preflight.Finding, code string, severity preflight.Severity) bool {
	for _, f := range findings {
		if f.Code == code && f.Severity == severity {
			return true
		}
	}
	return false
}

// TestF76SystemNamespacesAreRefused before any cluster is asked.
func TestF76SystemNamespacesAreRefused(t *testing.T) {
	t.Parallel()
	dir := plainFolder(t)
	for _, namespace := range []string{"kube-system", "default", "kube-public", "kube-node-lease"} {
		_, err := jr2.Converge(t.Context(), jr2.Options{Dir: dir, Config: &rest.Config{Host: "https://127.0.0.1:1"}, Namespace: namespace, Yes: true, AdoptNamespace: true})
		var refusal *jr2.Refusal
		if !errors.As(err, &refusal) || refusal.Findings[0].Code != preflight.CodeNamespaceName {
			t.Errorf("%s: %v", namespace, err)
		}
	}
}

// TestF76NamespacesThatNoConvergeMade outlive their Instance though nothing of others is in them: one that an earlier version adopted or made, one whose
// manifest was exported and applied by kubectl, and one that `jr2 apply` brought.
func TestF76NamespacesThatNoConvergeMade(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	marked := func(name string) string {
		return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %q, "labels": {%q: "my-instance"}, "annotations": {%q: "my-instance"}}}`,
			name, names.LabelInstance, names.AnnotationMadeBy)
	}
	for name, make := range map[string]func(t *testing.T, namespace string){
		"of an earlier version": func(t *testing.T, namespace string) {
			body := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %q, "labels": {%q: "my-instance"}}}`, namespace, names.LabelInstance)
			_, err := w.client.CoreV1().Namespaces().Patch(t.Context(), namespace, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: apply.DefaultFieldManager})
			must(t, err)
		},
		"a copied annotation": func(t *testing.T, namespace string) {
			w.stranger(t).makes(t, namespaceKind, "", marked(namespace))
		},
		"applied as a manifest": func(t *testing.T, namespace string) {
			_, err := w.client.CoreV1().Namespaces().Patch(t.Context(), namespace, types.ApplyPatchType, []byte(marked(namespace)), metav1.PatchOptions{FieldManager: apply.DefaultFieldManager})
			must(t, err)
		},
		"made for another instance": func(t *testing.T, namespace string) {
			w.home(t, namespace, "elder")
			patch := fmt.Sprintf(`{"metadata": {"labels": {%q: "my-instance"}}}`, names.LabelInstance)
			_, err := w.client.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl"})
			must(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := "f76-" + strings.ReplaceAll(name, " ", "-")
			make(t, namespace)
			must(t, w.up(t, plainFolder(t), into(namespace)).err)
			told := w.down(t, namespace)
			must(t, told.err)
			if !strings.Contains(told.lines, "stays — no converge made it") {
				t.Errorf("told\n%s", told.lines)
			}
			w.leftNothing(t, namespace)
		})
	}
}

// TestF76WhatOnlyLooksLikeOurs stays: labels and marks that somebody copied from our objects, and objects of a second Instance and of a set.
func TestF76WhatOnlyLooksLikeOurs(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	must(t, w.up(t, plainFolder(t), into("f76-copies")).err)
	copied := fmt.Sprintf(`"labels": {%q: "my-instance", %q: "jr2"}`, names.LabelInstance, names.LabelManagedBy)
	s := w.stranger(t)
	s.makes(t, configMapKind, "f76-copies", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "labels", `+copied+`}}`)
	s.makes(t, configMapKind, "f76-copies", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mark", "annotations": {"jr2.dev/set": "f76-copies/jr2-instance"}, `+copied+`}}`)
	ours := func(name string, labels, annotations map[string]string) {
		_, err := w.client.CoreV1().ConfigMaps("f76-copies").Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations}}, metav1.CreateOptions{FieldManager: apply.DefaultFieldManager})
		must(t, err)
	}
	ours("second-instance", map[string]string{names.LabelInstance: "elder", names.LabelManagedBy: names.ManagedBy}, nil)
	ours("of-a-set", map[string]string{names.LabelInstance: "my-instance", names.LabelManagedBy: names.ManagedBy}, map[string]string{apply.SetAnnotation: "f76-copies/shop"})
	must(t, w.down(t, "f76-copies").err)
	for _, name := range []string{"labels", "mark", "second-instance", "of-a-set"} {
		if now, err := w.client.CoreV1().ConfigMaps("f76-copies").Get(t.Context(), name, metav1.GetOptions{}); err != nil || now.DeletionTimestamp != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.leftNothing(t, "f76-copies")
}

// TestF76ArrivesBetweenTheQuestionAndTheDelete: the agreement was for a namespace that held nothing else.
func TestF76ArrivesBetweenTheQuestionAndTheDelete(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	must(t, w.up(t, plainFolder(t), into("f76-late")).err)
	var theirs belongings
	told := w.down(t, "f76-late", func(o *jr2.DownOptions) {
		o.Yes, o.Confirm = false, func(_ context.Context, r jr2.Removal) (bool, error) {
			if !strings.Contains(r.Question(), "everything in it") {
				t.Errorf("asked %q", r.Question())
			}
			theirs = w.stranger(t).movesIn(t, "f76-late")
			return true, nil
		}
	})
	must(t, told.err)
	theirs.areThere(t)
	w.leftNothing(t, "f76-late")
}

// TestF76CutOffIsCompleted ends a removal at a delete in its beginning, its middle and its end; the next one completes it.
func TestF76CutOffIsCompleted(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	theirs := belongings{}
	for i, cut := range []int64{1, 6, 12} {
		must(t, w.up(t, plainFolder(t), into("f76-cut"), adopted).err)
		if i == 0 {
			theirs = w.stranger(t).movesIn(t, "f76-cut")
		}
		ctx, cancel := context.WithCancel(t.Context())
		var deletes atomic.Int64
		cfg := rest.CopyConfig(w.Config())
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodDelete && deletes.Add(1) == cut {
					cancel()
				}
				return next.RoundTrip(r)
			})
		})
		_, err := jr2.Down(ctx, jr2.DownOptions{Name: "my-instance", Namespace: "f76-cut", Config: cfg, Context: contextName, Yes: true})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cut at delete %d: %v", cut, err)
		}
		must(t, w.down(t, "f76-cut").err)
		theirs.areThere(t)
		w.leftNothing(t, "f76-cut")
	}
}

// TestF76SandboxesGoFirst: the operator must let go of them, and what holds one is named. The rest waits.
func TestF76SandboxesGoFirst(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	w.home(t, "f76-boxes", "")
	must(t, w.up(t, plainFolder(t), into("f76-boxes")).err)
	s := w.stranger(t)
	s.makes(t, sandboxKind, "f76-boxes", fmt.Sprintf(`{"apiVersion": %q, "kind": "Sandbox", "metadata": {"name": "held", "labels": {%q: "my-instance"},
		"finalizers": ["example.test/hold"]}, "spec": {"image": "i"}}`, v1alpha1.GroupVersion(), names.LabelInstance))
	told := w.down(t, "f76-boxes", func(o *jr2.DownOptions) { o.Timeout = 3 * time.Second })
	var held *jr2.HeldError
	if !errors.As(told.err, &held) || !strings.Contains(told.err.Error(), "example.test/hold") || held.Object != "Sandbox."+v1alpha1.Group+" f76-boxes/held" {
		t.Fatalf("got %v\n%s", told.err, told.lines)
	}
	if _, err := w.client.AppsV1().Deployments("f76-boxes").Get(t.Context(), names.Orchestrator, metav1.GetOptions{}); err != nil {
		t.Errorf("the Orchestrator went before the Sandbox: %v", err)
	}
	_, err := s.objects.Resource(sandboxKind).Namespace("f76-boxes").Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	must(t, err)
	must(t, w.down(t, "f76-boxes").err)
	w.leftNothing(t, "f76-boxes")
}

// TestDownKeepsWhatItCantLookAt: a kind that may not be listed counts as there. Without a look at Secrets nobody knows whether the Instance is gone.
func TestDownKeepsWhatItCantLookAt(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	must(t, w.up(t, plainFolder(t), into("down-blind")).err)
	all := []string{"*"}
	blind := func(t *testing.T, user string, rules ...rbacv1.PolicyRule) felled {
		t.Helper()
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
		_, err := w.client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
		must(t, err)
		_, err = w.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		}, metav1.CreateOptions{})
		must(t, err)
		return w.down(t, "down-blind", func(o *jr2.DownOptions) {
			o.Config = rest.CopyConfig(o.Config)
			o.Config.Impersonate = rest.ImpersonationConfig{UserName: user}
		})
	}
	most := []string{"apps", "rbac.authorization.k8s.io", "networking.k8s.io", "coordination.k8s.io", "policy", "scheduling.k8s.io", v1alpha1.Group}
	sealed := blind(t, "down-sealed", rbacv1.PolicyRule{APIGroups: most, Resources: all, Verbs: all},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces", "configmaps", "services", "serviceaccounts", "persistentvolumeclaims", "pods"}, Verbs: all})
	if apply.Classify(sealed.err) != apply.ClassForbidden || !strings.Contains(sealed.err.Error(), "look for secrets of the instance") {
		t.Errorf("without Secrets: %v", sealed.err)
	}
	w.stays(t, "down-blind")
	told := blind(t, "down-half", rbacv1.PolicyRule{APIGroups: append(most, ""), Resources: all, Verbs: all})
	must(t, told.err)
	if !strings.Contains(told.lines, "\n  nobody could look for jobs.batch (may not be listed)\n") {
		t.Errorf("told\n%s", told.lines)
	}
	w.leftNothing(t, "down-blind")
}

// TestF76WhatTheOrchestratorMakesIsOurs: it writes Sandboxes, Repos and tokens without the Instance's label. What a stranger makes of those kinds stays.
func TestF76WhatTheOrchestratorMakesIsOurs(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := plainFolder(t)
	s := w.stranger(t)
	writes := func(namespace string, kind schema.GroupVersionResource, name, object string) {
		_, err := s.objects.Resource(kind).Namespace(namespace).Patch(t.Context(), name, types.ApplyPatchType, []byte(object), metav1.PatchOptions{FieldManager: "jr2"})
		must(t, err)
	}
	orchestrated := func(namespace string) {
		must(t, w.up(t, dir, into(namespace)).err)
		writes(namespace, sandboxKind, "box", fmt.Sprintf(`{"apiVersion": %q, "kind": "Sandbox", "metadata": {"name": "box", "labels": {%q: "r1", %q: "hold"}}, "spec": {"image": "i"}}`,
			v1alpha1.GroupVersion(), v1alpha1.LabelRun, v1alpha1.LabelWorkflow))
		writes(namespace, repoKind, "app-b62af562", fmt.Sprintf(`{"apiVersion": %q, "kind": "Repo", "metadata": {"name": "app-b62af562", "annotations": {%q: "git.example.test/team/app"}},
			"spec": {"url": "https://git.example.test/team/app.git"}}`, v1alpha1.GroupVersion(), names.AnnotationIdentity))
		claim := fmt.Sprintf(`{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": %q, "labels": {%q: "my-instance", %q: "jr2"}}, "spec": {"accessModes": ["ReadWriteOnce"],
			"storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}}}}`, names.InstanceHarnessClaim, names.LabelInstance, names.LabelManagedBy)
		_, err := s.objects.Resource(claimKind).Namespace(namespace).Patch(t.Context(), names.InstanceHarnessClaim, types.ApplyPatchType, []byte(claim), metav1.PatchOptions{FieldManager: "kube-controller-manager"})
		must(t, err)
		writes(namespace, secretKind, "jr2-git-684888c0", `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "jr2-git-684888c0"}, "data": {"password": "eA=="}}`)
	}
	orchestrated("f76-runs")
	must(t, w.down(t, "f76-runs").err)
	w.isAbsent(t, "f76-runs")

	orchestrated("f76-runs-too")
	s.makes(t, sandboxKind, "f76-runs-too", fmt.Sprintf(`{"apiVersion": %q, "kind": "Sandbox", "metadata": {"name": "theirs", "labels": {%q: "r1", %q: "hold"}}, "spec": {"image": "i"}}`,
		v1alpha1.GroupVersion(), v1alpha1.LabelRun, v1alpha1.LabelWorkflow))
	must(t, w.down(t, "f76-runs-too").err)
	if now, err := s.objects.Resource(sandboxKind).Namespace("f76-runs-too").Get(t.Context(), "theirs", metav1.GetOptions{}); err != nil || now.GetDeletionTimestamp() != nil {
		t.Errorf("the stranger's Sandbox: %v", err)
	}
	for name, kind := range map[string]schema.GroupVersionResource{"box": sandboxKind, "app-b62af562": repoKind, "jr2-git-684888c0": secretKind, names.InstanceHarnessClaim: claimKind} {
		if _, err := s.objects.Resource(kind).Namespace("f76-runs-too").Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s is there still: %v", name, err)
		}
	}
	w.leftNothing(t, "f76-runs-too")
}

// TestF76AKeptObjectKeepsItsNamespace: somebody told every tool to keep the claim of the Orchestrator.
func TestF76AKeptObjectKeepsItsNamespace(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	must(t, w.up(t, plainFolder(t), into("f76-kept")).err)
	claims := w.client.CoreV1().PersistentVolumeClaims("f76-kept")
	_, err := claims.Patch(t.Context(), names.StateClaim, types.MergePatchType, []byte(`{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`), metav1.PatchOptions{FieldManager: "kubectl-annotate"})
	must(t, err)
	told := w.down(t, "f76-kept")
	must(t, told.err)
	if claim, err := claims.Get(t.Context(), names.StateClaim, metav1.GetOptions{}); err != nil || claim.DeletionTimestamp != nil {
		t.Errorf("the claim: %v", err)
	}
	if !strings.Contains(told.lines, "  stays: PersistentVolumeClaim f76-kept/jr2-state") {
		t.Errorf("told\n%s", told.lines)
	}
}

// TestAConvergeKeepsTheMarkOfItsNamespace: later converges neither drop nor move it, and write nothing; so its removal takes the namespace along.
func TestAConvergeKeepsTheMarkOfItsNamespace(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := plainFolder(t)
	must(t, w.up(t, dir, into("f76-made")).err)
	before, err := w.client.CoreV1().Namespaces().Get(t.Context(), "f76-made", metav1.GetOptions{})
	must(t, err)
	must(t, w.up(t, dir, into("f76-made")).err)
	after, err := w.client.CoreV1().Namespaces().Get(t.Context(), "f76-made", metav1.GetOptions{})
	must(t, err)
	if before.Annotations[names.AnnotationMadeBy] != "my-instance" || before.ResourceVersion != after.ResourceVersion {
		t.Errorf("it was made as %v and is %v", before.Annotations, after.Annotations)
	}
	told := w.down(t, "f76-made", byUID(t))
	must(t, told.err)
	w.isAbsent(t, "f76-made")
}

// TestANamespaceThatComesMeanwhile is decided about as one that was there: between the look of a converge and its create somebody makes the namespace.
func TestANamespaceThatComesMeanwhile(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	var once atomic.Bool
	told := w.up(t, plainFolder(t), into("f76-raced"), w.served(t, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && r.URL.Path == "/api/v1/namespaces" && once.CompareAndSwap(false, true) {
				s := w.stranger(t)
				s.makes(t, namespaceKind, "", `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "f76-raced"}}`)
				s.makes(t, secretKind, "f76-raced", `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs"}, "data": {"a": "Yg=="}}`)
			}
			return next.RoundTrip(r)
		})
	}))
	var occupied *jr2.OccupiedError
	if !once.Load() || !errors.As(told.err, &occupied) {
		t.Errorf("got %v", told.err)
	}
}

// TestDownAllLeavesStrangersOfTheOperator: what others have in the operator's namespace stays, and their Sandboxes are part of the question.
func TestDownAllLeavesStrangersOfTheOperator(t *testing.T) {
	t.Parallel()
	w := loneWorld(t, node("a"))
	must(t, w.up(t, plainFolder(t), into("f76-all")).err)
	s := w.stranger(t)
	w.home(t, "f76-tools", "")
	s.makes(t, sandboxKind, "f76-tools", fmt.Sprintf(`{"apiVersion": %q, "kind": "Sandbox", "metadata": {"name": "loose"}, "spec": {"image": "i"}}`, v1alpha1.GroupVersion()))
	theirs := s.movesIn(t, names.OperatorNamespace)
	t.Cleanup(func() { w.without(t, names.OperatorNamespace) })
	asked := ""
	told := w.down(t, "f76-all", byUID(t), func(o *jr2.DownOptions) {
		o.All, o.Yes = true, false
		o.Confirm = func(_ context.Context, r jr2.Removal) (bool, error) { asked = r.Question(); return true, nil }
	})
	must(t, told.err)
	if !strings.Contains(asked, "namespaces of no Instance: Sandbox."+v1alpha1.Group+" f76-tools/loose") {
		t.Errorf("asked %q", asked)
	}
	theirs.areThere(t)
	if !strings.Contains(told.lines, "  Namespace jr2-system kept — it holds what is not the operator's: ") {
		t.Errorf("told\n%s", told.lines)
	}
	if _, err := w.client.AppsV1().Deployments(names.OperatorNamespace).Get(t.Context(), names.OperatorDeployment, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the operator: %v", err)
	}
	var absent *jr2.NotDeployedError
	if again := w.down(t, "f76-all", func(o *jr2.DownOptions) { o.All = true }); !errors.As(again.err, &absent) {
		t.Errorf("the second time: %v", again.err)
	}
}

// without deletes a namespace and waits until it is gone, for the tests that come after this one.
func (w *world) without(t *testing.T, namespace string) {
	ctx := context.WithoutCancel(t.Context())
	home, err := w.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err == nil {
		_ = w.client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
		err = apply.WaitNamespaceGone(ctx, w.client, namespace, home.UID, time.Minute, nil)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// TestWhatIsThereUnderOurNamesIsNotTaken: objects of names that a converge writes, by another hand, are taken only when that is asked for, and no value of
// a Secret ever.
func TestWhatIsThereUnderOurNamesIsNotTaken(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	holds := folder(t, map[string]string{"workflows/hold.ts": hold("3Gi", "1"), "jr2.config.ts": configOf(`secrets: [{ name: "API_KEY", value: "x", hosts: ["h.test"] }]`)})
	for name, test := range map[string]struct {
		kind   schema.GroupVersionResource
		object string
		fields string
	}{
		"the image map":      {configMapKind, names.ImagesConfig, `"data": {"images.json": "{}"}`},
		"the tokens":         {secretKind, names.InstanceSecret, `"data": {"JR2_INSTANCE_TOKEN": "eA==", "JR2_SIGNING_KEY": "eQ=="}`},
		"the authority":      {secretKind, names.HeldCA, `"data": {"ca.crt": "eA=="}`},
		"the Assembly":       {configMapKind, names.AssemblyPointer, `"data": {"theirs": "x"}`},
		"the Orchestrator's": {configMapKind, names.HarnessConfig, `"data": {"theirs": "x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := "under-" + test.object
			w.home(t, namespace, "my-instance")
			kind := map[schema.GroupVersionResource]string{secretKind: "Secret", configMapKind: "ConfigMap"}[test.kind]
			made := w.stranger(t).makes(t, test.kind, namespace, fmt.Sprintf(`{"apiVersion": "v1", "kind": %q, "metadata": {"name": %q}, %s}`, kind, test.object, test.fields))
			told := w.up(t, holds, into(namespace))
			var unowned *apply.UnownedError
			if !errors.As(told.err, &unowned) || unowned.Ref.Name != test.object || len(unowned.Managers) != 1 || unowned.Managers[0] != "kubectl" || !strings.Contains(told.err.Error(), "Options.Adopt") {
				t.Errorf("got %v", told.err)
			}
			now, err := w.stranger(t).objects.Resource(test.kind).Namespace(namespace).Get(t.Context(), test.object, metav1.GetOptions{})
			if must(t, err); now.GetResourceVersion() != made.GetResourceVersion() {
				t.Errorf("it was written: %v", now.Object)
			}
			report := w.check(t, holds, preflight.Choice{}, into(namespace))
			if !has(report.Findings, preflight.CodeOwnedByOther, preflight.Refuse) || !strings.Contains(fmt.Sprint(report.Findings), test.object+" is there already") {
				t.Errorf("a check says nothing of it: %v", report.Findings)
			}
		})
	}
}
