package placement_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"jr2.dev/jr2/placement"
)

// listing is a Lister of one answer.
type listing[L any] func(metav1.ListOptions) (L, error)

func (l listing[L]) List(_ context.Context, options metav1.ListOptions) (L, error) { return l(options) }

func TestReadFacts(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "resourcequotas"}, "", errors.New("no"))
	broken := apierrors.NewInternalError(errors.New("etcd is away"))
	selector := ""
	facts, err := placement.ReadFacts(t.Context(), placement.Sources{
		Nodes: listing[*corev1.NodeList](func(metav1.ListOptions) (*corev1.NodeList, error) {
			return &corev1.NodeList{Items: []corev1.Node{node("n")}}, nil
		}),
		Pods: listing[*corev1.PodList](func(o metav1.ListOptions) (*corev1.PodList, error) {
			selector = o.FieldSelector
			return &corev1.PodList{}, nil
		}),
		Quotas: listing[*corev1.ResourceQuotaList](func(metav1.ListOptions) (*corev1.ResourceQuotaList, error) {
			return &corev1.ResourceQuotaList{}, forbidden
		}),
		RuntimeClasses: listing[*nodev1.RuntimeClassList](func(metav1.ListOptions) (*nodev1.RuntimeClassList, error) {
			return nil, broken
		}),
		Namespaces: listing[*metav1.PartialObjectMetadataList](func(metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
			return &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"team": "x"}}}}}, nil
		}),
	})
	if status := (*apierrors.StatusError)(nil); !errors.As(err, &status) || !apierrors.IsInternalError(status) {
		t.Errorf("a read that failed is an error: %v", err)
	}
	if len(facts.Unread) != 1 || facts.Unread[0].What != "resourcequotas" || !apierrors.IsForbidden(facts.Unread[0].Err) {
		t.Errorf("what may not be read is told: %+v", facts.Unread)
	}
	if !slices.Equal(names(facts.Nodes), []string{"n"}) || facts.Namespaces["a"]["team"] != "x" {
		t.Errorf("what could be read comes with the error: %+v", facts)
	}
	if facts.Pods == nil || facts.Quotas != nil || facts.LimitRanges != nil || facts.RuntimeClasses != nil {
		t.Errorf("none is not unread: %+v", facts)
	}
	if selector != "status.phase!=Succeeded,status.phase!=Failed" {
		t.Errorf("asked for %q", selector)
	}
}

func ExampleReadFacts() {
	look := func(ctx context.Context, client kubernetes.Interface, objects metadata.Interface, namespace string) error {
		facts, err := placement.ReadFacts(ctx, placement.Sources{
			Nodes: client.CoreV1().Nodes(), Pods: client.CoreV1().Pods(metav1.NamespaceAll), DaemonSets: client.AppsV1().DaemonSets(metav1.NamespaceAll),
			Quotas: client.CoreV1().ResourceQuotas(namespace), LimitRanges: client.CoreV1().LimitRanges(namespace),
			RuntimeClasses: client.NodeV1().RuntimeClasses(), PriorityClasses: client.SchedulingV1().PriorityClasses(),
			Namespaces: objects.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")),
		})
		if err != nil {
			return err
		}
		for _, unread := range facts.Unread {
			fmt.Println("may not read", unread.What)
		}
		return nil
	}
	_ = look
}

func ExampleRules_Write() {
	rules := placement.Rules{NodeSelector: map[string]string{"pool": "agents"}, PriorityClassName: "jr2-sandbox"}
	var spec corev1.PodSpec
	rules.Write(&spec)
	fmt.Println(spec.NodeSelector, spec.PriorityClassName)
	// Output: map[pool:agents] jr2-sandbox
}

func ExampleSandboxPod() {
	pod := sandbox()
	for _, c := range pod.Spec.Containers {
		fmt.Println(c.Name, c.Resources.Limits.Memory(), c.Resources.Limits.Cpu())
	}
	fmt.Println("pod", pod.Spec.Resources.Limits.Memory(), pod.Spec.Resources.Limits.Cpu())
	// Output:
	// harness 1984Mi 950m
	// custodian 64Mi 50m
	// pod 2Gi 1
}

func ExampleSandboxObjects() {
	objects := placement.SandboxObjects()
	fmt.Println(len(objects), objects.Name("count/sandboxes.core.jr2.dev", ""))
	// Output: 5 1
}

func ExampleTinyOverhead() {
	fmt.Println(placement.TinyOverhead(list("memory=1024")), placement.TinyOverhead(list("memory=160Mi")))
	// Output: true false
}
