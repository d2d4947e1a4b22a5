package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// A cluster is the ways to one API server. Objects of the set travel through the metadata client: its answers hold no values, so
// that a Secret's data is never read back.
type cluster struct {
	config  *rest.Config
	meta    metadata.Interface
	dynamic dynamic.Interface
	typed   kubernetes.Interface
	mapper  *mapper
}

// connect makes the clients from a copy of cfg without the client-side limiter: the server has its own fairness, and Apply its own
// bound. Warnings of the server go to the events; by default client-go would write them to the process's log.
func connect(cfg *rest.Config, events *emitter) (*cluster, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.RateLimiter = -1, nil
	cfg.WarningHandler, cfg.WarningHandlerWithContext = nil, warner{events}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	c := &cluster{config: cfg}
	if c.meta, err = metadata.NewForConfigAndClient(cfg, client); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(cfg, client); err != nil {
		return nil, err
	}
	typed := rest.CopyConfig(cfg) // a large inventory reads faster so
	typed.AcceptContentTypes, typed.ContentType = runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON, runtime.ContentTypeProtobuf
	if c.typed, err = kubernetes.NewForConfigAndClient(typed, client); err != nil {
		return nil, err
	}
	c.mapper = &mapper{discovery: discovery.ToDiscoveryInterfaceWithContext(c.typed.Discovery())}
	return c, nil
}

type warner struct{ events *emitter }

func (w warner) HandleWarningHeaderWithContext(ctx context.Context, code int, _ string, text string) {
	if code != 299 || text == "" {
		return
	}
	ref, _ := ctx.Value(refKey{}).(Ref)
	w.events.emit(Warned{Ref: ref, Text: text})
}

// refKey carries the Ref that a request is about to the handler of warnings.
type refKey struct{}

// mapping tells the resource of a kind.
func (c *cluster) mapping(ctx context.Context, r Ref) (*meta.RESTMapping, error) {
	return c.mapper.mapping(ctx, r.GroupVersionKind())
}

// at returns the metadata client for an object.
func (c *cluster) at(ctx context.Context, r Ref) (metadata.ResourceInterface, error) {
	m, err := c.mapping(ctx, r)
	if err != nil {
		return nil, err
	}
	return c.in(m, r)
}

func (c *cluster) in(m *meta.RESTMapping, r Ref) (metadata.ResourceInterface, error) {
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return c.meta.Resource(m.Resource), nil
	}
	if r.Namespace == "" {
		return nil, &ObjectError{Ref: r, Class: ClassInvalid, Err: errNoNamespace}
	}
	return c.meta.Resource(m.Resource).Namespace(r.Namespace), nil
}

// full returns the client of whole objects for an object. What it reads of a Secret holds values.
func (c *cluster) full(ctx context.Context, r Ref) (dynamic.ResourceInterface, error) {
	m, err := c.mapping(ctx, r)
	if err != nil {
		return nil, err
	}
	if _, err := c.in(m, r); err != nil { // it checks that a namespace is named
		return nil, err
	}
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return c.dynamic.Resource(m.Resource), nil
	}
	return c.dynamic.Resource(m.Resource).Namespace(r.Namespace), nil
}

// metaSource watches the metadata of one object.
func metaSource(at metadata.ResourceInterface, name string) source {
	return source{
		options: named(name),
		list:    func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return at.List(ctx, o) },
		watch:   func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return at.Watch(ctx, o) },
	}
}
