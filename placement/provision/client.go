package provision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/internal/patient"
	"jr2.dev/jr2/placement/v1alpha1"
)

// A client is the ways to one namespace of one API server.
type client struct {
	namespace string
	sandboxes *gentype.ClientWithList[*v1alpha1.Sandbox, *v1alpha1.SandboxList]
	repos     *gentype.Client[*v1alpha1.Repo]
	typed     kubernetes.Interface
}

// connect makes the clients from a copy of cfg, without the client-side limiter: the server has its own fairness.
func connect(cfg *rest.Config, namespace string) (*client, error) {
	cfg = quiet(cfg)
	typed, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	gv := v1alpha1.GroupVersion()
	cfg.GroupVersion, cfg.APIPath = &gv, "/apis"
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	ours, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, err
	}
	codec := runtime.NewParameterCodec(scheme)
	return &client{
		namespace: namespace,
		typed:     typed,
		sandboxes: gentype.NewClientWithList(v1alpha1.SandboxResource, ours, codec, namespace,
			func() *v1alpha1.Sandbox { return &v1alpha1.Sandbox{} }, func() *v1alpha1.SandboxList { return &v1alpha1.SandboxList{} }),
		repos: gentype.NewClient(v1alpha1.RepoResource, ours, codec, namespace, func() *v1alpha1.Repo { return &v1alpha1.Repo{} }),
	}, nil
}

// quiet is a copy of cfg that waits for nobody but the server, and prints nothing.
func quiet(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.RateLimiter = -1, nil
	cfg.WarningHandler, cfg.WarningHandlerWithContext = rest.NoWarnings{}, nil
	cfg.Wrap(patient.Wrap)
	return cfg
}

// all lists the Sandboxes that a label selector names, in pages.
func (c *client) all(ctx context.Context, selector string) ([]v1alpha1.Sandbox, error) {
	var all []v1alpha1.Sandbox
	options := metav1.ListOptions{LabelSelector: selector, Limit: 500}
	for {
		page, err := c.sandboxes.List(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" { // the rest of the list is too old: once more, from the start
			all, options.Continue = nil, ""
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the Sandboxes of namespace %q: %w", c.namespace, err)
		}
		all = append(all, page.Items...)
		if options.Continue = page.Continue; options.Continue == "" {
			return all, nil
		}
	}
}

// renew writes the lease. The UID keeps it from another Sandbox of the name, see anotherUID.
func (c *client) renew(ctx context.Context, box *v1alpha1.Sandbox) error {
	return c.patch(ctx, box.Name, map[string]any{
		"uid": box.UID, "annotations": map[string]string{v1alpha1.AnnotationKeepalive: now()},
	})
}

func (c *client) patch(ctx context.Context, name string, metadata map[string]any) error {
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	return persist(ctx, func() error {
		_, err := c.sandboxes.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
		return err
	})
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// persist sends a request again whose answer was lost, for as long as a server may be away. It is for requests whose second time is known:
// it changes nothing, or says that the object exists. The wait for a server that was never reached is not its own: see package patient.
func persist(ctx context.Context, send func() error) error {
	deadline := time.Now().Add(patient.Patience)
	for delay := 50 * time.Millisecond; ; delay = min(2*delay, 2*time.Second) {
		err := send()
		if err == nil || !unanswered(err) || time.Now().After(deadline) || !pause(ctx, delay) {
			return err
		}
	}
}

// unanswered says that nobody knows what became of the request, or that a server which starts, ends or is crowded did not take it.
func unanswered(err error) bool {
	return apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsInternalError(err) || lostAnswer(err)
}

// lostAnswer says that the connection broke.
func lostAnswer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// away says that the server can't be reached, or not in time.
func away(err error) bool {
	var network net.Error
	return unanswered(err) || errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &network)
}
