package occupants_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/occupants"
)

// shared is the one real API server of this package's tests; each test has a namespace of its own.
var shared *devcluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(func() int {
		cluster, err := devcluster.Start(context.Background(), devcluster.Options{Users: []devcluster.User{{
			Name: "clerk", ClusterRules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
		}}})
		if err != nil {
			fmt.Fprintln(os.Stderr, "start a cluster:", err)
			return 1
		}
		defer cluster.Close()
		shared = cluster
		return m.Run()
	}())
}

// kubectl is a client whose objects the server notes as kubectl's.
func kubectl(t *testing.T) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(as("kubectl"))
	must(t, err)
	return client
}

func as(manager string) *rest.Config {
	cfg := shared.Config()
	cfg.QPS, cfg.UserAgent = -1, manager
	return cfg
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fresh makes a namespace and waits until the controllers have put into it what they put into every one.
func fresh(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	made, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "occupied-"}}, metav1.CreateOptions{})
	must(t, err)
	until(t, func() bool {
		_, noAccount := client.CoreV1().ServiceAccounts(made.Name).Get(t.Context(), "default", metav1.GetOptions{})
		_, noRoots := client.CoreV1().ConfigMaps(made.Name).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		return noAccount == nil && noRoots == nil
	})
	return made.Name
}

// until waits for a condition of the cluster.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatal("the cluster did not get there within a minute")
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func look(t *testing.T, cfg *rest.Config, namespace string, own func(occupants.Ref, *metav1.PartialObjectMetadata) bool) *occupants.Found {
	t.Helper()
	found, err := occupants.In(t.Context(), cfg, namespace, occupants.Options{Own: own})
	must(t, err)
	return found
}

func texts(list []occupants.Occupant, namespace string) []string {
	all := []string{}
	for _, o := range list {
		all = append(all, strings.ReplaceAll(o.String(), " "+namespace+"/", " "))
	}
	return all
}

func equal(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// labelled calls what has a label the caller's.
func labelled(_ occupants.Ref, o *metav1.PartialObjectMetadata) bool {
	return o.Labels["mine"] == "yes"
}

var mine = map[string]string{"mine": "yes"}

func TestAFreshNamespaceHoldsNothing(t *testing.T) {
	client := kubectl(t)
	ns := fresh(t, client)
	_, err := client.CoreV1().Events(ns).Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "noted"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: "gone"},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = client.CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{ // as old clusters have it
		ObjectMeta: metav1.ObjectMeta{Name: "default-token-x7k2p", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{FieldManager: "kube-controller-manager"})
	must(t, err)
	found := look(t, shared.Config(), ns, nil)
	if !found.Alone() || len(found.Own) > 0 {
		t.Errorf("found %q, unseen %v", texts(found.Others, ns), found.Unseen)
	}
	if absent := look(t, shared.Config(), "never-made", nil); !absent.Alone() {
		t.Errorf("in a namespace that is not there: %v", absent)
	}
}

func TestWhatPeopleMakeIsOthers(t *testing.T) {
	client := kubectl(t)
	ns := fresh(t, client)
	ctx := t.Context()
	core := client.CoreV1()
	_, err := core.Secrets(ns).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = core.Secrets(ns).Create(ctx, &corev1.Secret{ // a token that a person asked for
		ObjectMeta: metav1.ObjectMeta{Name: "default-token-ci", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = core.Services(ns).Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = client.DiscoveryV1().EndpointSlices(ns).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.9.8.7"}}},
	}, metav1.CreateOptions{})
	must(t, err)
	until(t, func() bool {
		slices, err := client.DiscoveryV1().EndpointSlices(ns).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		return err == nil && len(slices.Items) > 0
	})
	want := []string{"Secret default-token-ci (kubectl)", "Secret password (kubectl)", "Service web (kubectl)", "EndpointSlice.discovery.k8s.io by-hand (kubectl)"}
	until(t, func() bool { // the controller fills the token
		found := look(t, shared.Config(), ns, nil)
		return strings.Contains(fmt.Sprint(texts(found.Others, ns)), "default-token-ci (kube-controller-manager, kubectl)")
	})
	want[0] = "Secret default-token-ci (kube-controller-manager, kubectl)"
	equal(t, "others", texts(look(t, shared.Config(), ns, nil).Others, ns), want...)
}

// TestOwnershipIsFollowedByUID: a Deployment's pods are two steps away from it; a copied reference and a circle lead nowhere.
func TestOwnershipIsFollowedByUID(t *testing.T) {
	client := kubectl(t)
	ns := fresh(t, client)
	ctx := t.Context()
	app := map[string]string{"app": "web"}
	_, err := client.AppsV1().Deployments(ns).Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: mine}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: app},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
	}}, metav1.CreateOptions{})
	must(t, err)
	until(t, func() bool {
		pods, err := client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 1
	})
	owner := func(o *corev1.ConfigMap) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: o.Name, UID: o.UID}
	}
	make := func(name string, labels map[string]string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
		made, err := client.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels, OwnerReferences: owners, Finalizers: []string{"example.test/stay"}}}, metav1.CreateOptions{})
		must(t, err)
		return made
	}
	ours, theirs := make("ours", mine), make("theirs", nil)
	make("of-ours", nil, owner(ours))
	make("of-both", nil, owner(ours), owner(theirs))
	copied := owner(ours)
	copied.UID = "00000000-0000-0000-0000-000000000000"
	make("copied", nil, copied) // the collector deletes it, and the finalizer holds it
	left := make("left", nil)
	right := make("right", nil, owner(left))
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{owner(right)}}})
	must(t, err)
	_, err = client.CoreV1().ConfigMaps(ns).Patch(ctx, "left", types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)

	found := look(t, shared.Config(), ns, labelled)
	equal(t, "others", texts(found.Others, ns), "ConfigMap theirs (kubectl)", "ConfigMap copied (kubectl)", "ConfigMap left (kubectl)", "ConfigMap of-both (kubectl)", "ConfigMap right (kubectl)")
	var own []string
	for _, o := range found.Own {
		own = append(own, o.Kind)
	}
	equal(t, "own", own, "ConfigMap", "Deployment", "ConfigMap", "Pod", "ReplicaSet")
	for _, o := range found.Others {
		if o.Orphan != (o.Name == "copied") {
			t.Errorf("%s: orphan %v", o, o.Orphan)
		}
	}
}

