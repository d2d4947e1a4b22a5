package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// webhookServerWait bounds the wait for the pods behind a webhook's Service: that of a rollout.
const webhookServerWait = 3 * time.Minute

// awaitServers holds a webhook configuration back until the Services of this set that it calls have an endpoint. Registered earlier,
// it would refuse every write, perhaps that of its own server too.
func (r *run) awaitServers(ctx context.Context, o order) error {
	servers := serversOf(o)
	if len(servers) == 0 || r.opts.DryRun || r.isCurrent(o) { // one that is registered already is not made worse by looking at its server
		return nil
	}
	for _, s := range servers {
		if !r.wanted[s.ref()] {
			continue
		}
		if err := r.awaitEndpoint(ctx, o.ref, s.webhook, s.namespace, s.service); err != nil {
			return err
		}
	}
	return nil
}

// A server is the Service that a webhook calls.
type server struct{ webhook, namespace, service string }

func (s server) ref() Ref { return Ref{Kind: "Service", Namespace: s.namespace, Name: s.service} }

// serversOf lists the Services that a webhook configuration calls; none for other objects.
func serversOf(o order) []server {
	if o.ref.Group != "admissionregistration.k8s.io" {
		return nil
	}
	var all []server
	hooks, _ := o.body.Object["webhooks"].([]any)
	for _, hook := range hooks {
		if service, ok := dig(hook, "clientConfig", "service").(map[string]any); ok {
			all = append(all, server{text(dig(hook, "name")), text(service["namespace"]), text(service["name"])})
		}
	}
	return all
}

func (r *run) awaitEndpoint(ctx context.Context, ref Ref, webhook, namespace, service string) error {
	bounded, cancel := context.WithTimeout(ctx, webhookServerWait)
	defer cancel()
	at := r.cluster.typed.DiscoveryV1().EndpointSlices(namespace)
	src := source{
		options: metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service},
		list:    func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return at.List(ctx, o) },
		watch:   func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return at.Watch(ctx, o) },
	}
	waits := fmt.Sprintf("webhook %s calls the Service %s/%s, which has no ready endpoint", webhook, namespace, service)
	told := false
	err := watchUntil(bounded, src, func(objs []runtime.Object) (look, error) {
		for _, o := range objs {
			slice, ok := o.(*discoveryv1.EndpointSlice)
			if ok && readyEndpoint(slice) {
				return look{done: true}, nil
			}
		}
		if !told {
			told = true
			r.events.emit(Waiting{Ref: ref, Reason: waits, Since: time.Now()})
		}
		return look{}, nil
	})
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return &ObjectError{Ref: ref, Class: ClassWebhookUnready, Err: fmt.Errorf("%s after %s", waits, webhookServerWait)}
	}
	if err != nil {
		return objectError(ref, Classify(err), fmt.Errorf("%s: %w", waits, err))
	}
	return nil
}

func readyEndpoint(s *discoveryv1.EndpointSlice) bool {
	for _, e := range s.Endpoints {
		if e.Conditions.Ready == nil || *e.Conditions.Ready { // absent means ready
			return true
		}
	}
	return false
}
