package preflight

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"golang.org/x/sync/errgroup"
)

// ServiceAccountGetter reads one service account; client-go's ServiceAccountInterface has the call.
type ServiceAccountGetter interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.ServiceAccount, error)
}

// A secretState is what a kubelet would make of a Secret for pulling images.
type secretState int

const (
	// secretReadable may hold credentials.
	secretReadable secretState = iota
	// secretUnread: nobody could look.
	secretUnread
	// secretAbsent and secretOfOtherType are passed over.
	secretAbsent
	secretOfOtherType
	// secretBroken keeps a kubelet from pulling anything for the pod.
	secretBroken
)

// A pullSecret is a Secret that pods name for their images.
type pullSecret struct {
	namespace, name string
	state           secretState
	// words say why it is not readable: a clause without its name.
	words string
	// arrives says that the set brings it.
	arrives bool
	entries []pullEntry
}

func (s *pullSecret) String() string { return "Secret " + s.namespace + "/" + s.name }

// pullNames are the pull Secrets of a workload's pods by name. unread says why nobody knows them all.
type pullNames struct {
	names  []string
	unread string
}

// pullNames says which Secrets the kubelet gets for the pods of a workload: those of the pod, else those of its service account, which the API
// server writes into each pod that names none.
// https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#add-imagepullsecrets-to-a-service-account
func (l *setLook) pullNames(ctx context.Context, w *workload) pullNames {
	account := w.account()
	arriving, brought := l.accountOfSet(w.namespace, account)
	if len(w.pod.Spec.ImagePullSecrets) > 0 {
		brought = false
	}
	switch {
	case w.admitted != nil && w.admitted.Spec.ServiceAccountName == account && !brought:
		return pullNames{names: secretNames(w.admitted.Spec.ImagePullSecrets)}
	case len(w.pod.Spec.ImagePullSecrets) > 0:
		return pullNames{names: secretNames(w.pod.Spec.ImagePullSecrets)}
	case brought:
		return pullNames{names: arriving}
	case l.facts.Namespaces != nil && l.facts.Namespaces[w.namespace] == nil: // its service accounts arrive later, without pull Secrets
		return pullNames{}
	case l.facts.ServiceAccounts == nil:
		return pullNames{unread: "its service account was not read"}
	}
	found, err := l.facts.ServiceAccounts(w.namespace).Get(ctx, account, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return pullNames{}
	case err != nil:
		return pullNames{unread: fmt.Sprintf("its service account %s could not be read: %v", account, err)}
	}
	return pullNames{names: secretNames(found.ImagePullSecrets)}
}

// accountOfSet are the pull Secrets that the set gives to a service account; false when it gives none.
func (l *setLook) accountOfSet(namespace, name string) ([]string, bool) {
	o := l.find("", "ServiceAccount", namespace, name)
	if o == nil {
		return nil, false
	}
	account := &corev1.ServiceAccount{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, account) != nil || len(account.ImagePullSecrets) == 0 {
		return nil, false
	}
	return secretNames(account.ImagePullSecrets), true
}

func secretNames(refs []corev1.LocalObjectReference) []string {
	var names []string
	for _, ref := range refs {
		if ref.Name != "" && !slices.Contains(names, ref.Name) {
			names = append(names, ref.Name)
		}
	}
	return names
}

type secretKey struct{ namespace, name string }

// readPullSecrets reads each Secret once, several at a time.
func (l *setLook) readPullSecrets(ctx context.Context, keys []secretKey) map[secretKey]*pullSecret {
	found := map[secretKey]*pullSecret{}
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, key := range keys {
		if found[key] != nil {
			continue
		}
		secret := &pullSecret{namespace: key.namespace, name: key.name}
		found[key] = secret
		group.Go(func() error {
			l.readPullSecret(ctx, secret)
			return nil
		})
	}
	group.Wait() //nolint:errcheck // what went wrong is in each Secret
	return found
}

func (l *setLook) readPullSecret(ctx context.Context, into *pullSecret) {
	if arriving := secretOfSet(l.find("", "Secret", into.namespace, into.name)); arriving != nil {
		into.arrives = true
		into.read(ctx, arriving)
		return
	}
	if l.facts.Secrets == nil {
		into.state, into.words = secretUnread, "was not read"
		return
	}
	secret, err := l.facts.Secrets(into.namespace).Get(ctx, into.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		into.state, into.words = secretAbsent, "does not exist"
	case err != nil:
		into.state, into.words = secretUnread, fmt.Sprintf("could not be read: %v", err)
	default:
		into.read(ctx, secret)
	}
}

// secretOfSet reads a Secret of the set as the server will; nil when it is none, or one without values, which leaves those of the cluster.
func secretOfSet(o *unstructured.Unstructured) *corev1.Secret {
	if o == nil {
		return nil
	}
	secret := &corev1.Secret{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, secret) != nil || len(secret.Data)+len(secret.StringData) == 0 {
		return nil
	}
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(value)
	}
	return secret
}
