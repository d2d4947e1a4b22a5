package apply_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/filters/imagetag"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"jr2.dev/jr2/apply"
)

const mappedDigest = "sha256:2222222222222222222222222222222222222222222222222222222222222222"

// holdingPod is a workload of a kind with this pod spec in the place where the kind has it.
func holdingPod(kind, name string, pod map[string]any) *unstructured.Unstructured {
	version, spec := "apps/v1", map[string]any{"template": map[string]any{"spec": pod}}
	switch kind {
	case "Pod":
		version, spec = "v1", pod
	case "ReplicationController":
		version = "v1"
	case "Job":
		version = "batch/v1"
	case "CronJob":
		version, spec = "batch/v1", map[string]any{"jobTemplate": map[string]any{"spec": spec}}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"namespace": "demo", "name": name}, "spec": spec,
	}}
}

func podRunning(image string) map[string]any {
	return map[string]any{"containers": []any{map[string]any{"name": "a", "image": image}}}
}

func imageSet(t *testing.T, objs ...*unstructured.Unstructured) *apply.Set {
	t.Helper()
	set := &apply.Set{Name: "demo", Namespace: "demo"}
	for _, o := range objs {
		made, err := apply.NewSet("demo", "demo", o)
		if err != nil {
			t.Fatal(err)
		}
		set.Objects = append(set.Objects, made.Objects...)
	}
	return set
}

func imagesOf(set *apply.Set) []string {
	var all []string
	for _, use := range set.Images() {
		all = append(all, use.Image)
	}
	return all
}

