package jr2_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
)

// shelf is a store of images in memory; the engine's own is tested where it is made.
type shelf struct {
	tags []string
	of   map[string]string // the Instance for which a tag was built
}

func (s *shelf) Built(context.Context) ([]images.Stored, error) {
	var out []images.Stored
	for _, tag := range s.tags {
		stored := images.Stored{ID: tag, Tags: []string{tag}}
		if name := s.of[tag]; name != "" {
			stored.Instances = []string{name}
		}
		out = append(out, stored)
	}
	return out, nil
}

func (s *shelf) Remove(_ context.Context, ref string) error {
	s.tags = slices.DeleteFunc(s.tags, func(tag string) bool { return tag == ref })
	return nil
}

// TestGCReadsRootsClusterWide: maps and pods of every Instance count; what cannot be read sweeps nothing.
func TestGCReadsRootsClusterWide(t *testing.T) {
	t.Parallel()
	w := loneWorld(t, node("a"))
	for name, labels := range map[string]map[string]string{"gc-one": {names.LabelInstance: "one"}, "gc-two": {names.LabelInstance: "two"}, "gc-other": nil} {
		_, err := w.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
		must(t, err)
		defer w.client.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{}) //nolint:errcheck // the world goes on
	}
	maps := w.client.CoreV1().ConfigMaps("gc-one")
	_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: names.ImagesConfig},
		Data: map[string]string{names.ImagesKey: `{"sandbox": {"default": "r.test/map:1-amd64"}}`}}, metav1.CreateOptions{})
	must(t, err)
	for namespace, image := range map[string]string{"gc-two": "r.test/pod:1-amd64", "gc-other": "r.test/stranger:1-amd64"} {
		_, err := w.client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{
			ServiceAccountName: "default", AutomountServiceAccountToken: new(bool),
			InitContainers: []corev1.Container{{Name: "i", Image: strings.Replace(image, ":1", ":init", 1)}},
			Containers:     []corev1.Container{{Name: "c", Image: image}},
			Volumes:        []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: strings.Replace(image, ":1", ":volume", 1)}}}},
		}}, metav1.CreateOptions{})
		must(t, err)
	}
	dir := plainFolder(t)
	must(t, w.up(t, dir, into("gc-kinds")).err) // it brings the kinds
	client, err := dynamic.NewForConfig(w.Config())
	must(t, err)
	_, err = client.Resource(v1alpha1.GroupVersion().WithResource("sandboxes")).Namespace("gc-other").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": "Sandbox", "metadata": map[string]any{"name": "box"}, "spec": map[string]any{"image": "r.test/box:1-amd64"},
	}}, metav1.CreateOptions{}) // in a namespace that is no Instance's
	must(t, err)
	all := []string{"r.test/map:1-amd64", "r.test/map:2-amd64", "r.test/pod:1-amd64", "r.test/pod:init-amd64", "r.test/pod:volume-amd64", "r.test/box:1-amd64", "r.test/stranger:1-amd64"}
	swept := []string{"r.test/map:2-amd64", "r.test/stranger:1-amd64"}
	store := &shelf{tags: slices.Clone(all)}
	opts := jr2.GCOptions{Config: w.Config(), Context: contextName, Store: store, DryRun: true}
	report, err := jr2.GC(t.Context(), opts)
	must(t, err)
	if !slices.Equal(report.Removed, swept) || len(store.tags) != len(all) {
		t.Errorf("%+v, left %q", report, store.tags)
	}

	opts.DryRun = false
	limited := rest.CopyConfig(w.Config())
	limited.Impersonate = rest.ImpersonationConfig{UserName: "nobody"}
	opts.Config = limited
	if _, err := jr2.GC(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "nothing was swept") || len(store.tags) != len(all) {
		t.Errorf("%v, left %q", err, store.tags)
	}
	patch := []byte(`{"data": {"` + names.ImagesKey + `": "no json"}}`)
	_, err = maps.Patch(t.Context(), names.ImagesConfig, types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
	opts.Config = w.Config()
	if _, err := jr2.GC(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "ConfigMap gc-one/jr2-images: the image map is not readable") || len(store.tags) != len(all) {
		t.Errorf("%v, left %q", err, store.tags)
	}
	theirs := &shelf{tags: slices.Clone(all), of: map[string]string{"r.test/map:2-amd64": "one", "r.test/stranger:1-amd64": "two"}} // what others built is swept
	opts.Store = theirs
	if report, err := jr2.GC(t.Context(), opts); err == nil || !strings.Contains(err.Error(), `no image of instance "one" was swept`) || !slices.Equal(report.Removed, []string{"r.test/stranger:1-amd64"}) {
		t.Errorf("%v, %+v", err, report)
	}
	opts.Store = store
	_, err = maps.Patch(t.Context(), names.ImagesConfig, types.MergePatchType, []byte(`{"data": {"`+names.ImagesKey+`": "{}"}}`), metav1.PatchOptions{})
	must(t, err)
	orchestrator := w.client.AppsV1().Deployments("gc-one")
	_, err = orchestrator.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: names.Orchestrator, Annotations: map[string]string{
			names.AnnotationImages: `{"sandbox": {"default": "r.test/map:1-amd64"}}`, names.AnnotationReplaced: `{"no": "list"}`}},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}},
	}, metav1.CreateOptions{})
	must(t, err)
	if _, err := jr2.GC(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "the list of replaced images is not readable") || len(store.tags) != len(all) {
		t.Errorf("%v, left %q", err, store.tags)
	}
	patch = []byte(`{"metadata": {"annotations": {"` + names.AnnotationReplaced + `": "[\"r.test/map:2-amd64\"]"}}}`)
	_, err = orchestrator.Patch(t.Context(), names.Orchestrator, types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
	report, err = jr2.GC(t.Context(), jr2.GCOptions{Config: w.Config(), Context: contextName, Store: store, DryRun: true})
	must(t, err)
	if !slices.Equal(report.Removed, []string{"r.test/stranger:1-amd64"}) { // the map of the annotation counts, and what it replaced
		t.Errorf("%+v", report)
	}
	must(t, orchestrator.Delete(t.Context(), names.Orchestrator, metav1.DeleteOptions{}))
	must(t, maps.Delete(t.Context(), names.ImagesConfig, metav1.DeleteOptions{}))
	report, err = jr2.GC(t.Context(), opts)
	must(t, err)
	if len(report.Removed) != 3 || !slices.Equal(store.tags, all[2:6]) {
		t.Errorf("%+v, left %q", report, store.tags)
	}
}
