package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jr2.dev/jr2"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
)

// A workshop is a registry with a login and an authority of its own, and a builder over TLS that trusts it.
type workshop struct {
	registry *devcluster.Registry
	builder  *devcluster.Buildkitd
	ca, dir  string // the registry's authority; an Instance with an image
	login    string // docker's configuration with the login
}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	const user, password = "pusher", "s3cret"
	registry, err := devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{User: user, Password: password, TLS: true})
	must(t, err)
	t.Cleanup(func() { registry.Close() }) //nolint:errcheck // the test is over
	base, err := registry.PushBusybox(t.Context(), "base/busybox:1", "amd64")
	if errors.Is(err, devcluster.ErrNoBusybox) {
		devcluster.Missing(t, err.Error())
	}
	must(t, err)
	options := devcluster.BuildkitOptions{TLS: true}
	options.TrustRegistry(registry)
	builder, err := devcluster.StartBuildkitd(t.Context(), options)
	if errors.Is(err, devcluster.ErrNoBuildkit) {
		devcluster.Missing(t, err.Error())
	}
	must(t, err)
	t.Cleanup(func() { builder.Close() }) //nolint:errcheck // the test is over
	w := &workshop{registry: registry, builder: builder, ca: filepath.Join(t.TempDir(), "registry.pem"), dir: filepath.Join(t.TempDir(), "review")}
	must(t, os.WriteFile(w.ca, registry.CA, 0o600))
	must(t, os.CopyFS(w.dir, os.DirFS(instances(t, "review"))))
	must(t, os.WriteFile(filepath.Join(w.dir, "workflows/toolbox/Dockerfile"), []byte("FROM "+base+"\nRUN echo built > /built\nUSER 1200\n"), 0o600))
	w.login = fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, registry.Host, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	return w
}

// dockerConfig is the docker command's configuration of the isolated home.
func dockerConfig(t *testing.T, text string) {
	t.Helper()
	dir := filepath.Join(os.Getenv("HOME"), ".docker")
	must(t, os.MkdirAll(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600))
}

// testBuilders: the flags and variables that say where images are built, and how registries are reached.
func (s *stage) testBuilders(t *testing.T, w *workshop) {
	dockerConfig(t, w.login)
	home := os.Getenv("HOME")
	base := []string{"HOME=" + home, "JR2_REGISTRY=" + w.registry.Host + "/team"}
	up := func(env []string, more ...string) (*session, error) {
		run := newSession()
		run.env = append(env, base...)
		args := append([]string{"up", w.dir, "--yes", "--kubeconfig", s.cluster.Kubeconfig(), "--context", "shared", "-n", "builders", "--registry-ca", w.ca, "--no-probe"}, more...)
		return run, run.run(t.Context(), args...)
	}
	for _, c := range []struct {
		name string
		env  []string
		args []string
		want string
	}{
		{"DOCKER_HOST", []string{"DOCKER_HOST=unix:///nowhere/docker.sock"}, nil, "\n  Docker Engine at unix:///nowhere/docker.sock (DOCKER_HOST is set): "},
		{"DOCKER_HOST over TLS", []string{"DOCKER_HOST=tcp://127.0.0.1:1", "DOCKER_TLS_VERIFY=1", "DOCKER_CERT_PATH=" + filepath.Dir(w.builder.CACert)}, nil, "\n  Docker Engine at tcp://127.0.0.1:1 (DOCKER_HOST is set): "},
		{"DOCKER_CONTEXT", []string{"DOCKER_CONTEXT=elsewhere"}, nil, "\n  Docker Engine at unix:///nowhere/context.sock (docker context \"elsewhere\": DOCKER_CONTEXT is set): "},
		{"BUILDKIT_HOST", []string{"BUILDKIT_HOST=unix:///nowhere/b.sock", "DOCKER_HOST=unix:///nowhere/docker.sock"}, nil, "Tried:\n  BuildKit at unix:///nowhere/b.sock (named by BUILDKIT_HOST or the options): "},
		{"the flag before it", []string{"BUILDKIT_HOST=" + w.builder.Address}, []string{"--buildkit-addr", "unix:///nowhere/flag.sock"}, "Tried:\n  BuildKit at unix:///nowhere/flag.sock ("},
		{"no authority", nil, []string{"--buildkit-addr", w.builder.Address, "--buildkit-tlscert", w.builder.Cert, "--buildkit-tlskey", w.builder.Key, "--buildkit-timeout", "2s"}, "unknown authority"},
		{"another name", nil, []string{"--buildkit-addr", w.builder.Address, "--buildkit-tlsdir", filepath.Dir(w.builder.CACert), "--buildkit-tlsservername", "builder.test", "--buildkit-timeout", "2s"}, "builder.test"},
		{"a builder for another platform", nil, []string{"--buildkit-native", "linux/arm64=tcp://127.0.0.1:1"}, "cannot be built: no builder is named for linux/amd64"},
		{"no platform", nil, []string{"--buildkit-native", "tcp://127.0.0.1:1"}, "want PLATFORM=ADDRESS"},
		{"no authority for the registry", nil, []string{"--registry-ca", "/nowhere/ca.pem"}, "certificate authority for registries: open /nowhere/ca.pem"},
	} {
		dockerContextOf(t, home, "elsewhere", "unix:///nowhere/context.sock")
		run, err := up(c.env, c.args...)
		if err == nil || !strings.Contains(run.err.String(), c.want) {
			t.Errorf("%s: no %q in\n%s", c.name, c.want, run.err)
		}
	}
	for name, flags := range map[string][]string{
		"the files":             {"--buildkit-tlscacert", w.builder.CACert, "--buildkit-tlscert", w.builder.Cert, "--buildkit-tlskey", w.builder.Key, "--buildkit-tlsservername", "localhost"},
		"the folder":            {"--buildkit-tlsdir", filepath.Dir(w.builder.CACert)},
		"one for each platform": {"--buildkit-native", "linux/arm64=tcp://127.0.0.1:1", "--buildkit-native", "linux/amd64=" + w.builder.Address, "--buildkit-tlsdir", filepath.Dir(w.builder.CACert)},
	} {
		run, err := up([]string{"BUILDKIT_HOST=" + w.builder.Address}, append(flags, "--force")...)
		if err != nil || !strings.Contains(run.err.String(), "\nsandbox image \"toolbox\": building "+w.registry.Host+"/team/jr2-sandbox-fx-review-toolbox:") ||
			!strings.Contains(run.err.String(), "\n  push → "+w.registry.Host+"/team\n") ||
			!strings.Contains(run.err.String(), "\nwarning: models were not asked — as the options of this converge say: ") {
			t.Errorf("%s: %v\n%s", name, err, run.err)
		}
	}
}

