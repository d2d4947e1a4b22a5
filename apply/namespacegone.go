package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// WaitNamespaceGone watches until the namespace with that UID is gone, or another one has taken its name. What holds it is sent as
// Waiting when it changes. After the limit the error is an *ObjectError of ClassBeingDeleted that names what holds it; a limit of 0
// waits until ctx ends.
func WaitNamespaceGone(ctx context.Context, client kubernetes.Interface, name string, uid types.UID, limit time.Duration, events func(Event)) error {
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		bounded, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	ref := Ref{Version: "v1", Kind: "Namespace", Name: name}
	out := &emitter{fn: events}
	reason := ""
	err := watchUntil(bounded, namespaceSource(client, name), func(objs []runtime.Object) (look, error) {
		for _, o := range objs {
			namespace, ok := o.(*corev1.Namespace)
			if !ok || namespace.UID != uid {
				continue
			}
			if now := heldBy(namespace); now != "" && now != reason {
				reason = now
				out.emit(Waiting{Ref: ref, Reason: reason, Since: time.Now()})
			}
			return look{}, nil
		}
		return look{done: true}, nil
	})
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	text := fmt.Sprintf("it is still being deleted after %s", limit)
	if reason != "" {
		text += " — " + reason
	}
	return &ObjectError{Ref: ref, Class: ClassBeingDeleted, Err: errors.New(text)}
}

// heldBy says what the namespace's own status and finalizers name; "" while nothing is known.
func heldBy(namespace *corev1.Namespace) string {
	var held []string
	for _, condition := range namespace.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && condition.Message != "" {
			held = append(held, condition.Message)
		}
	}
	slices.Sort(held) // the server rewrites the conditions in no fixed order
	if len(namespace.Finalizers) > 0 {
		held = append(held, "finalizers of the namespace itself: "+strings.Join(namespace.Finalizers, ", "))
	}
	return strings.Join(held, "; ")
}

func namespaceSource(client kubernetes.Interface, name string) source {
	return source{
		options: named(name),
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Namespaces().List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.CoreV1().Namespaces().Watch(ctx, o)
		},
	}
}
