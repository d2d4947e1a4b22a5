package v1alpha1_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jr2.dev/jr2/internal/devcluster/build"
	"jr2.dev/jr2/placement/v1alpha1"
)

// arguments are those of the go:generate line that say what is made; where it goes differs here.
const arguments = "object crd:maxDescLen=0 paths=."

// TestGeneratedFilesAreCurrent makes them again, with the arguments of the go:generate line, and compares.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	if doc, err := os.ReadFile("doc.go"); err != nil || !strings.Contains(string(doc), "cmd/controller-gen "+arguments+" ") {
		t.Errorf("the go:generate line has other arguments than %q (%v)", arguments, err)
	}
	cache := &build.Cache{Log: func(line string) { t.Log(line) }}
	bin, err := cache.Ensure(t.Context(), build.ControllerGen())
	if err != nil {
		t.Fatal(err)
	}
	fresh := t.TempDir()
	generate := exec.CommandContext(t.Context(), filepath.Join(bin, "controller-gen"),
		append(strings.Fields(arguments), "output:object:dir="+fresh, "output:crd:dir="+filepath.Join(fresh, "crds"))...)
	if output, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	made, err := filepath.Glob(filepath.Join(fresh, "crds", "*"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join("crds", "*"))
	if err != nil || len(kept) != len(made) {
		t.Errorf("crds holds %v, generated are %v (%v)", kept, made, err)
	}
	for _, file := range append(made, filepath.Join(fresh, "zz_generated.deepcopy.go")) {
		name, err := filepath.Rel(fresh, file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the types say: run go generate ./placement/v1alpha1 (%v)", name, err)
		}
	}
}

// TestCRDsFitTheirStore: an object that etcd takes must stay below 1.5 MiB, and each converge sends these.
func TestCRDsFitTheirStore(t *testing.T) {
	crds, err := v1alpha1.CRDs()
	if err != nil || len(crds) != 2 {
		t.Fatalf("got %d, %v", len(crds), err)
	}
	for _, crd := range crds {
		if size := crd.Size(); size > 256<<10 {
			t.Errorf("%s has %d bytes", crd.Name, size)
		}
	}
}
