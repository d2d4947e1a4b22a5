package images_test

import (
	"runtime"
	"testing"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/kindnodes"
)

// A kindCluster is containers that carry kind's labels and run a real containerd.
type kindCluster struct{ *kindnodes.Cluster }

// startKind starts a cluster with these nodes, the first of them the control plane.
func startKind(t *testing.T, host, name string, nodes ...string) *kindCluster {
	t.Helper()
	cluster, err := kindnodes.Start(t.Context(), kindnodes.Options{Host: host, Cluster: name, Nodes: nodes, Log: func(line string) { t.Log(line) }})
	skipWithout(t, err, devcluster.ErrNoBusybox)
	t.Cleanup(func() { must(t, cluster.Close()) })
	return &kindCluster{cluster}
}

// docker says where the nodes are.
func (k *kindCluster) docker() images.ConnectOptions {
	return images.ConnectOptions{Env: map[string]string{"DOCKER_HOST": k.Host}}
}

// options let a delivery find the nodes, with the login of the bench.
func (k *kindCluster) options(b *bench) images.Options {
	opts := b.options(nil)
	opts.Docker = k.docker()
	return opts
}

// nodes reaches the nodes of the cluster.
func (k *kindCluster) nodes(t *testing.T) *images.Kind {
	t.Helper()
	kind := &images.Kind{Cluster: k.Options.Cluster, Docker: k.docker()}
	t.Cleanup(func() { must(t, kind.Close()) })
	return kind
}

// plan decides about one image of the Instance without a registry.
func (k *kindCluster) plan(t *testing.T, name, dockerfile string) *images.Decision {
	t.Helper()
	d, err := images.Plan(t.Context(), images.Request{
		Instance: "fx", Context: "kind-" + k.Options.Cluster, Kind: k.Options.Cluster, Platforms: []string{"linux/" + runtime.GOARCH},
		Contexts: []images.Context{{Key: images.DefaultKey, Dir: folder(t, name, map[string]string{"Dockerfile": dockerfile, "hello": name})}},
	})
	must(t, err)
	return d
}

// exec runs a command on a node, past the code under test.
func (k *kindCluster) exec(t *testing.T, node string, command ...string) {
	t.Helper()
	_, err := k.Exec(t.Context(), node, command...)
	must(t, err)
}

func (k *kindCluster) stop(t *testing.T, node string) {
	t.Helper()
	must(t, k.Stop(t.Context(), node))
}

// names are the names under which a node has complete and unpacked images, with their digests.
func (k *kindCluster) names(t *testing.T, node string) map[string]string {
	t.Helper()
	names, err := k.Images(t.Context(), node)
	must(t, err)
	return names
}