// TestAKindOfSomebodysOwnIsLookedAt also when the server keeps it in two versions and two pages are needed.
func TestAKindOfSomebodysOwnIsLookedAt(t *testing.T) {
	client := kubectl(t)
	ns := fresh(t, client)
	lakes := makeKind(t, "lakes", "Lake")
	for i := range 501 {
		_, err := lakes.Namespace(ns).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.test/v2", "kind": "Lake", "metadata": map[string]any{"name": fmt.Sprintf("lake-%03d", i), "labels": map[string]any{"deep": "yes"}}}}, metav1.CreateOptions{})
		must(t, err)
	}
	found := look(t, shared.Config(), ns, nil)
	if len(found.Others) != 501 || found.Others[500].String() != "Lake.example.test "+ns+"/lake-500 (kubectl)" {
		t.Errorf("found %d, unseen %v", len(found.Others), found.Unseen)
	}
}

// makeKind serves a namespaced kind in the versions v1 and v2.
func makeKind(t *testing.T, plural, kind string) dynamic.NamespaceableResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(as("kubectl"))
	must(t, err)
	version := func(name string, stored bool) any {
		return map[string]any{"name": name, "served": true, "storage": stored, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}
	}
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	_, err = definitions.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + ".example.test"},
		"spec": map[string]any{"group": "example.test", "scope": "Namespaced", "versions": []any{version("v1", false), version("v2", true)},
			"names": map[string]any{"plural": plural, "singular": strings.ToLower(kind), "kind": kind}},
	}}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		_ = definitions.Delete(context.WithoutCancel(t.Context()), plural+".example.test", metav1.DeleteOptions{})
	})
	kinds := client.Resource(schema.GroupVersionResource{Group: "example.test", Version: "v2", Resource: plural})
	until(t, func() bool {
		_, err := kinds.List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	return kinds
}

// TestWhatMayNotBeListedIsUnseen: a user who may list ConfigMaps alone knows nothing of the rest.
func TestWhatMayNotBeListedIsUnseen(t *testing.T) {
	client := kubectl(t)
	ns := fresh(t, client)
	cfg, err := shared.ConfigFor("clerk")
	must(t, err)
	found := look(t, cfg, ns, nil)
	secrets := slices.IndexFunc(found.Unseen, func(u occupants.Unseen) bool { return u.What == "secrets" })
	if found.Alone() || secrets < 0 || !found.Unseen[secrets].Forbidden || found.Unseen[secrets].String() != "secrets (may not be listed)" {
		t.Errorf("unseen %v", found.Unseen)
	}
	if slices.ContainsFunc(found.Unseen, func(u occupants.Unseen) bool { return u.What == "configmaps" }) {
		t.Errorf("ConfigMaps were listed, and are unseen: %v", found.Unseen)
	}
}

// TestAGroupThatIsAwayIsUnseen: an aggregated API whose Service does not exist.
func TestAGroupThatIsAwayIsUnseen(t *testing.T) {
	client := kubectl(t)
	ns := fresh(t, client)
	serve(t, "v1", "away.example.test")
	serve(t, "v1beta1", "metrics.k8s.io") // which holds nothing of anybody
	until(t, func() bool {
		found := look(t, shared.Config(), ns, nil)
		return len(found.Unseen) > 0
	})
	found := look(t, shared.Config(), ns, nil)
	if len(found.Unseen) != 1 || found.Unseen[0].What != "away.example.test/v1" || found.Unseen[0].Forbidden || found.Alone() {
		t.Errorf("unseen %v", found.Unseen)
	}
}

// serve registers a version of a group whose server does not exist.
func serve(t *testing.T, version, group string) {
	t.Helper()
	client, err := dynamic.NewForConfig(as("kubectl"))
	must(t, err)
	services := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	_, err = services.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": version + "." + group},
		"spec": map[string]any{"group": group, "version": version, "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "default", "name": "nobody"}},
	}}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		_ = services.Delete(context.WithoutCancel(t.Context()), version+"."+group, metav1.DeleteOptions{})
	})
}

