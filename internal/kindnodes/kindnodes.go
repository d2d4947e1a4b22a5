// Package kindnodes starts containers for tests that carry kind's labels and run a real containerd, in a Docker Engine that a test has started.
//
// They are what loading and sweeping images sees of a kind cluster. There is no Kubernetes in them; the API server of such a test is another.
package kindnodes

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/moby/moby/api/types/container"
	moby "github.com/moby/moby/client"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/devcluster/build"
)

// Options say which cluster to start.
type Options struct {
	// Host is the Docker Engine, as DOCKER_HOST gives it.
	Host string
	// Cluster is the cluster's name in kind.
	Cluster string
	// Nodes are the names of the nodes; the first is the control plane. A load balancer, which is no node, is made as well.
	Nodes []string
	// Log takes progress of the build of containerd. Default: silent.
	Log func(line string)
}

// A Cluster is running nodes. They end with their Docker Engine.
type Cluster struct {
	Options
	api *moby.Client
	ids map[string]string
}

// nodeImage is a shell and containerd's configuration. containerd itself is mounted.
const nodeImage = "kind-node:test"

// MachineID is in /etc/machine-id of every node; a real one has its own.
const MachineID = "6b1a2f0c4d5e4a7b8c9d0e1f2a3b4c5d"

// containerdConfig lets containerd unpack where no overlay of an overlay can be made.
const containerdConfig = `version = 3
[plugins."io.containerd.cri.v1.images"]
snapshotter = "native"
[[plugins."io.containerd.transfer.v1.local".unpack_config]]
platform = "linux/%s"
snapshotter = "native"
`

// Start starts the cluster and returns when containerd answers on each node. It takes busybox (devcluster.ErrNoBusybox where there is none).
func Start(ctx context.Context, options Options) (*Cluster, error) {
	binaries, err := (&build.Cache{Log: options.Log}).Ensure(ctx, build.Containerd())
	if err != nil {
		return nil, err
	}
	api, err := moby.New(moby.WithHost(options.Host))
	if err != nil {
		return nil, err
	}
	c := &Cluster{Options: options, api: api, ids: map[string]string{}}
	if err := c.start(ctx, binaries); err != nil {
		return nil, errors.Join(err, api.Close())
	}
	return c, nil
}

// Close ends the connection to the Docker Engine.
func (c *Cluster) Close() error { return c.api.Close() }

func (c *Cluster) start(ctx context.Context, binaries string) error {
	if err := c.importImage(ctx); err != nil {
		return err
	}
	for i, node := range c.Nodes {
		role := "worker"
		if i == 0 {
			role = "control-plane"
		}
		if err := c.create(ctx, node, role, binaries); err != nil {
			return err
		}
		if _, err := c.api.ContainerStart(ctx, c.ids[node], moby.ContainerStartOptions{}); err != nil {
			return err
		}
	}
	if err := c.create(ctx, c.Cluster+"-external-load-balancer", "external-load-balancer", binaries); err != nil {
		return err
	}
	for _, node := range c.Nodes {
		if err := c.wait(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) create(ctx context.Context, name, role, binaries string) error {
	made, err := c.api.ContainerCreate(ctx, moby.ContainerCreateOptions{
		Name: name,
		Config: &container.Config{
			Image: nodeImage, Cmd: []string{"containerd", "--log-level", "warn"}, Env: []string{"PATH=/opt/containerd:/bin"},
			Labels: map[string]string{"io.x-k8s.kind.cluster": c.Cluster, "io.x-k8s.kind.role": role},
		},
		HostConfig: &container.HostConfig{
			// As much as containerd needs to unpack an image. A real node has all rights, which not every machine can give.
			CapAdd: []string{"SYS_ADMIN"}, SecurityOpt: []string{"seccomp=unconfined", "apparmor=unconfined"},
			NetworkMode: "none", Binds: []string{binaries + ":/opt/containerd:ro"},
		},
	})
	c.ids[name] = made.ID
	return err
}

// importImage gives the engine the image of the nodes.
func (c *Cluster) importImage(ctx context.Context) error {
	files, err := nodeFiles()
	if err != nil {
		return err
	}
	answer, err := c.api.ImageImport(ctx, moby.ImageImportSource{Source: files, SourceName: "-"}, nodeImage, moby.ImageImportOptions{})
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer)
	return errors.Join(err, answer.Close())
}

func nodeFiles() (io.Reader, error) {
	index, err := devcluster.BusyboxIndex(runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		return nil, err
	}
	flat := mutate.Extract(image)
	defer flat.Close() //nolint:errcheck // it was only read
	var files bytes.Buffer
	out := tar.NewWriter(&files)
	for in := tar.NewReader(flat); ; {
		entry, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := out.WriteHeader(entry); err != nil {
			return nil, err
		}
		if _, err := io.Copy(out, in); err != nil {
			return nil, err
		}
	}
	for name, text := range map[string]string{
		"etc/containerd/config.toml": fmt.Sprintf(containerdConfig, runtime.GOARCH),
		"etc/machine-id":             MachineID + "\n",
	} {
		if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(out, text); err != nil {
			return nil, err
		}
	}
	return &files, out.Close()
}

// wait returns when the node's containerd answers.
func (c *Cluster) wait(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err := c.Exec(ctx, node, "ctr", "version")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("containerd does not answer on node %s: %w", node, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Exec runs a command on a node and returns what it wrote. A status other than 0 is an error.
func (c *Cluster) Exec(ctx context.Context, node string, command ...string) (string, error) {
	made, err := c.api.ExecCreate(ctx, c.ids[node], moby.ExecCreateOptions{Cmd: command, TTY: true, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return "", err
	}
	attached, err := c.api.ExecAttach(ctx, made.ID, moby.ExecAttachOptions{TTY: true})
	if err != nil {
		return "", err
	}
	defer attached.Close()
	out, err := io.ReadAll(attached.Reader)
	if err != nil {
		return string(out), err
	}
	for {
		state, err := c.api.ExecInspect(ctx, made.ID, moby.ExecInspectOptions{})
		switch {
		case err != nil:
			return string(out), err
		case state.Running: // the engine notices a moment later
		case state.ExitCode != 0:
			return string(out), fmt.Errorf("%s: status %d: %s", strings.Join(command, " "), state.ExitCode, out)
		default:
			return string(out), nil
		}
	}
}

// Stop ends a node at once, and returns when it has ended.
func (c *Cluster) Stop(ctx context.Context, node string) error {
	if _, err := c.api.ContainerKill(ctx, c.ids[node], moby.ContainerKillOptions{Signal: "KILL"}); err != nil {
		return err
	}
	wait := c.api.ContainerWait(ctx, c.ids[node], moby.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case err := <-wait.Error:
		return err
	case <-wait.Result:
		return nil
	}
}

// Images are the names under which a node holds complete and unpacked images for Kubernetes, with the digests behind them.
func (c *Cluster) Images(ctx context.Context, node string) (map[string]string, error) {
	out, err := c.Exec(ctx, node, "ctr", "--namespace=k8s.io", "images", "check", "--snapshotter=native")
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) > 4 && fields[3] == "complete" && fields[len(fields)-1] == "true" {
			names[fields[0]] = fields[2]
		}
	}
	return names, nil
}
