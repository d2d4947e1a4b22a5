package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"jr2.dev/jr2"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
)

// embedded is a cluster of our own: a real control plane with simulated nodes, a registry, and a builder that starts when it is needed.
// Its state is kept, so that the next `up --embedded` finds what this one made.
type embedded struct {
	cluster  *devcluster.Cluster
	registry *devcluster.Registry
	builder  *lazyBuilder
}

// startEmbedded starts the cluster and points the options at it. A registry named by the environment is left as it is.
func startEmbedded(ctx context.Context, options *jr2.Options, progress io.Writer) (*embedded, error) {
	if options.Kubeconfig != "" || options.Context != "" {
		return nil, errors.New("--embedded brings its own cluster: leave out --kubeconfig and --context")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("--embedded keeps its cluster in the user's cache folder: %w", err)
	}
	dir := filepath.Join(cache, "jr2-embedded")
	log := func(line string) { fmt.Fprintln(progress, "embedded: "+line) }
	// Three nodes, so that what must run on different nodes can.
	disk := corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("100Gi")} // a Sandbox requests 10Gi of it
	nodes := []devcluster.Node{{Name: "node-1", Allocatable: disk}, {Name: "node-2", Allocatable: disk}, {Name: "node-3", Allocatable: disk}}
	cluster, err := devcluster.Start(ctx, devcluster.Options{Dir: filepath.Join(dir, "cluster"), Nodes: nodes, Context: "embedded", Log: log})
	if err != nil {
		return nil, notStarted(err, dir)
	}
	registry, err := devcluster.StartRegistry(ctx, devcluster.RegistryOptions{Dir: filepath.Join(dir, "registry")})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("embedded registry: %w", err), cluster.Close())
	}
	builder := &lazyBuilder{options: devcluster.BuildkitOptions{Dir: filepath.Join(dir, "buildkit"), Log: log}}
	builder.options.TrustRegistry(registry)
	options.Config, options.Context = cluster.Config(), "embedded"
	options.Models = jr2.ProbeNever // nothing runs in the pods of these nodes
	if _, named := options.Env["JR2_REGISTRY"]; !named {
		options.Env["JR2_REGISTRY"] = registry.Host + "/jr2"
	}
	if _, named := options.Env["BUILDKIT_HOST"]; !named {
		options.Builder = builder
	}
	log("kubeconfig " + cluster.Kubeconfig())
	return &embedded{cluster: cluster, registry: registry, builder: builder}, nil
}

// notStarted says what helps when the cluster does not start. One that another command runs is in order: to delete it is no advice.
func notStarted(err error, dir string) error {
	if errors.As(err, new(*devcluster.InUseError)) {
		return fmt.Errorf("the embedded cluster is run by another command — wait until that ends, then run this again: %w", err)
	}
	return fmt.Errorf("embedded cluster: %w — to start afresh, delete %s", err, dir)
}

func (e *embedded) close() {
	e.builder.close()
	e.registry.Close() //nolint:errcheck // nothing is lost: both keep their state on disk
	e.cluster.Close()  //nolint:errcheck // as above
}

// lazyBuilder starts a BuildKit daemon with the first build.
type lazyBuilder struct {
	options devcluster.BuildkitOptions
	mu      sync.Mutex
	daemon  *devcluster.Buildkitd
	client  *images.BuildKit
}

func (b *lazyBuilder) start(ctx context.Context) (*images.BuildKit, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.client != nil {
		return b.client, nil
	}
	if b.daemon == nil {
		daemon, err := devcluster.StartBuildkitd(ctx, b.options)
		if err != nil {
			return nil, fmt.Errorf("the embedded builder: %w", err)
		}
		b.daemon = daemon
	}
	client, err := images.Connect(ctx, images.ConnectOptions{Address: b.daemon.Address})
	b.client = client
	return client, err
}

// Platforms implements images.Builder.
func (b *lazyBuilder) Platforms(ctx context.Context) ([]string, error) {
	client, err := b.start(ctx)
	if err != nil {
		return nil, err
	}
	return client.Platforms(ctx)
}

// Build implements images.Builder.
func (b *lazyBuilder) Build(ctx context.Context, request images.BuildRequest) (images.BuildResult, error) {
	client, err := b.start(ctx)
	if err != nil {
		return images.BuildResult{}, err
	}
	return client.Build(ctx, request)
}

func (b *lazyBuilder) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.daemon != nil {
		b.daemon.Close() //nolint:errcheck // its cache is kept on disk
	}
}
