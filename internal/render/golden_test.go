package render

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/pki"
)

var update = flag.Bool("update", false, "write testdata anew")

// everything renders all objects of an Instance in the order of a converge. The CRDs are left out: their own package tests them.
func everything(t *testing.T, in Input) []runtime.Object {
	t.Helper()
	objects := []runtime.Object{Namespace(in)}
	for _, class := range PriorityClasses(in) {
		objects = append(objects, class)
	}
	add := func(more []runtime.Object, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, more...)
	}
	add(Operator(in))
	add(Instance(in))
	add(RepoCache(in), nil)
	add(InstanceHarness(in))
	kept := objects[:0]
	for _, object := range objects {
		if object.GetObjectKind().GroupVersionKind().Kind != "CustomResourceDefinition" {
			kept = append(kept, object)
		}
	}
	return kept
}

// plain converts as a client would send it, without the status.
func plain(t *testing.T, object runtime.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	delete(content, "status")
	if trust, ok := object.(*corev1.ConfigMap); ok && trust.Name == names.TrustConfig {
		for key, text := range trust.Data { // they are long, and those of another module
			content["data"].(map[string]any)[key] = strings.ReplaceAll(text, string(pki.PublicRoots()), "the public authorities\n")
		}
	}
	return &unstructured.Unstructured{Object: content}
}

func manifest(t *testing.T, objects []runtime.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, object := range objects {
		text, err := yaml.Marshal(plain(t, object))
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes()
}

func TestGolden(t *testing.T) {
	for name, make := range map[string]func(*testing.T) Input{"ping": ping, "hold": hold, "review": review} {
		t.Run(name, func(t *testing.T) {
			got := manifest(t, everything(t, make(t)))
			file := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s differs from what is rendered; look at git diff after: go test ./internal/render -update", file)
			}
			if again := manifest(t, everything(t, make(t))); !bytes.Equal(got, again) {
				t.Error("two renders of equal Inputs differ")
			}
		})
	}
}
