package placement_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// verdicts hears by one watch what the scheduler says of each pod.
type verdicts struct {
	mu      sync.Mutex
	waiting map[string]chan *corev1.Pod
}

func listen(t *testing.T, client kubernetes.Interface) *verdicts {
	t.Helper()
	v := &verdicts{waiting: map[string]chan *corev1.Pod{}}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	hear := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok {
			v.hear(pod)
		}
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: hear, UpdateFunc: func(_, object any) { hear(object) }}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	t.Cleanup(func() { stop(); factory.Shutdown() })
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		t.Fatal("the watch of the pods did not begin")
	}
	return v
}

func (v *verdicts) hear(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" && verdict(pod) == "" {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	key := pod.Namespace + "/" + pod.Name
	if waiting := v.waiting[key]; waiting != nil {
		waiting <- pod
		delete(v.waiting, key)
	}
}

// verdict is why the scheduler has not bound the pod: "" while it has said nothing.
func verdict(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Reason + ": " + condition.Message
		}
	}
	return ""
}

// expect is told once what the scheduler says of the pod. It must be called before the pod is made.
func (v *verdicts) expect(namespace, name string) <-chan *corev1.Pod {
	waiting := make(chan *corev1.Pod, 1)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waiting[namespace+"/"+name] = waiting
	return waiting
}

// make creates the pod, with what the API server wants beside its shape.
func (v *verdicts) make(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) (<-chan *corev1.Pod, error) {
	waiting := v.expect(pod.Namespace, pod.Name)
	_, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, withImages(pod), metav1.CreateOptions{})
	return waiting, err
}

// ask makes the pod and waits for the scheduler's word.
func (v *verdicts) ask(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) (*corev1.Pod, error) {
	waiting, err := v.make(ctx, client, pod)
	if err != nil {
		return nil, err
	}
	return heard(ctx, waiting)
}

func heard(ctx context.Context, waiting <-chan *corev1.Pod) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	select {
	case pod := <-waiting:
		return pod, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("the scheduler said nothing: %w", ctx.Err())
	}
}

// shapeOf shows a pod that was made up.
func shapeOf(pod *corev1.Pod) string {
	text, err := json.Marshal(pod)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
