package devcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/internal/devcluster/build"
)

// startTimeout bounds how long the components may take to come up; builds are not counted.
const startTimeout = 3 * time.Minute

// A Cluster runs until Close, or until this process ends.
type Cluster struct {
	options Options
	state   *state
	bins    binaries
	spawner *spawner
	client  kubernetes.Interface

	// mu guards what follows.
	mu        sync.Mutex
	processes []*process
	realNodes []*RealNode
	// wire is what the real nodes are connected by; nil before the first.
	wire     *process
	closed   bool
	failures []error
}

// Start starts a cluster and returns when it can be used: the API server answers, the nodes are as asked, and a pod can be
// created in the default namespace. ctx bounds the start, not the life of the cluster.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	bins, err := ensureBinaries(ctx, options)
	if err != nil {
		return nil, err
	}
	state, err := openState(options.Dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: options, state: state, bins: bins, spawner: newSpawner()}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.shutdown())
	}
	return c, nil
}

func ensureBinaries(ctx context.Context, options Options) (binaries, error) {
	cache := &build.Cache{Dir: options.CacheDir, Log: options.Log}
	var bins binaries
	for _, want := range []struct {
		dir  *string
		tool build.Tool
	}{{&bins.etcd, build.Etcd()}, {&bins.kwok, build.Kwok()}, {&bins.kubernetes, build.Kubernetes()}} {
		dir, err := cache.Ensure(ctx, want.tool)
		if err != nil {
			return binaries{}, err
		}
		*want.dir = dir
	}
	return bins, nil
}

func (c *Cluster) start(ctx context.Context) error {
	if err := c.startControlPlane(ctx); err != nil {
		return err
	}
	// What follows needs the API server only, so it starts at once.
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.ready(ctx) })
	group.Go(func() error { return c.ensureUsers(ctx) })
	group.Go(func() error { return c.ensureStorageClass(ctx) })
	if c.options.Bare {
		group.Go(func() error { return c.ensureAccount(ctx) })
	} else {
		group.Go(func() error { return c.ensureNodes(ctx) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return c.state.save()
}

// startControlPlane starts the processes. A port that someone else took in the meantime is worth another try.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	const tries = 3
	for try := 1; ; try++ {
		err := c.tryControlPlane(ctx)
		if err == nil {
			return nil
		}
		var component *ComponentError
		if try == tries || !errors.As(err, &component) || !strings.Contains(component.Log, "address already in use") {
			return err
		}
		c.logf("%s found its port in use, starting again", component.Name)
		c.stopProcesses(0)
		c.state.APIPort = 0
	}
}

func (c *Cluster) tryControlPlane(ctx context.Context) error {
	var err error
	if c.state.APIPort, err = portAgain(ctx, c.state.APIPort); err != nil {
		return err
	}
	etcdPort, err := freePort()
	if err != nil {
		return err
	}
	kwokPort, err := freePort()
	if err != nil {
		return err
	}
	if err := c.writeFiles(); err != nil {
		return err
	}
	if err := c.launch("etcd", c.etcdArgs(etcdPort)); err != nil {
		return err
	}
	// The API server waits for etcd by itself.
	if err := c.launch("kube-apiserver", c.apiserverArgs(etcdPort)); err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(c.Config()); err != nil {
		return err
	}
	if err := c.answering(ctx); err != nil {
		return err
	}
	if err := pollWhile(ctx, c.components("kube-apiserver"), c.forgetLeases); err != nil {
		return err
	}
	return c.launchClients(kwokPort)
}

// launchClients starts the components that talk to the API server.
func (c *Cluster) launchClients(kwokPort int) error {
	if c.options.Bare {
		return nil
	}
	for _, component := range []struct {
		name string
		args []string
	}{
		{"kube-controller-manager", c.controllerManagerArgs()},
		{"kube-scheduler", c.schedulerArgs()},
		{"kwok", c.kwokArgs(kwokPort)},
	} {
		if err := c.launch(component.name, component.args); err != nil {
			return err
		}
	}
	return nil
}

// launch starts a component and keeps an eye on it.
func (c *Cluster) launch(name string, args []string) error {
	p, err := c.spawner.run(c.state.dir, name, c.bins.path(name), args...)
	if err != nil {
		return err
	}
	c.watch(p)
	return nil
}

// watch notices when the process ends before it is told to.
func (c *Cluster) watch(p *process) {
	c.mu.Lock()
	c.processes = append(c.processes, p)
	c.mu.Unlock()
	go func() {
		<-p.done
		failure := p.ended()
		c.mu.Lock()
		ours := slices.Contains(c.processes, p)
		if ours {
			c.failures = append(c.failures, failure)
		}
		c.mu.Unlock()
		if ours {
			c.logf("%v", failure)
		}
	}()
}

// end ends a process that was watched; nil is none.
func (c *Cluster) end(p *process) {
	if p == nil {
		return
	}
	c.mu.Lock()
	c.processes = slices.DeleteFunc(c.processes, func(other *process) bool { return other == p })
	c.mu.Unlock()
	p.stop(0)
}

// components are the processes, the one to blame for what does not happen first.
func (c *Cluster) components(blame string) []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.processes)
	slices.SortStableFunc(all, func(a, b *process) int { return cmp.Compare(rank(a, blame), rank(b, blame)) })
	return all
}

func rank(p *process, blame string) int {
	if p.name == blame {
		return 0
	}
	return 1
}

// Err is the first component that ended though nobody told it to, with the end of its log; nil while all are running.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.failures) == 0 {
		return nil
	}
	return c.failures[0]
}

// Config is the admin's, without a limit on requests per second. Each call returns a copy of its own.
func (c *Cluster) Config() *rest.Config { return c.configFor(adminUser) }

// Dir is where the cluster's files are; component logs among them.
func (c *Cluster) Dir() string { return c.state.dir }

// Close ends all processes and, unless Options.Dir is set, removes all files. It returns what ended before its time.
func (c *Cluster) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	failures := errors.Join(c.failures...)
	c.mu.Unlock()
	return errors.Join(failures, c.shutdown())
}

func (c *Cluster) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *Cluster) shutdown() error {
	nodes := c.closeRealNodes()
	var grace time.Duration
	if !c.state.temporary {
		grace = 5 * time.Second
	}
	c.stopProcesses(grace)
	c.spawner.close()
	return errors.Join(nodes, c.state.close())
}

// stopProcesses ends the processes in the reverse of their order. Only etcd has something to bring home.
func (c *Cluster) stopProcesses(etcdGrace time.Duration) {
	c.mu.Lock()
	stopping := c.processes
	c.processes = nil
	c.failures = nil
	c.mu.Unlock()
	for _, p := range slices.Backward(stopping) {
		if p.name == "etcd" {
			p.stop(etcdGrace)
		} else {
			p.stop(0)
		}
	}
}

func (c *Cluster) logf(format string, args ...any) {
	if c.options.Log != nil {
		c.options.Log(fmt.Sprintf(format, args...))
	}
}
