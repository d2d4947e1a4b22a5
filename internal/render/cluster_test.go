package render

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/names"
)

// server talks to a real API server about objects of any kind.
type server struct {
	dynamic dynamic.Interface
	client  kubernetes.Interface
	mapper  meta.RESTMapper
}

func newServer(t *testing.T, config *rest.Config) server {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return server{dyn, client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))}
}

func (s server) of(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return s.dynamic.Resource(mapping.Resource), nil
	}
	return s.dynamic.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
}

// apply writes an object as a converge does and returns what the server then holds.
func (s server) apply(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resource, err := s.of(o)
	if err != nil {
		return nil, err
	}
	return resource.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "jr2"})
}

// all renders everything of an Instance, with the CRDs.
func all(t *testing.T, in Input) []*unstructured.Unstructured {
	t.Helper()
	objects := everything(t, in)
	operator, err := Operator(in)
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	for _, object := range append(objects, operator...) {
		out = append(out, plain(t, object))
	}
	return out
}

func TestRealAPIServer(t *testing.T) {
	cluster := devcluster.ForTest(t, devcluster.Options{Nodes: []devcluster.Node{}})
	s := newServer(t, cluster.Config())
	t.Run("it takes every object strictly", func(t *testing.T) { takesEverything(t, s) })
	t.Run("a second apply moves nothing", func(t *testing.T) { appliesOnce(t, s) })
	t.Run("pod security", func(t *testing.T) { podSecurity(t, s) })
}

func takesEverything(t *testing.T, s server) {
	for name, in := range map[string]Input{"ping": ping(t), "hold": hold(t), "review": review(t)} {
		for _, namespace := range []string{in.namespace(), names.OperatorNamespace} {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
			if _, err := s.client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
		}
		for _, o := range all(t, in) {
			resource, err := s.of(o)
			if err != nil {
				t.Fatal(err)
			}
			_, err = resource.Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
			if err != nil && !(o.GetKind() == "Namespace" && apierrors.IsAlreadyExists(err)) {
				t.Errorf("%s: %s %s: %v", name, o.GetKind(), o.GetName(), err)
			}
		}
	}
}

// appliesOnce applies everything twice and looks whether anything moved. Controllers write the status of some kinds in between; of
// those the generation counts.
func appliesOnce(t *testing.T, s server) {
	for _, o := range all(t, review(t)) {
		before, err := s.apply(t.Context(), o)
		if err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
			continue
		}
		after, err := s.apply(t.Context(), o)
		if err != nil {
			t.Errorf("%s %s, second apply: %v", o.GetKind(), o.GetName(), err)
			continue
		}
		moved := before.GetResourceVersion() != after.GetResourceVersion()
		switch o.GetKind() {
		case "Deployment", "DaemonSet", "StatefulSet", "PersistentVolumeClaim", "Namespace", "CustomResourceDefinition", "ClusterRole":
			moved = before.GetGeneration() != after.GetGeneration()
		}
		if moved {
			t.Errorf("%s %s moves with the second apply", o.GetKind(), o.GetName())
		}
	}
}

// podSecurity asks the admission of the server, pod by pod.
func podSecurity(t *testing.T, s server) {
	for _, class := range PriorityClasses(ping(t)) {
		if _, err := s.client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for _, level := range []string{"restricted", "baseline", "privileged"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: level, Labels: map[string]string{"pod-security.kubernetes.io/enforce": level}}}
		if _, err := s.client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "test"}}
		if _, err := s.client.CoreV1().ServiceAccounts(level).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pods := podsOf(t, review(t))
		for _, name := range slices.Sorted(maps.Keys(pods)) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: pods[name].Labels}, Spec: *pods[name].Spec.DeepCopy()}
			pod.Spec.ServiceAccountName = "test"
			if name == names.InstanceHarnessName { // its volume comes from the claim template
				pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: conversations})
			}
			_, err := s.client.CoreV1().Pods(level).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			// The Repo cache is the documented exception.
			refused := name == names.RepoCacheName && level != "privileged"
			var status apierrors.APIStatus
			if refused != (errors.As(err, &status) && apierrors.IsForbidden(err)) || !refused && err != nil {
				t.Errorf("%s under %s: %v", name, level, err)
			}
		}
	}
}