// TestA06MapImages: three images of one pod are pinned in one place, that of the init container included; so are all other places.
func TestA06MapImages(t *testing.T) {
	set := imageSet(t, holdingPod("Deployment", "api", map[string]any{
		"initContainers":      []any{map[string]any{"name": "dist", "image": "git.example.com/team/agent-dist:REPLACE_ME"}},
		"containers":          []any{map[string]any{"name": "api", "image": "git.example.com/team/api@sha256:REPLACE_ME"}, map[string]any{"name": "side", "image": "git.example.com:5000/side"}},
		"ephemeralContainers": []any{map[string]any{"name": "debug", "image": "git.example.com/team/api"}},
		"volumes":             []any{map[string]any{"name": "plain", "emptyDir": map[string]any{}}, map[string]any{"name": "models", "image": map[string]any{"reference": "git.example.com/models:v1"}}},
	}))
	want := []apply.ImageUse{
		{Path: "spec.template.spec.initContainers[0].image", Image: "git.example.com/team/agent-dist:REPLACE_ME"},
		{Path: "spec.template.spec.containers[0].image", Image: "git.example.com/team/api@sha256:REPLACE_ME"},
		{Path: "spec.template.spec.containers[1].image", Image: "git.example.com:5000/side"},
		{Path: "spec.template.spec.ephemeralContainers[0].image", Image: "git.example.com/team/api"},
		{Path: "spec.template.spec.volumes[1].image.reference", Image: "git.example.com/models:v1"},
	}
	for i := range want {
		want[i].Ref = apply.RefOf(set.Objects[0])
	}
	if got := set.Images(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	err := set.MapImages(map[string]apply.ImageMapping{
		"git.example.com/team/agent-dist": {Digest: mappedDigest},
		"git.example.com/team/api":        {NewName: "mirror.example.com/api", Digest: mappedDigest},
		"git.example.com:5000/side":       {NewTag: "v2"},
		"git.example.com/models":          {NewName: "mirror.example.com/models"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := imagesOf(set), []string{"git.example.com/team/agent-dist@" + mappedDigest, "mirror.example.com/api@" + mappedDigest, "git.example.com:5000/side:v2",
		"mirror.example.com/api@" + mappedDigest, "mirror.example.com/models:v1"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestMapImagesOfEveryKind(t *testing.T) {
	var objs []*unstructured.Unstructured
	kinds := []string{"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob"}
	for _, kind := range kinds {
		objs = append(objs, holdingPod(kind, strings.ToLower(kind), podRunning("r.example.com/app:v1")))
	}
	objs = append(objs, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "demo", "name": "c"}, "data": map[string]any{"image": "r.example.com/app:v1"}}})
	set := imageSet(t, objs...)
	if err := set.MapImages(map[string]apply.ImageMapping{"r.example.com/app": {Digest: mappedDigest}}); err != nil {
		t.Fatal(err)
	}
	got := imagesOf(set)
	if len(got) != len(kinds) {
		t.Errorf("got %q", got)
	}
	for _, image := range got {
		if image != "r.example.com/app@"+mappedDigest {
			t.Errorf("got %q", image)
		}
	}
}

// TestMapImagesAsKustomizeDoes compares with kustomize's own filter.
func TestMapImagesAsKustomizeDoes(t *testing.T) {
	for _, image := range []string{"app", "app:v1", "app@" + otherDigest, "app:v1@" + otherDigest, "r.example.com:5000/team/app", "r.example.com:5000/team/app:v1@" + otherDigest, "app2:v1", "team/app:v1"} {
		for _, from := range []string{"app", "r.example.com:5000/team/app"} {
			for _, to := range []apply.ImageMapping{{}, {NewName: "mirror.example.com/x"}, {NewTag: "v2"}, {Digest: mappedDigest}, {NewTag: "v2", Digest: mappedDigest}, {NewName: "y", NewTag: "v3"}} {
				node := yaml.MustParse("{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, image: '" + image + "'}]}}")
				filter := imagetag.Filter{ImageTag: types.Image{Name: from, NewName: to.NewName, NewTag: to.NewTag, Digest: to.Digest},
					FsSlice: []types.FieldSpec{{Path: "spec/containers[]/image"}}}
				if _, err := filter.Filter([]*yaml.RNode{node}); err != nil {
					t.Fatal(err)
				}
				want, err := node.Pipe(yaml.Lookup("spec", "containers", "0", "image"))
				if err != nil {
					t.Fatal(err)
				}
				set := imageSet(t, holdingPod("Pod", "p", podRunning(image)))
				var unused *apply.UnusedImagesError
				if err := set.MapImages(map[string]apply.ImageMapping{from: to}); err != nil && !errors.As(err, &unused) {
					t.Fatal(err)
				}
				if got := imagesOf(set)[0]; got != yaml.GetValue(want) {
					t.Errorf("%s by %s %+v: got %s, kustomize makes %s", image, from, to, got, yaml.GetValue(want))
				}
			}
		}
	}
}

const otherDigest = "sha256:3333333333333333333333333333333333333333333333333333333333333333"

// TestMapImagesReportsWhatMatchesNothing: a misspelled entry leaves the image that was meant unpinned, and nothing else would say so.
func TestMapImagesReportsWhatMatchesNothing(t *testing.T) {
	set := imageSet(t, holdingPod("Deployment", "api", podRunning("r.example.com/api:v1")))
	err := set.MapImages(map[string]apply.ImageMapping{"r.example.com/api": {Digest: mappedDigest}, "r.example.com/agent-dits": {Digest: mappedDigest}, "api": {NewTag: "x"}})
	var unused *apply.UnusedImagesError
	if !errors.As(err, &unused) || !slices.Equal(unused.Names, []string{"api", "r.example.com/agent-dits"}) {
		t.Errorf("got %v", err)
	}
	if got := imagesOf(set); got[0] != "r.example.com/api@"+mappedDigest {
		t.Errorf("got %q", got)
	}
	if err := set.MapImages(nil); err != nil {
		t.Error(err)
	}
}

func TestMapImagesRefusesWhatIsNoReference(t *testing.T) {
	for name, mapping := range map[string]apply.ImageMapping{
		"a placeholder": {Digest: "sha256:REPLACE_ME"}, "capitals": {NewName: "r.example.com/App"}, "a tag with a space": {NewTag: "v 1"}, "a digest without its algorithm": {Digest: strings.Repeat("2", 64)},
	} {
		set := imageSet(t, holdingPod("Deployment", "a", podRunning("r.example.com/a:v1")), holdingPod("Deployment", "b", podRunning("r.example.com/b:v1")))
		err := set.MapImages(map[string]apply.ImageMapping{"r.example.com/a": {NewTag: "v2"}, "r.example.com/b": mapping})
		var bad *apply.ImageError
		if !errors.As(err, &bad) || bad.Name != "r.example.com/b" {
			t.Errorf("%s: got %v", name, err)
		}
		if got := imagesOf(set); !slices.Equal(got, []string{"r.example.com/a:v1", "r.example.com/b:v1"}) {
			t.Errorf("%s: changed to %q", name, got)
		}
	}
}

func ExampleSet_MapImages() {
	set := &apply.Set{Name: "demo", Namespace: "demo", Objects: []*unstructured.Unstructured{holdingPod("Deployment", "api", podRunning("r.example.com/api:stable"))}}
	err := set.MapImages(map[string]apply.ImageMapping{"r.example.com/api": {NewTag: "v1.2.3"}, "r.example.com/wep": {NewTag: "v1.2.3"}})
	fmt.Println(err)
	fmt.Println(set.Images()[0].Image)
	// Output:
	// no image of the set demo/demo has the name r.example.com/wep: correct the image map, or take the entry out
	// r.example.com/api:v1.2.3
}

func ExampleSet_Images() {
	set := &apply.Set{Objects: []*unstructured.Unstructured{holdingPod("CronJob", "backup", podRunning("r.example.com/backup:v1"))}}
	for _, use := range set.Images() {
		fmt.Println(use.Ref, use.Path, use.Image)
	}
	// Output: CronJob.batch demo/backup spec.jobTemplate.spec.template.spec.containers[0].image r.example.com/backup:v1
}
