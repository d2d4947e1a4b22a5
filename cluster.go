package jr2

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"jr2.dev/jr2/internal/patient"
)

// cluster is the cluster of a converge: its name for people and the ways to it.
type cluster struct {
	context   string
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
}

// kindPrefix starts the name of a context that kind made (source: seed, Rules).
const kindPrefix = "kind-"

// kind is the name of the kind cluster that this is; empty when it is none.
func (c cluster) kind() string {
	name, _ := strings.CutPrefix(c.context, kindPrefix)
	if name == c.context {
		return ""
	}
	return name
}

// resolve names the cluster without talking to it.
func resolve(opts Options) (cluster, error) {
	if opts.Config != nil {
		name := opts.Context
		if name == "" {
			name = opts.Config.Host
		}
		return cluster{context: name, config: rest.CopyConfig(opts.Config)}, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = opts.Kubeconfig
	kubeconfig, err := rules.Load()
	if err != nil {
		return cluster{}, &KubeconfigError{Err: err}
	}
	name := opts.Context
	if name == "" {
		name = kubeconfig.CurrentContext
	}
	if name == "" {
		return cluster{}, ErrNoContext
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: name}
	config, err := clientcmd.NewNonInteractiveClientConfig(*kubeconfig, name, overrides, rules).ClientConfig()
	if err != nil {
		return cluster{}, &KubeconfigError{Context: name, Err: err}
	}
	return cluster{context: name, config: config}, nil
}

// dial makes the clients. The limiter is off: the API server's own priority and fairness bounds us.
func (c *cluster) dial() error {
	c.config.QPS = -1
	c.config.UserAgent = "jr2"
	c.config.Wrap(patient.Wrap)
	c.config.WarningHandler = rest.NoWarnings{}
	typed := rest.CopyConfig(c.config) // large lists read several times faster so
	typed.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return fmt.Errorf("context %s: %w", c.context, err)
	}
	c.client = client
	return nil
}

// version asks the API server, within the deadline of ctx: client-go's own discovery takes none.
func (c cluster) version(ctx context.Context) (*version.Info, error) {
	raw, err := c.client.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var info version.Info
	if err := json.Unmarshal(raw, &info); err != nil {
		return nil, fmt.Errorf("/version: %w", err)
	}
	return &info, nil
}

// unreached says why the first request failed: a server that knows the user not, or lets it do nothing, is there.
func (c cluster) unreached(err error) error {
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		return fmt.Errorf("%s does not let this user in — check the credentials of the context: %w", c.context, err)
	}
	return &UnreachableError{Context: c.context, Err: err}
}

// readNamespace returns nil for a namespace that does not exist.
func (c cluster) readNamespace(ctx context.Context) (*corev1.Namespace, error) {
	namespace, err := c.client.CoreV1().Namespaces().Get(ctx, c.namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read namespace %q on %s: %w", c.namespace, c.context, err)
	}
	return namespace, nil
}
