package controller

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
)

// Run runs the controller until ctx ends, which is no error. cfg is copied; its client-side limit on requests is lifted, because the API
// server has priority and fairness. Several Runs may go on in one process, for one cluster or several.
//
// The rights that it needs, asked before it begins: to read, create and delete pods, to read and create Services, to read and delete Sandboxes, to
// read Repos, to patch the status of both kinds; with leader election, to get, create and update Leases in its namespace. Two more make it better: with list and watch of ResourceQuotas it places what a
// quota refused as soon as there is room, and not by the clock; with get of Nodes it tells a lost node from a deleted pod.
//
// Errors: ErrNoKinds; ErrNoElectionNamespace; a *RightsError; what the API server or the cache said when it could not start; a lost leader election.
func Run(ctx context.Context, cfg *rest.Config, opts Options) error {
	// Not logr.Discard: controller-runtime takes that for "not set", and its own logger complains on standard error when nobody sets it.
	logger := logr.New(log.NullLogSink{})
	if opts.Log != nil {
		logger = logr.FromSlogHandler(opts.Log.Handler())
	}
	ctx = logr.NewContext(ctx, logger)
	election, err := electionNamespace(opts)
	if err != nil {
		return err
	}
	m, err := newManager(ctx, cfg, opts, election, logger)
	if err != nil {
		return err
	}
	if err := checkKinds(m.GetRESTMapper()); err != nil {
		return err
	}
	live, err := client.New(m.GetConfig(), client.Options{HTTPClient: m.GetHTTPClient(), Scheme: m.GetScheme(), Mapper: m.GetRESTMapper(), Log: logger})
	if err != nil {
		return err
	}
	if err := checkRights(ctx, live, opts, election); err != nil {
		return err
	}
	quotas, err := mayWatchQuotas(ctx, live, opts.Namespaces)
	if err != nil {
		return fmt.Errorf("ask for the right to watch ResourceQuotas: %w", err)
	}
	now := opts.Clock
	if now == nil {
		now = clock.RealClock{}
	}
	boxes := &sandboxes{concurrency: cmp.Or(opts.Concurrency, DefaultConcurrency), client: m.GetClient(), live: live, clock: now, pace: newPace(), quotas: quotas}
	if err := addSandboxes(ctx, m, boxes); err != nil {
		return err
	}
	if err := addRepos(m, &repos{client: m.GetClient(), clock: now}); err != nil {
		return err
	}
	return m.Start(ctx)
}

func newManager(ctx context.Context, cfg *rest.Config, opts Options, election string, logger logr.Logger) (manager.Manager, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	if cfg.WarningHandler == nil && cfg.WarningHandlerWithContext == nil {
		cfg.WarningHandler = rest.NoWarnings{} // or else client-go prints them
	}
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(all); err != nil {
			return nil, err
		}
	}
	lock, err := electionLock(cfg, opts, election)
	if err != nil {
		return nil, err
	}
	m, err := manager.New(cfg, manager.Options{
		Scheme: all,
		Logger: logger,
		Cache:  cacheOptions(opts, logger),
		NewClient: func(cfg *rest.Config, o client.Options) (client.Client, error) {
			o.Log = logger
			return client.New(cfg, o)
		},
		Controller:                          ctrlconfig.Controller{SkipNameValidation: new(true), Logger: logger},
		LeaderElection:                      opts.LeaderElection,
		LeaderElectionResourceLockInterface: lock,
		RenewDeadline:                       new(renewDeadline),
		LeaderElectionReleaseOnCancel:       true, // Run returns when nothing of it goes on
		HealthProbeBindAddress:              cmp.Or(opts.HealthAddress, "0"),
		Metrics:                             metricsserver.Options{BindAddress: cmp.Or(opts.MetricsAddress, "0")},
		BaseContext:                         func() context.Context { return logr.NewContext(context.WithoutCancel(ctx), logger) },
	})
	if err != nil {
		return nil, err
	}
	for _, add := range []func(string, healthz.Checker) error{m.AddHealthzCheck, m.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// cacheOptions keep in memory only what is of Sandboxes: in a cluster of many pods that is little.
func cacheOptions(opts Options, logger logr.Logger) cache.Options {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{names.LabelManagedBy: ManagedBy})}
	options := cache.Options{
		ByObject:         map[client.Object]cache.ByObject{new(corev1.Pod): ours, new(corev1.Service): ours},
		DefaultTransform: cache.TransformStripManagedFields(),
		NewInformer:      newInformer(logger),
	}
	for _, namespace := range opts.Namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

func checkKinds(mapper meta.RESTMapper) error {
	for _, kind := range []string{"Sandbox", "Repo"} {
		_, err := mapper.RESTMapping(v1alpha1.GroupVersion().WithKind(kind).GroupKind(), v1alpha1.Version)
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("%w: %w", ErrNoKinds, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// retryLimit repeats a reconcile that failed, the first time soon and never after more than half a minute: an API server that was away
// for an hour is back at once.
func retryLimit() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, maxRetry)
}