// TestAnObjectUnderTwoGroupsCountsOnce: some servers serve an object a second time under a group of their own. A proxy plays one.
func TestAnObjectUnderTwoGroupsCountsOnce(t *testing.T) {
	client := kubectl(t)
	ns := fresh(t, client)
	lakes := makeKind(t, "ponds", "Pond")
	_, err := lakes.Namespace(ns).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.test/v2", "kind": "Pond", "metadata": map[string]any{"name": "deep"}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = client.RbacV1().Roles(ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader", Labels: map[string]string{"team": "a"}}}, metav1.CreateOptions{})
	must(t, err)
	// Roles are answered in place of Ponds: the same UIDs under another group.
	proxy, err := devcluster.StartProxy(t.Context(), shared.Config(), func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/ponds") {
				r = r.Clone(r.Context())
				r.URL.Path = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + ns + "/roles"
			}
			return next.RoundTrip(r)
		})
	})
	must(t, err)
	t.Cleanup(func() { proxy.Close() }) //nolint:errcheck // the test is over
	equal(t, "others", texts(look(t, proxy.Config(), ns, nil).Others, ns), "Pond.example.test reader (kubectl)")
	second := func(ref occupants.Ref, _ *metav1.PartialObjectMetadata) bool { return ref.Kind == "Role" }
	if found := look(t, proxy.Config(), ns, second); len(found.Others) > 0 || len(found.Own) != 1 {
		t.Errorf("the caller knows it by its other name: %v", found)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAServerThatDoesNotAnswerIsAnError, and so is the end of the context: neither is an empty namespace.
func TestAServerThatDoesNotAnswerIsAnError(t *testing.T) {
	gone := &rest.Config{Host: "https://127.0.0.1:1"}
	if found, err := occupants.In(t.Context(), gone, "any", occupants.Options{}); err == nil || found != nil {
		t.Errorf("found %v, %v", found, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := occupants.In(ctx, shared.Config(), "default", occupants.Options{}); !errors.Is(err, enough) || apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

// TestAKindThatWentMeanwhileHoldsNothing: discovery tells of a definition for a while after it was deleted.
func TestAKindThatWentMeanwhileHoldsNothing(t *testing.T) {
	client := kubectl(t)
	ns := fresh(t, client)
	makeKind(t, "moors", "Moor")
	deleted := false
	proxy, err := devcluster.StartProxy(t.Context(), shared.Config(), func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/moors") && !deleted { // it was told of, and is listed now
				deleted = true
				raw := client.Discovery().RESTClient().Delete().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/moors.example.test")
				if err := raw.Do(r.Context()).Error(); err != nil {
					return nil, err
				}
				for err := error(nil); !apierrors.IsNotFound(err); {
					_, err = client.Discovery().RESTClient().Get().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/moors.example.test").DoRaw(r.Context())
				}
			}
			return next.RoundTrip(r)
		})
	})
	must(t, err)
	t.Cleanup(func() { proxy.Close() }) //nolint:errcheck // the test is over
	if found := look(t, proxy.Config(), ns, nil); !found.Alone() || !deleted {
		t.Errorf("found %v, unseen %v", found.Others, found.Unseen)
	}
}
