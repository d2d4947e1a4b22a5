package jr2

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/rest"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/placement/provision"
)

// RunsOptions say in which namespace of which cluster to look for runs.
type RunsOptions struct {
	// Namespace is where the Sandboxes are. When it is empty, the Instance tells: Instance, or the folder of Dir, Env, Outermost and Isolate, as in
	// Options.
	Namespace string
	Instance  *config.Instance
	Dir       string
	Env       map[string]string
	Outermost string
	Isolate   []string
	// Config, Kubeconfig and Context choose the cluster, as in Options.
	Config     *rest.Config
	Kubeconfig string
	Context    string
}

// Runs are the live runs of an Instance, the oldest first, as its Sandboxes tell: a run is live while one of them is neither lost nor being
// deleted. Runs that Run did not start are among them, if their Sandboxes carry the labels. The error is a *NoKindsError where the cluster has
// no Sandboxes at all.
func Runs(ctx context.Context, opts RunsOptions) ([]provision.Run, error) {
	look, err := opts.connect(ctx)
	if err != nil {
		return nil, err
	}
	runs, err := provision.Runs(ctx, look.config, look.namespace)
	return slices.DeleteFunc(runs, func(r provision.Run) bool { return !r.Live() }), look.kindless(ctx, err)
}

// Status is one run, live or not, by its id or a prefix of it. The error is a *provision.UnknownRunError where there is none, or several.
func Status(ctx context.Context, opts RunsOptions, id string) (*provision.Run, error) {
	look, err := opts.connect(ctx)
	if err != nil {
		return nil, err
	}
	run, err := provision.Status(ctx, look.config, look.namespace, id)
	return run, look.kindless(ctx, err)
}

func (o RunsOptions) connect(ctx context.Context) (*cluster, error) {
	namespace := o.Namespace
	if namespace == "" {
		run := &workflowRun{opts: RunOptions{Instance: o.Instance, Dir: o.Dir, Env: o.Env, Outermost: o.Outermost, Isolate: o.Isolate}, converge: converge{opts: Options{Env: o.Env}}}
		inst, err := run.instance(ctx)
		switch {
		case errors.As(err, new(*config.NotFoundError)):
			return nil, fmt.Errorf("%w, or give the namespace of the runs (-n)", err)
		case inst == nil:
			return nil, err
		}
		namespace = inst.Namespace("") // Workflows that do not load keep nobody from looking
	}
	found, err := resolve(Options{Config: o.Config, Kubeconfig: o.Kubeconfig, Context: o.Context})
	if err != nil {
		return nil, err
	}
	found.namespace = namespace
	return &found, found.dial()
}
