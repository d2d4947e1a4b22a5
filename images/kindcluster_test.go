package images_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
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
			// As much as containerd needs to unpack an image. A real node has all rights, which not every machine can give.
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

// options let a delivery find the nodes, with the login of the bench.
func (k *kindCluster) options(b *bench) images.Options {
	opts := b.options(nil)
	opts.Docker = images.ConnectOptions{Env: map[string]string{"DOCKER_HOST": k.host}}
	return opts
}

// nodes reaches the nodes of the cluster.
func (k *kindCluster) nodes(t *testing.T) *images.Kind {
	t.Helper()
	kind := &images.Kind{Cluster: k.name, Docker: images.ConnectOptions{Env: map[string]string{"DOCKER_HOST": k.host}}}
	t.Cleanup(func() { must(t, kind.Close()) })
	return kind
}

// plan decides about one image of the Instance without a registry.
func (k *kindCluster) plan(t *testing.T, name, dockerfile string) *images.Decision {
	t.Helper()
	d, err := images.Plan(t.Context(), images.Request{
		Instance: "fx", Context: "kind-" + k.name, Kind: k.name, Platforms: []string{"linux/" + runtime.GOARCH},
		Contexts: []images.Context{{Key: images.DefaultKey, Dir: folder(t, name, map[string]string{"Dockerfile": dockerfile, "hello": name})}},
	})
	must(t, err)
	return d
}

// names are the names under which a node's containerd has complete and unpacked images, with their digests.
func (k *kindCluster) names(t *testing.T, node string) map[string]string {
	t.Helper()
	out, err := k.exec(t, node, "ctr", "--namespace=k8s.io", "images", "check", "--snapshotter=native")
	must(t, err)
	names := map[string]string{}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) > 4 && fields[3] == "complete" && fields[len(fields)-1] == "true" {
			names[fields[0]] = fields[2]
		}
	}
	return names
}
