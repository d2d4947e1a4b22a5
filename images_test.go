package jr2_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/platforms"
)

// A yard is a registry with credentials and a private CA, and a real builder that trusts it.
type yard struct {
	registry  *devcluster.Registry
	base      string
	transport http.RoundTripper
	address   string
}

const yardUser, yardPassword = "pusher", "s3cret"

func theYard(t *testing.T, archs ...string) *yard {
	t.Helper()
	registry, err := devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{User: yardUser, Password: yardPassword, TLS: true})
	must(t, err)
	t.Cleanup(func() { registry.Close() }) //nolint:errcheck // the test is over
	base, err := registry.PushBusybox(t.Context(), "base/busybox:1", archs...)
	must(t, err)
	trust := devcluster.BuildkitOptions{}
	trust.TrustRegistry(registry)
	builder, err := devcluster.StartBuildkitd(t.Context(), trust)
	if errors.Is(err, devcluster.ErrNoBuildkit) {
		devcluster.Missing(t, "no builder can run here: "+err.Error())
	}
	must(t, err)
	t.Cleanup(func() { builder.Close() }) //nolint:errcheck // the test is over
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(registry.CA)
	return &yard{
		registry: registry, base: base, address: builder.Address,
		transport: loopbackOnly{&http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}},
	}
}

// keychain holds the registry's credentials under its host.
func (y *yard) keychain(password string) authn.Keychain {
	return keychain{host: y.registry.Host, auth: &authn.Basic{Username: yardUser, Password: password}}
}

type keychain struct {
	host string
	auth authn.Authenticator
}

func (k keychain) Resolve(target authn.Resource) (authn.Authenticator, error) {
	if target.RegistryStr() == k.host {
		return k.auth, nil
	}
	return authn.Anonymous, nil
}

// use points a converge at the yard.
func (y *yard) use(o *jr2.Options) {
	o.Keychain, o.RegistryTransport, o.BuildkitHost = y.keychain(yardPassword), y.transport, y.address
	o.Env["JR2_REGISTRY"] = y.registry.Host + "/team"
	o.Models = jr2.ProbeNever // nothing runs in the pods of these nodes
}

// review is examples/instances/review with a base image and a set-up that need no public registry.
func (y *yard) review(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "review")
	must(t, os.CopyFS(root, os.DirFS("examples/instances/review")))
	dockerfile := "FROM " + y.base + "\nCOPY setup.sh /tmp/setup.sh\nRUN sh /tmp/setup.sh\nUSER 1200\n"
	must(t, os.WriteFile(filepath.Join(root, "workflows/toolbox/Dockerfile"), []byte(dockerfile), 0o644))
	must(t, os.WriteFile(filepath.Join(root, "workflows/toolbox/setup.sh"), []byte("set -eu\nuname -m > /arch\ncat /arch\n"), 0o644))
	return root
}

// TestReviewIsBuiltAndDelivered builds with a real builder, pushes with credentials, records what was delivered, and does none of it again.
func TestReviewIsBuiltAndDelivered(t *testing.T) {
	t.Parallel()
	y := theYard(t, "amd64")
	w := theWorld(t, node("a"))
	dir := y.review(t)
	first := w.up(t, dir, into("review-built"), y.use)
	must(t, first.err)
	ref := onlyImage(t, first)
	if !strings.HasPrefix(ref.Ref, y.registry.Host+"/team/jr2-sandbox-fx-review-toolbox:") || !strings.HasSuffix(ref.Ref, "-amd64") || ref.User != "1200" {
		t.Errorf("delivered %+v", ref)
	}
	first.tells(t, []string{"…", `sandbox image "toolbox": building ` + ref.Ref, "  USER 1200", "  push → " + y.registry.Host + "/team"})
	w.recordNames(t, "review-built", ref.Ref)

	second := w.up(t, dir, into("review-built"), y.use, func(o *jr2.Options) { o.BuildkitHost = "unix:///nowhere" })
	must(t, second.err)
	if second.result.Changed != 0 || second.result.Built != 0 {
		t.Errorf("the second converge built or changed something:\n%s", second.lines)
	}
	must(t, os.WriteFile(filepath.Join(dir, "workflows/toolbox/setup.sh"), []byte("set -eu\nuname -a > /arch\n"), 0o644))
	third := w.up(t, dir, into("review-built"), y.use)
	must(t, third.err)
	if moved := onlyImage(t, third); moved.Ref == ref.Ref || third.result.Built != 1 {
		t.Errorf("a changed file gave %s, built %d", moved.Ref, third.result.Built)
	}
	forced := w.up(t, dir, into("review-built"), y.use, func(o *jr2.Options) { o.Force = true })
	must(t, forced.err)
	if forced.result.Built != 1 {
		t.Errorf("--force built %d images", forced.result.Built)
	}
}

