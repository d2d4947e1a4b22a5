package placement_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"jr2.dev/jr2/placement"
	quotawords "jr2.dev/jr2/placement/quota"
)

// roomOnNodes makes pods until the scheduler finds no node for one: so many must Room have counted.
func (s *scheduled) roomOnNodes(t *testing.T) {
	for _, test := range []struct{ shape *corev1.Pod }{
		{asks("by-cpu", "cpu=900m", selecting(map[string]string{"zone": "c"}))},
		{asks("by-memory", "memory=7Gi", selecting(map[string]string{"zone": "a"}))},
		{asks("tolerant", "cpu=1", tolerating(corev1.Toleration{Key: "gpu", Operator: "Exists"}), selecting(map[string]string{"zone": "b"}))},
		{asks("apart", "", as("apart"), affinityTo("apart", corev1.LabelHostname, true))},
		{asks("spread", "cpu=1500m", as("even"), spreadBy("zone"))},
		{asks("port", "", hostPort(9000))},
		{asks("sidecars", "cpu=200m", inits(container("x", "cpu=1"), sidecar("y", "cpu=700m")))},
		{asks("nowhere-at-all", "cpu=64")},
	} {
		facts := s.facts(t, test.shape.Namespace)
		room := placement.Room(test.shape, facts, placement.RoomOptions{})
		var made []*corev1.Pod
		for i := range room.More + 2 {
			pod := test.shape.DeepCopy()
			pod.Name = fmt.Sprintf("room-%s-%d", pod.Name, i)
			pod, err := s.said.ask(t.Context(), s.client, pod)
			if err != nil {
				t.Fatal(err)
			}
			if made = append(made, pod); pod.Spec.NodeName == "" {
				break
			}
		}
		if int64(len(made)) != room.More+1 {
			t.Errorf("%s: %d were placed and then one was not; the room was %s", test.shape.Name, len(made)-1, room)
		}
		for _, pod := range made {
			s.gone(t, pod)
		}
	}
}

// room makes Sandboxes' pods in many namespaces, each with quotas of its own, until one is not let in.
func (s *scheduled) room(t *testing.T) {
	var group sync.WaitGroup
	for i, test := range []struct{ hard, scope, ranged string }{
		{hard: "pods=3"}, {hard: "pods=0"}, {hard: "limits.memory=5Gi"}, {hard: "requests.cpu=2500m"}, {hard: "limits.memory=512Mi"},
		{hard: "cpu=4 memory=3Gi"}, {hard: "count/pods=2 limits.cpu=10"}, {hard: "requests.memory=4Gi pods=9"}, {hard: "requests.ephemeral-storage=3Gi"},
		{hard: "pods=2", scope: "NotTerminating"}, {hard: "pods=2", scope: "NotBestEffort"}, {hard: "count/pods=4 configmaps=0"},
		{hard: "pods=3", ranged: "memory=1Gi"}, {hard: "pods=3", ranged: "memory=2Gi"}, {hard: "limits.cpu=1999m"},
	} {
		group.Go(func() { s.roomOf(t, fmt.Sprintf("room-%d", i), test.hard, test.scope, test.ranged) })
	}
	group.Wait()
}

func (s *scheduled) roomOf(t *testing.T, namespace, hard, scope, ranged string) {
	ctx := t.Context()
	must := func(err error) bool {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", namespace, err)
		}
		return err == nil
	}
	s.namespace(t, namespace, nil)
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: list(hard)}}
	if scope != "" {
		q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScope(scope)}
	}
	if ranged != "" {
		lr := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "lr"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod, Max: list(ranged)}}}}
		if _, err := s.client.CoreV1().LimitRanges(namespace).Create(ctx, lr, metav1.CreateOptions{}); !must(err) {
			return
		}
	}
	if _, err := s.client.CoreV1().ResourceQuotas(namespace).Create(ctx, q, metav1.CreateOptions{}); !must(err) {
		return
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		q, err := s.client.CoreV1().ResourceQuotas(namespace).Get(ctx, "q", metav1.GetOptions{})
		return err == nil && len(q.Status.Used) == len(q.Spec.Hard), nil
	})
	if !must(err) {
		return
	}
	facts, err := placement.ReadFacts(ctx, s.sources(namespace))
	if !must(err) {
		return
	}
	facts.Nodes = nil // the quota alone: pods that are let in need no node here
	pod := placement.SandboxPod(namespace, placement.Share{Memory: 1 << 30, CPU: 1000, Disk: 1 << 30}, placement.Rules{NodeSelector: map[string]string{"pool": "none"}})
	room := placement.Room(pod, facts, placement.RoomOptions{})
	made := int64(0)
	for ; made <= room.More+1; made++ {
		one := pod.DeepCopy()
		one.Name = fmt.Sprint("s-", made)
		if _, err = s.client.CoreV1().Pods(namespace).Create(ctx, withImages(one), metav1.CreateOptions{}); err != nil {
			break
		}
	}
	if !apierrors.IsForbidden(err) || made != room.More {
		t.Errorf("%s (%s): %d were let in, then %v; the room was %s", namespace, hard, made, err, room)
		return
	}
	if limit := room.LimitedBy[0]; limit.On == placement.OnQuota {
		refusal, ok := quotawords.ParseRefusal(err.Error())
		if _, named := refusal.Requested[limit.Resource]; !ok || refusal.Quota != limit.Name || !named || refusal.Never() != limit.Never {
			t.Errorf("%s: %v; and the limit was %+v", namespace, err, limit)
		}
	}
}
