package images_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/moby/moby/api/types/container"
	moby "github.com/moby/moby/client"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/devcluster/build"
)

// containerdConfig lets containerd run where no overlay of an overlay can be made.
const containerdConfig = `version = 3
[plugins."io.containerd.cri.v1.images"]
snapshotter = "native"
[[plugins."io.containerd.transfer.v1.local".unpack_config]]
platform = "linux/%s"
snapshotter = "native"
`

// A kindCluster is containers that carry kind's labels and run a real containerd; there is no Kubernetes in them.
type kindCluster struct {
	name string
	host string
	api  *moby.Client
	ids  map[string]string
}

// startKind starts a cluster with these nodes, the first of them the control plane.
func startKind(t *testing.T, host, name string, nodes ...string) *kindCluster {
	t.Helper()
	binaries, err := (&build.Cache{Log: func(line string) { t.Log(line) }}).Ensure(t.Context(), build.Containerd())
	must(t, err)
	api, err := moby.New(moby.WithHost(host))
	must(t, err)
	t.Cleanup(func() { must(t, api.Close()) })
	k := &kindCluster{name: name, host: host, api: api, ids: map[string]string{}}
	k.makeNodeImage(t)
	for i, node := range append(nodes, name+"-external-load-balancer") {
		role := "worker"
		switch {
		case i == 0:
			role = "control-plane"
		case i == len(nodes):
			role = "external-load-balancer"
		}
		made, err := api.ContainerCreate(t.Context(), moby.ContainerCreateOptions{
			Name: node,
			Config: &container.Config{
				Image: "kind-node:test", Cmd: []string{"containerd", "--log-level", "warn"}, Env: []string{"PATH=/opt/containerd:/bin"},
				Labels: map[string]string{"io.x-k8s.kind.cluster": name, "io.x-k8s.kind.role": role},
			},
			HostConfig: &container.HostConfig{CapAdd: []string{"SYS_ADMIN"}, SecurityOpt: []string{"seccomp=unconfined", "apparmor=unconfined"}, NetworkMode: "none", Binds: []string{binaries + ":/opt/containerd:ro"}},
		})
		must(t, err)
		k.ids[node] = made.ID
		if role != "external-load-balancer" {
			k.start(t, node)
		}
	}
	return k
}

// makeNodeImage gives the engine an image with a shell and containerd's configuration.
func (k *kindCluster) makeNodeImage(t *testing.T) {
	t.Helper()
	index, err := devcluster.BusyboxIndex(runtime.GOARCH)
	skipWithout(t, err, devcluster.ErrNoBusybox)
	manifest, err := index.IndexManifest()
	must(t, err)
	image, err := index.Image(manifest.Manifests[0].Digest)
	must(t, err)
	var files bytes.Buffer
	flat := mutate.Extract(image)
	in, out := tar.NewReader(flat), tar.NewWriter(&files)
	for {
		entry, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		must(t, out.WriteHeader(entry))
		_, err = io.Copy(out, in)
		must(t, err)
	}
	must(t, flat.Close())
	config := fmt.Sprintf(containerdConfig, runtime.GOARCH)
	must(t, out.WriteHeader(&tar.Header{Name: "etc/containerd/config.toml", Mode: 0o644, Size: int64(len(config))}))
	_, err = io.WriteString(out, config)
	must(t, err)
	must(t, out.Close())
	answer, err := k.api.ImageImport(t.Context(), moby.ImageImportSource{Source: &files, SourceName: "-"}, "kind-node:test", moby.ImageImportOptions{})
	must(t, err)
	_, err = io.Copy(io.Discard, answer)
	must(t, errors.Join(err, answer.Close()))
}

func (k *kindCluster) start(t *testing.T, node string) {
	t.Helper()
	_, err := k.api.ContainerStart(t.Context(), k.ids[node], moby.ContainerStartOptions{})
	must(t, err)
}

func (k *kindCluster) stop(t *testing.T, node string) {
	t.Helper()
	_, err := k.api.ContainerKill(t.Context(), k.ids[node], moby.ContainerKillOptions{Signal: "KILL"})
	must(t, err)
	wait := k.api.ContainerWait(t.Context(), k.ids[node], moby.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case err := <-wait.Error:
		t.Fatal(err)
	case <-wait.Result:
	}
}

// wait returns when the node's containerd answers.
func (k *kindCluster) wait(t *testing.T, node string) {
	t.Helper()
	for {
		out, err := k.exec(t, node, "ctr", "version")
		if err == nil {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(out, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// exec runs a command on a node, past the code under test.
func (k *kindCluster) exec(t *testing.T, node string, command ...string) (string, error) {
	t.Helper()
	made, err := k.api.ExecCreate(t.Context(), k.ids[node], moby.ExecCreateOptions{Cmd: command, TTY: true, AttachStdout: true, AttachStderr: true})
	must(t, err)
	attached, err := k.api.ExecAttach(t.Context(), made.ID, moby.ExecAttachOptions{TTY: true})
	must(t, err)
	defer attached.Close()
	out, err := io.ReadAll(attached.Reader)
	must(t, err)
	for {
		state, err := k.api.ExecInspect(t.Context(), made.ID, moby.ExecInspectOptions{})
		must(t, err)
		if !state.Running && state.ExitCode != 0 {
			return string(out), fmt.Errorf("status %d: %s", state.ExitCode, out)
		}
		if !state.Running {
			return string(out), nil
		}
	}
}

func testKind(t *testing.T, b *bench) {
	start := time.Now()
	k := startKind(t, b.builder.Address(), "dev", "dev-control-plane", "dev-worker")
	t.Log(time.Since(start))
	for _, n := range []string{"dev-control-plane", "dev-worker"} {
		k.wait(t, n)
	}
	t.Log(time.Since(start))
	dir := folder(t, "toolbox", map[string]string{"Dockerfile": "FROM " + b.base + "\nCOPY hello /hello\nUSER 1200\n", "hello": "good morning\n"})
	d, err := images.Plan(t.Context(), images.Request{Instance: "fx", Context: "kind-dev", Kind: "dev", Platforms: []string{"linux/amd64"}, Contexts: []images.Context{{Key: images.DefaultKey, Dir: dir}}})
	must(t, err)
	opts := b.options(nil)
	opts.Docker = images.ConnectOptions{Env: map[string]string{"DOCKER_HOST": k.host}}
	got, events, err := b.deliver(t, b.builder, d, opts)
	t.Log(time.Since(start), got, kinds(events), err)
	for _, n := range []string{"dev-control-plane", "dev-worker"} {
		out, err := k.exec(t, n, "ctr", "-n", "k8s.io", "images", "check", "--snapshotter", "native")
		t.Log(out, err)
	}
	start = time.Now()
	got, events, err = b.deliver(t, nil, d, opts)
	t.Log(time.Since(start), got, kinds(events), err)
}