// TestWrongPasswordRecordsNothing: a push that is refused stops the converge before the record.
func TestWrongPasswordRecordsNothing(t *testing.T) {
	t.Parallel()
	y := theYard(t, "amd64")
	w := theWorld(t, node("a"))
	told := w.up(t, y.review(t), into("review-denied"), y.use, func(o *jr2.Options) { o.Keychain = y.keychain("wrong") })
	if told.err == nil || !strings.Contains(told.err.Error(), y.registry.Host) {
		t.Fatalf("the converge said %v", told.err)
	}
	if strings.Contains(told.err.Error(), "wrong") {
		t.Error("the error shows the password")
	}
	w.isEmptyOfWorkloads(t, "review-denied")
}

// TestSeveralPlatformsAreOneManifestList builds for an amd64 and an arm64 node.
func TestSeveralPlatformsAreOneManifestList(t *testing.T) {
	t.Parallel()
	emulated(t, "arm64")
	y := theYard(t, "amd64", "arm64")
	w := loneWorld(t, node("a"), node("b", arch("arm64")))
	told := w.up(t, y.review(t), into("review-both"), y.use)
	must(t, told.err)
	ref := onlyImage(t, told)
	if !strings.HasSuffix(ref.Ref, "-amd64-arm64") {
		t.Errorf("the tag is %s", ref.Ref)
	}
	parsed, err := name.ParseReference(ref.Ref)
	must(t, err)
	index, err := remote.Index(parsed, remote.WithAuthFromKeychain(y.keychain(yardPassword)), remote.WithTransport(y.transport), remote.WithContext(t.Context()))
	must(t, err)
	manifest, err := index.IndexManifest()
	must(t, err)
	var built []string
	for _, child := range manifest.Manifests {
		built = append(built, child.Platform.String())
	}
	if got := strings.Join(built, ", "); got != "linux/amd64, linux/arm64" {
		t.Errorf("the manifest list has %s", got)
	}
	w.recordNames(t, "review-both", ref.Ref)
}

// TestSeveralPlatformsNeedARegistry: a manifest list can only be pushed.
func TestSeveralPlatformsNeedARegistry(t *testing.T) {
	t.Parallel()
	w := loneWorld(t, node("a"), node("b", arch("arm64")))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1"), "images/default/Dockerfile": "FROM scratch\n"})
	told := w.up(t, dir, into("no-registry-both"))
	var needs *platforms.NeedsRegistryError
	if !errors.As(told.err, &needs) {
		t.Fatalf("the converge said %v", told.err)
	}
}

// amd64Only is a builder of a machine without emulation; it must never be asked to build.
type amd64Only struct{ t *testing.T }

func (amd64Only) Platforms(context.Context) ([]string, error) {
	return []string{"linux/amd64", "linux/amd64/v2", "linux/386"}, nil
}

func (b amd64Only) Build(context.Context, images.BuildRequest) (images.BuildResult, error) {
	b.t.Error("a build was started")
	return images.BuildResult{}, errors.New("unreachable")
}

