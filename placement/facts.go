package placement

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Facts are what a cluster says that decides where a pod lands and whether there is room. In every field nil means that nobody read it, and
// an empty value that there is none.
type Facts struct {
	Nodes []corev1.Node
	// Pods of all namespaces that have not ended.
	Pods            []corev1.Pod
	DaemonSets      []appsv1.DaemonSet
	Quotas          []corev1.ResourceQuota
	LimitRanges     []corev1.LimitRange
	RuntimeClasses  []nodev1.RuntimeClass
	PriorityClasses []schedulingv1.PriorityClass
	// Namespaces are the labels of each namespace.
	Namespaces map[string]map[string]string
	// Unread is what could not be read, in the order of the fields.
	Unread []Unread
}

// Unread is a kind of object that this user may not read.
type Unread struct {
	// What is the kind, as an API resource: "nodes".
	What string
	// Err wraps the API server's.
	Err error
}

// Sources are where Facts are read from. Each may be nil, and is then not read. With client-go, quotas and limit ranges of one namespace:
//
//	placement.Sources{
//		Nodes: client.CoreV1().Nodes(), Pods: client.CoreV1().Pods(""),
//		Quotas: client.CoreV1().ResourceQuotas(namespace), LimitRanges: client.CoreV1().LimitRanges(namespace), …
//	}
type Sources struct {
	Nodes           NodeLister
	Pods            Lister[*corev1.PodList]
	DaemonSets      Lister[*appsv1.DaemonSetList]
	Quotas          Lister[*corev1.ResourceQuotaList]
	LimitRanges     Lister[*corev1.LimitRangeList]
	RuntimeClasses  Lister[*nodev1.RuntimeClassList]
	PriorityClasses Lister[*schedulingv1.PriorityClassList]
	// Namespaces are read as metadata alone, as client-go's metadata client lists them.
	Namespaces Lister[*metav1.PartialObjectMetadataList]
}

// running leaves the pods that have ended at the server.
const running = "status.phase!=Succeeded,status.phase!=Failed"

// ReadFacts reads each source once, in pages, all at the same time. What the user may not read is left nil and told in Unread. Any other
// failure is an error, which wraps the API server's; the facts that could be read come with it.
func ReadFacts(ctx context.Context, from Sources) (*Facts, error) {
	facts := &Facts{}
	var namespaces []metav1.PartialObjectMetadata
	reads := []*read{
		reading(&facts.Nodes, "nodes", from.Nodes, metav1.ListOptions{}),
		reading(&facts.Pods, "pods", from.Pods, metav1.ListOptions{FieldSelector: running}),
		reading(&facts.DaemonSets, "daemonsets", from.DaemonSets, metav1.ListOptions{}),
		reading(&facts.Quotas, "resourcequotas", from.Quotas, metav1.ListOptions{}),
		reading(&facts.LimitRanges, "limitranges", from.LimitRanges, metav1.ListOptions{}),
		reading(&facts.RuntimeClasses, "runtimeclasses", from.RuntimeClasses, metav1.ListOptions{}),
		reading(&facts.PriorityClasses, "priorityclasses", from.PriorityClasses, metav1.ListOptions{}),
		reading(&namespaces, "namespaces", from.Namespaces, metav1.ListOptions{}),
	}
	var group errgroup.Group
	for _, r := range reads {
		group.Go(func() error { r.err = r.do(ctx); return nil })
	}
	group.Wait() //nolint:errcheck // each read keeps its own
	var failed error
	for _, r := range reads {
		switch {
		case apierrors.IsForbidden(r.err):
			facts.Unread = append(facts.Unread, Unread{What: r.what, Err: r.err})
		case r.err != nil:
			failed = errors.Join(failed, r.err)
		}
	}
	if namespaces != nil {
		facts.Namespaces = make(map[string]map[string]string, len(namespaces))
		for i := range namespaces {
			facts.Namespaces[namespaces[i].Name] = namespaces[i].Labels
		}
	}
	return facts, failed
}

type read struct {
	what string
	do   func(context.Context) error
	err  error
}

// reading reads a list into a field; nothing when there is no source.
func reading[T any, L runtime.Object](into *[]T, what string, from Lister[L], options metav1.ListOptions) *read {
	return &read{what: what, do: func(ctx context.Context) error {
		if from == nil {
			return nil
		}
		all, err := readAll[T](ctx, what, from, options)
		if err == nil {
			*into = all
		}
		return err
	}}
}
