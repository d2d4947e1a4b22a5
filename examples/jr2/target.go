package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"jr2.dev/jr2"
	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/preflight"
)

// target says which cluster is meant.
type target struct {
	context, kubeconfig, namespace string
	embedded                       bool
	rules                          images.RegistryRules
}

// clusterFlags say which cluster of which kubeconfig is meant.
func clusterFlags(flags *pflag.FlagSet, context, kubeconfig *string) {
	flags.StringVar(context, "context", "", "kubeconfig context (default: the current one)")
	flags.StringVar(kubeconfig, "kubeconfig", "", "kubeconfig file (default: $KUBECONFIG, else ~/.kube/config)")
}

// connected is the cluster of an apply.
type connected struct {
	context, namespace string
	rules              images.RegistryRules
	config             *rest.Config
	client             kubernetes.Interface
	close              func()
}

// connect finds the cluster by the kubeconfig's rules, or starts the embedded one.
func (t target) connect(ctx context.Context, streams Streams) (*connected, error) {
	c := &connected{close: func() {}, rules: t.rules}
	if t.embedded {
		up := jr2.Options{Kubeconfig: t.kubeconfig, Context: t.context, Env: streams.environ()}
		embedded, err := startEmbedded(ctx, &up, streams.Err)
		if err != nil {
			return nil, err
		}
		c.context, c.config, c.namespace, c.close = up.Context, up.Config, metav1.NamespaceDefault, embedded.close
	} else if err := c.find(t); err != nil {
		return nil, err
	}
	c.config.QPS = -1 // the server bounds us
	c.config.UserAgent = "jr2"
	c.config.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		c.close()
		return nil, fmt.Errorf("context %s: %w", c.context, err)
	}
	c.client = client
	return c, nil
}

func (c *connected) find(t target) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = t.kubeconfig
	kubeconfig, err := rules.Load()
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	if c.context = t.context; c.context == "" {
		c.context = kubeconfig.CurrentContext
	}
	if c.context == "" {
		return jr2.ErrNoContext
	}
	client := clientcmd.NewNonInteractiveClientConfig(*kubeconfig, c.context, &clientcmd.ConfigOverrides{CurrentContext: c.context}, rules)
	if c.config, err = client.ClientConfig(); err != nil {
		return fmt.Errorf("kubeconfig context %q: %w", c.context, err)
	}
	c.namespace, _, err = client.Namespace()
	return err
}

// bringHome makes the namespace that holds the set's record, when the set brings it and it is not there: the lock needs a place.
func (c *connected) bringHome(ctx context.Context, set *apply.Set, opts apply.Options) (*apply.Outcome, error) {
	_, err := c.client.CoreV1().Namespaces().Get(ctx, set.Namespace, metav1.GetOptions{})
	if err == nil || !apierrors.IsNotFound(err) {
		return &apply.Outcome{}, nil // one that may not be read may be there; the lock tells
	}
	for _, o := range set.Objects {
		if o.GetAPIVersion() == "v1" && o.GetKind() == "Namespace" && o.GetName() == set.Namespace {
			only, err := apply.NewSet(set.Name, set.Namespace, o)
			if err != nil {
				return nil, err
			}
			opts.Prune, opts.Wait = false, false
			return apply.Apply(ctx, c.config, only, opts)
		}
	}
	return &apply.Outcome{}, fmt.Errorf("the namespace %s is not there, and the set does not bring it — create it, or name another with -n", set.Namespace)
}

// lock waits for another apply of the set.
func (c *connected) lock(ctx context.Context, set *apply.Set, events func(apply.Event)) (context.Context, func(), error) {
	return apply.Lock(ctx, c.client, set.Namespace, lockName(set), identity(), apply.LockOptions{Events: events})
}

// check looks at the set before anything is written.
func (c *connected) check(ctx context.Context, set *apply.Set, opts apply.Options) ([]preflight.Finding, error) {
	facts, err := c.facts(ctx)
	if err != nil {
		return nil, err
	}
	findings := preflight.Set(ctx, set.Objects, facts)
	rights, err := c.rights(ctx, set, opts)
	return append(findings, rights...), errors.Join(err, ctx.Err())
}

// facts reads what the checks want to know. What this user may not read stays unknown, and the checks say so.
func (c *connected) facts(ctx context.Context) (preflight.SetFacts, error) {
	transport, err := images.Transport(c.rules.CAFiles...)
	if err != nil {
		return preflight.SetFacts{}, err
	}
	facts, err := preflight.ReadSetFacts(ctx, c.client)
	if err != nil {
		return facts, fmt.Errorf("%s: %w", c.context, err)
	}
	facts.Images = jr2.AskRegistries(images.Registry{Transport: transport, Insecure: c.rules.Insecure, Mirrors: c.rules.Mirrors}, c.localRegistry(ctx))
	return facts, nil
}

// localRegistry is the registry beside the cluster, where the cluster tells of one that can be read.
func (c *connected) localRegistry(ctx context.Context) images.LocalRegistry {
	told, err := c.client.CoreV1().ConfigMaps(images.LocalRegistryNamespace).Get(ctx, images.LocalRegistryConfigMap, metav1.GetOptions{})
	if err != nil {
		return images.LocalRegistry{}
	}
	local, err := images.ParseLocalRegistry(told.Data)
	if err != nil {
		return images.LocalRegistry{}
	}
	return local
}
