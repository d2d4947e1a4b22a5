package preflight_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/preflight"
)

// The images that the node is given.
const (
	standInHarness   = "localhost/jr2-harness:1"
	standInCustodian = "localhost/envoy:1"
)

// TestModelProbesOnARealNode asks with the pods that a converge renders, on a node with kubelet and containerd; a small program stands for the two
// closed images. The models are served by this machine.
func TestModelProbesOnARealNode(t *testing.T) {
	t.Parallel()
	cluster := devcluster.ForTest(t, devcluster.Options{Nodes: []devcluster.Node{}})
	node := devcluster.RealNodeForTest(t, cluster, devcluster.RealNodeOptions{})
	image := standInImage(t)
	must(t, node.LoadImage(t.Context(), standInHarness, image))
	must(t, node.LoadImage(t.Context(), standInCustodian, image))
	server := startModelServer(t)
	reachable, err := node.Expose(server.Listener.Addr().String())
	must(t, err)
	w := checkWorld{cluster: cluster, client: clientFor(t, cluster.Config())}
	namespace := w.namespace(t, "real-models", "restricted")
	probes := preflight.ModelProbes{Client: w.client.CoreV1(), Namespace: namespace, Timeout: 2 * time.Minute, Pod: rendered(namespace, standInHarness)}
	absent := probes
	absent.Pod = rendered(namespace, "localhost/no-such-image:1")
	base := "http://" + reachable
	var group errgroup.Group // a kubelet takes its time to give up
	group.Go(func() error {
		findings, err := absent.Models(t.Context(), []preflight.Model{own(base, "good")})
		if len(findings) != 1 || findings[0].Code != preflight.CodeModelsUnprobed || !strings.Contains(findings[0].Message, `Back-off pulling image "localhost/no-such-image:1"`) {
			t.Errorf("got %+v", findings)
		}
		return err
	})
	nobody := "http://" + reachable[:strings.LastIndex(reachable, ":")] + ":9" // the node, where nobody listens
	findings, err := probes.Models(t.Context(), []preflight.Model{own(base, "good"), own(base, "godo"), own(base, "no-tools"), own(nobody, "good")})
	must(t, err)
	var got []string
	for _, f := range findings {
		t.Log(f.Message)
		got = append(got, f.Object+" "+f.Code)
	}
	want := []string{"model local/godo model-unknown", "model local/no-tools model-no-tool-call", "model local/good model-unreachable"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", got)
	}
	must(t, group.Wait())
	w.nothingLeft(t, namespace)
}

// rendered are the pods of a converge with another Harness image.
func rendered(namespace, harness string) func(string) (*corev1.Pod, []runtime.Object, error) {
	in := render.Input{
		Instance: &config.Instance{Name: "app", KitVersion: config.DefaultKitVersion, Harness: config.Harness{
			Env: []config.HarnessEnv{{Name: "LITERAL", Value: config.NewSecret("value")}}}},
		Namespace: namespace, Kit: render.Kit{Version: config.DefaultKitVersion, Harness: harness, Custodian: standInCustodian, Operator: "o", Orchestrator: "o"},
		ImageMap: "{}", SigningKey: config.NewSecret("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="),
	}
	return func(name string) (*corev1.Pod, []runtime.Object, error) { return render.ModelProbe(in, name) }
}

// standInImage is built from testdata/modelstandin.
func standInImage(t *testing.T) v1.Image {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "standin")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-o", binary, "./testdata/modelstandin")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(binary)
	must(t, err)
	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	for _, name := range []string{"opt/jr2/bin/node", "envoy"} {
		must(t, archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}))
		_, err := archive.Write(content)
		must(t, err)
	}
	must(t, archive.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
	must(t, err)
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layer)
	must(t, err)
	found, err := image.ConfigFile()
	must(t, err)
	found = found.DeepCopy()
	found.OS, found.Architecture, found.Config.Entrypoint, found.Config.User = "linux", goruntime.GOARCH, []string{"/envoy"}, "65532:65532"
	image, err = mutate.ConfigFile(image, found)
	must(t, err)
	return image
}
