package preflight

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"jr2.dev/jr2/placement"
)

// ReadSetFacts reads from a cluster what the checks of a set want to know: nodes, pods, namespaces and runtime classes, each once and in pages; and
// gives the ways to what is read when a check asks for it. What this user may not read stays unknown, and the checks say so. Any other failure
// is an error. Images stays nil: which registries are asked, and how, is the caller's to say.
//
// A cluster has many pods, so of each is kept what decides where others land and which Pod Security level it keeps to, and no more: see
// SetFacts.Read. A client whose configuration accepts protobuf, by AcceptContentTypes, reads a large cluster in half the time.
func ReadSetFacts(ctx context.Context, client kubernetes.Interface) (SetFacts, error) {
	return SetFacts{}.Read(ctx, client)
}

// Read is ReadSetFacts for a caller that has read some of it: nodes, pods, namespaces, runtime classes and ways that are known stay as they are and
// are not read again.
//
// Pods lose what their programs are told (environment, commands, where volumes are mounted and what is in them), what their status says about
// images and restarts, and annotations other than those of AppArmor's profiles. All objects lose their managed fields.
func (f SetFacts) Read(ctx context.Context, client kubernetes.Interface) (SetFacts, error) {
	facts := f
	facts.ways(client)
	from := placement.Sources{}
	if facts.Nodes == nil {
		from.Nodes = client.CoreV1().Nodes()
	}
	if facts.Pods == nil {
		from.Pods = slimPods{client.CoreV1().Pods(metav1.NamespaceAll)}
	}
	if facts.RuntimeClasses == nil {
		from.RuntimeClasses = client.NodeV1().RuntimeClasses()
	}
	read, err := placement.ReadFacts(ctx, from)
	if read.Nodes != nil {
		facts.Nodes = read.Nodes
	}
	if read.Pods != nil {
		facts.Pods = read.Pods
	}
	if read.RuntimeClasses != nil {
		facts.RuntimeClasses = map[string]*nodev1.RuntimeClass{}
		for i := range read.RuntimeClasses {
			facts.RuntimeClasses[read.RuntimeClasses[i].Name] = &read.RuntimeClasses[i]
		}
	}
	if facts.Namespaces != nil {
		return facts, err
	}
	var namespacesErr error
	facts.Namespaces, namespacesErr = readNamespaces(ctx, client)
	return facts, errors.Join(err, namespacesErr)
}

// ways fills in where checks read what they ask for themselves.
func (f *SetFacts) ways(client kubernetes.Interface) {
	if f.Secrets == nil {
		f.Secrets = func(namespace string) SecretGetter { return client.CoreV1().Secrets(namespace) }
	}
	if f.ServiceAccounts == nil {
		f.ServiceAccounts = func(namespace string) ServiceAccountGetter { return client.CoreV1().ServiceAccounts(namespace) }
	}
	if f.DryRun == nil {
		f.DryRun = func(namespace string) PodCreator { return client.CoreV1().Pods(namespace) }
	}
	if f.Webhooks == nil {
		f.Webhooks = &WebhookReader{
			Validating:     client.AdmissionregistrationV1().ValidatingWebhookConfigurations(),
			Mutating:       client.AdmissionregistrationV1().MutatingWebhookConfigurations(),
			Services:       func(namespace string) ServiceGetter { return client.CoreV1().Services(namespace) },
			EndpointSlices: func(namespace string) EndpointSliceLister { return client.DiscoveryV1().EndpointSlices(namespace) },
		}
	}
}

// readNamespaces returns nil when this user may not list them.
func readNamespaces(ctx context.Context, client kubernetes.Interface) (map[string]*corev1.Namespace, error) {
	namespaces := map[string]*corev1.Namespace{}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Namespaces().List(ctx, options)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if namespace, ok := o.(*corev1.Namespace); ok {
			namespace.ManagedFields = nil
			namespaces[namespace.Name] = namespace
		}
		return nil
	})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the cluster's namespaces: %w", err)
	}
	return namespaces, nil
}