// dockerContextOf writes a context of the docker command into its store.
func dockerContextOf(t *testing.T, home, name, host string) {
	t.Helper()
	id := sha256.Sum256([]byte(name))
	dir := filepath.Join(home, ".docker", "contexts", "meta", hex.EncodeToString(id[:]))
	must(t, os.MkdirAll(dir, 0o700))
	text := fmt.Sprintf(`{"Name":%q,"Metadata":{},"Endpoints":{"docker":{"Host":%q,"SkipTLSVerify":false}}}`, name, host)
	must(t, os.WriteFile(filepath.Join(dir, "meta.json"), []byte(text), 0o600))
}

// TestRegistryFlags: mirrors as they are typed.
func TestRegistryFlags(t *testing.T) {
	var mirrors images.Mirrors
	flag := (*mirrorsFlag)(&mirrors)
	for _, text := range []string{"docker.io=m.test:5000/hub", "ghcr.io=http://10.0.0.7:5000", "docker.io=n.test"} {
		must(t, flag.Set(text))
	}
	if got := fmt.Sprint(mirrors); got != "map[docker.io:[m.test:5000/hub n.test] ghcr.io:[http://10.0.0.7:5000]]" {
		t.Errorf("got %s", got)
	}
	isolated(t)
	for _, args := range [][]string{
		{"up", "--registry-mirror", "docker.io"}, {"plan", "--registry-mirror", "=m.test"}, {"apply", ".", "--registry-mirror", "docker.io/library=m.test"}, {"up", "--registry-mirror", "docker.io=team"},
	} {
		run := newSession()
		err := run.run(t.Context(), args...)
		if err == nil || !strings.HasPrefix(run.err.String(), "error: invalid argument ") || !strings.Contains(run.err.String(), "--registry-mirror") || len(run.err.lines()) != 1 {
			t.Errorf("%q: %s", args, run.err)
		}
	}
}

// TestApplyAsksMirrors: the flags reach the question about an image.
func TestApplyAsksMirrors(t *testing.T) {
	registry, err := devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{})
	must(t, err)
	t.Cleanup(func() { registry.Close() }) //nolint:errcheck // the test is over
	_, err = registry.PushBusybox(t.Context(), "hub/library/busybox:1", "amd64")
	must(t, err)
	ask := jr2.AskRegistries(images.Registry{Mirrors: images.Mirrors{"docker.io": {"127.0.0.1:1", registry.Host + "/hub"}}}, images.LocalRegistry{})
	if found, err := ask(t.Context(), "busybox:1", nil); err != nil || found.Digest == "" {
		t.Errorf("%+v, %v", found, err)
	}
	ask = jr2.AskRegistries(images.Registry{Mirrors: images.Mirrors{"127.0.0.1:1": {registry.Host + "/hub"}}}, images.LocalRegistry{})
	if _, err := ask(t.Context(), "127.0.0.1:1/x:1", nil); err == nil || !strings.Contains(err.Error(), "; mirror "+registry.Host+"/hub: ") {
		t.Errorf("%v", err)
	}
}
