package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// A WebhookReader is where the webhooks of a cluster and their servers are read: two lists, and for each Service that a webhook which matters
// calls, the Service and its endpoints. The parts of client-go's clients have these calls:
//
//	preflight.WebhookReader{
//		Validating:     client.AdmissionregistrationV1().ValidatingWebhookConfigurations(),
//		Mutating:       client.AdmissionregistrationV1().MutatingWebhookConfigurations(),
//		Services:       func(namespace string) preflight.ServiceGetter { return client.CoreV1().Services(namespace) },
//		EndpointSlices: func(namespace string) preflight.EndpointSliceLister { return client.DiscoveryV1().EndpointSlices(namespace) },
//	}
type WebhookReader struct {
	Validating interface {
		List(ctx context.Context, opts metav1.ListOptions) (*admissionregistrationv1.ValidatingWebhookConfigurationList, error)
	}
	Mutating interface {
		List(ctx context.Context, opts metav1.ListOptions) (*admissionregistrationv1.MutatingWebhookConfigurationList, error)
	}
	Services       func(namespace string) ServiceGetter
	EndpointSlices func(namespace string) EndpointSliceLister
}

// A ServiceGetter reads one Service; client-go's ServiceInterface has it.
type ServiceGetter interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.Service, error)
}

// An EndpointSliceLister lists EndpointSlices; client-go's EndpointSliceInterface has it.
type EndpointSliceLister interface {
	List(ctx context.Context, opts metav1.ListOptions) (*discoveryv1.EndpointSliceList, error)
}

// closed reads the webhooks that fail closed and call a Service. An error comes with what was read.
func (r *WebhookReader) closed(ctx context.Context) (all []*webhook, err error) {
	mutators, err := r.Mutating.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range mutators.Items {
		found, err := mutating(&mutators.Items[i])
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	validators, err := r.Validating.List(ctx, metav1.ListOptions{})
	if err != nil {
		return all, err
	}
	for i := range validators.Items {
		found, err := validating(&validators.Items[i])
		if err != nil {
			return all, err
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b *webhook) int { return strings.Compare(a.config, b.config) })
	return all, nil
}

// A serverReader reads each Service once.
type serverReader struct {
	ctx    context.Context
	client *WebhookReader
	known  map[string]serving
}

func (r *serverReader) read(namespace, name string, port int32) serving {
	if r.client == nil {
		return serving{err: fmt.Errorf("it was not read")}
	}
	key := fmt.Sprintf("%s/%s:%d", namespace, name, port)
	found, ok := r.known[key]
	if !ok {
		found = r.ask(namespace, name, port)
		r.known[key] = found
	}
	return found
}

func (r *serverReader) ask(namespace, name string, port int32) serving {
	service, err := r.client.Services(namespace).Get(r.ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return serving{lacks: lacksService}
	case err != nil:
		return serving{err: err}
	case service.Spec.Type == corev1.ServiceTypeExternalName: // its endpoints are elsewhere
		return serving{service: service}
	case !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port }):
		return serving{service: service, lacks: fmt.Sprintf("has no port %d", port)}
	}
	list, err := r.client.EndpointSlices(namespace).List(r.ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + name})
	if err != nil {
		return serving{service: service, err: err}
	}
	for _, slice := range list.Items {
		if slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready }) { // absent means ready
			return serving{service: service}
		}
	}
	return serving{service: service, lacks: "has no ready endpoint"}
}

// serviceOf reads a Service of the set; nil when it is none.
func serviceOf(o *unstructured.Unstructured) *corev1.Service {
	service := &corev1.Service{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, service) != nil {
		return nil
	}
	return service
}

// lacksService is what is said of a webhook whose Service is not there at all.
const lacksService = "does not exist"