// TestEmulationRule: the error comes before any build, with the command that helps. The real builder's side is tested in package images.
func TestEmulationRule(t *testing.T) {
	t.Parallel()
	w := loneWorld(t, node("a"), node("b", arch("arm64")))
	files := map[string]string{"jr2.config.ts": configOf(`registry: "registry.example.test/team"`), "workflows/hold.ts": hold("3Gi", "1"), "images/default/Dockerfile": "FROM scratch\n"}
	told := w.up(t, folder(t, files), into("rule-emulation"), func(o *jr2.Options) {
		o.Builder = amd64Only{t}
		o.RegistryTransport = roundTripper(func(r *http.Request) (*http.Response, error) {
			status, header := http.StatusNotFound, http.Header{} // it holds nothing, and takes everything
			switch {
			case r.URL.Path == "/v2/":
				status = http.StatusOK
			case r.Method == http.MethodPost:
				status = http.StatusAccepted
				header.Set("Location", "/v2/upload")
			}
			return &http.Response{StatusCode: status, Header: header, Body: http.NoBody, Request: r}, nil
		})
	})
	headline, more, _ := strings.Cut(rule(t, "error: this host cannot build"), ", then docker ")
	command, _, _ := strings.Cut("docker "+more, ". <missing")
	fill := strings.NewReplacer("<missing platforms>", "linux/arm64", "<builder platforms>", "linux/amd64, linux/amd64/v2, linux/386", "<arches>", "arm64")
	told.tells(t, []string{"…", fill.Replace(headline), "  " + fill.Replace(command)})
	var cannot *platforms.EmulationError
	if !errors.As(told.err, &cannot) {
		t.Errorf("the error is %v", told.err)
	}
}

func onlyImage(t *testing.T, told told) images.Delivered {
	t.Helper()
	if len(told.result.Images) != 1 {
		t.Fatalf("%d images were delivered:\n%s", len(told.result.Images), told.lines)
	}
	for _, delivered := range told.result.Images {
		return delivered
	}
	panic("unreachable")
}

// recordNames checks that the ConfigMap and the annotation both hold the ref.
func (w *world) recordNames(t *testing.T, namespace, ref string) {
	t.Helper()
	config, err := w.client.CoreV1().ConfigMaps(namespace).Get(t.Context(), names.ImagesConfig, metav1.GetOptions{})
	must(t, err)
	deployment, err := w.client.AppsV1().Deployments(namespace).Get(t.Context(), names.Orchestrator, metav1.GetOptions{})
	must(t, err)
	for place, text := range map[string]string{"ConfigMap": config.Data[names.ImagesKey], "annotation": deployment.Annotations[names.AnnotationImages]} {
		var record images.Record
		must(t, json.Unmarshal([]byte(text), &record))
		found := false
		for _, recorded := range record.Sandbox {
			found = found || recorded == ref
		}
		if !found {
			t.Errorf("the %s does not name %s: %s", place, ref, text)
		}
	}
}

func (w *world) isEmptyOfWorkloads(t *testing.T, namespace string) {
	t.Helper()
	deployments, err := w.client.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(deployments.Items) > 0 {
		t.Errorf("%s was applied", deployments.Items[0].Name)
	}
}

// emulated registers emulation for one test; other packages wait their turn, because it holds for the whole machine.
func emulated(t *testing.T, arch string) {
	t.Helper()
	release, err := devcluster.HoldBinfmt(t.Context())
	must(t, err)
	t.Cleanup(release)
	unregister, err := devcluster.RegisterBinfmt(arch)
	if errors.Is(err, devcluster.ErrNoBinfmt) {
		devcluster.Missing(t, "no emulation here: "+err.Error())
	}
	must(t, err)
	t.Cleanup(func() { unregister() }) //nolint:errcheck // the test is over
}
