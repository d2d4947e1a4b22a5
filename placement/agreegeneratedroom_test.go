package placement_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"jr2.dev/jr2/placement"
	quotawords "jr2.dev/jr2/placement/quota"
)

// generatedSetups is how many of nodes, quotas, limit ranges, pods that run and DaemonSets are made up.
const generatedSetups = 42

// generatedRoom fills each setup until a pod is refused or waits: so many must Room have counted, and for that reason.
func (s *scheduled) generatedRoom(t *testing.T) {
	seed := seedOf(t)
	c := chooserOf(seed)
	var setups []*setup
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for i := range generatedSetups {
		setup := madeUpSetup(c, i)
		setups = append(setups, setup)
		for _, node := range setup.nodes {
			group.Go(func() error { return s.cluster.AddNode(ctx, node) })
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	by, some := map[string]int{}, 0
	fill := errgroup.Group{}
	fill.SetLimit(8)
	for _, setup := range setups {
		fill.Go(func() error {
			room, err := s.fill(t, setup)
			if err != nil {
				t.Errorf("seed %d, %s: %v\n%s", seed, setup.namespace, err, shapeOf(setup.pod))
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			for _, limit := range room.LimitedBy {
				by[limit.On]++
			}
			if room.More > 0 {
				some++
			}
			return nil
		})
	}
	fill.Wait() //nolint:errcheck // each tells its own
	t.Logf("seed %d: %d setups, %d with room, limited by %v", seed, len(setups), some, by)
	if by[placement.OnNode] < 8 || by[placement.OnQuota] < 8 || by[placement.OnLimitRange] < 2 || some < generatedSetups/3 {
		t.Errorf("limited by %v, %d with room: the setups try too little", by, some)
	}
}

// fill counts the room, and then the pods that get in.
func (s *scheduled) fill(t *testing.T, setup *setup) (placement.Headroom, error) {
	ctx := t.Context()
	if err := s.furnish(t, setup); err != nil {
		return placement.Headroom{}, err
	}
	facts, err := placement.ReadFacts(ctx, s.sources(setup.namespace))
	if err != nil {
		return placement.Headroom{}, err
	}
	if setup.daemons != nil {
		set, err := s.client.AppsV1().DaemonSets(setup.daemons.Namespace).Create(ctx, setup.daemons, metav1.CreateOptions{})
		if err != nil {
			return placement.Headroom{}, err
		}
		facts.DaemonSets = append(facts.DaemonSets, *set)
	}
	opts := placement.RoomOptions{}
	if setup.objects {
		opts.Objects = placement.SandboxObjects()
	}
	room := placement.Room(setup.pod, facts, opts)
	if setup.daemons != nil {
		if err := s.daemonsThere(ctx, setup); err != nil {
			return room, err
		}
	}
	var waiting []<-chan *corev1.Pod
	for i := range room.More + 1 {
		var one <-chan *corev1.Pod
		if one, err = s.enter(ctx, setup, i); err != nil {
			break
		}
		waiting = append(waiting, one)
	}
	bound, message := int64(0), ""
	for _, one := range waiting {
		pod, err := heard(ctx, one)
		switch {
		case err != nil:
			return room, err
		case pod.Spec.NodeName != "":
			bound++
		default:
			message = verdict(pod)
		}
	}
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return room, err
	}
	if bound != room.More || err == nil && message == "" {
		return room, fmt.Errorf("%d were placed, then: %v %s; the room was %s", bound, err, message, room)
	}
	return room, limitedBy(room, setup, err, message)
}

// furnish makes what is there before the first pod comes.
func (s *scheduled) furnish(t *testing.T, setup *setup) error {
	ctx := t.Context()
	s.namespace(t, setup.namespace, nil)
	for _, pod := range setup.running {
		pod, err := s.said.ask(ctx, s.client, pod)
		if err != nil {
			return err
		}
		if pod.Spec.NodeName == "" {
			s.gone(t, pod) // it would compete
		}
	}
	if setup.ranged != nil {
		if _, err := s.client.CoreV1().LimitRanges(setup.namespace).Create(ctx, setup.ranged, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, quota := range setup.quotas {
		if _, err := s.client.CoreV1().ResourceQuotas(setup.namespace).Create(ctx, quota, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		all, err := s.client.CoreV1().ResourceQuotas(setup.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		return !slices.ContainsFunc(all.Items, func(q corev1.ResourceQuota) bool { return len(q.Status.Used) < len(q.Spec.Hard) }), nil
	})
}

// daemonsThere waits until the DaemonSet has its pods and the scheduler has spoken of each.
func (s *scheduled) daemonsThere(ctx context.Context, setup *setup) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		set, err := s.client.AppsV1().DaemonSets(setup.daemons.Namespace).Get(ctx, setup.daemons.Name, metav1.GetOptions{})
		if err != nil || set.Status.ObservedGeneration < set.Generation {
			return false, err
		}
		pods, err := s.client.CoreV1().Pods(setup.daemons.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "daemons=" + setup.namespace})
		if err != nil || len(pods.Items) < int(set.Status.DesiredNumberScheduled) {
			return false, err
		}
		return !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == "" && verdict(&p) == "" }), nil
	})
}

// enter makes one pod, and what comes with it. A quota that was made a moment ago may not be known yet to who lets pods in.
func (s *scheduled) enter(ctx context.Context, setup *setup, number int64) (<-chan *corev1.Pod, error) {
	meta := metav1.ObjectMeta{Name: fmt.Sprint("s-", number), Namespace: setup.namespace}
	var made <-chan *corev1.Pod
	steps := []func() error{func() (err error) {
		pod := setup.pod.DeepCopy()
		pod.Name = meta.Name
		made, err = s.said.make(ctx, s.client, pod)
		return err
	}}
	if setup.objects {
		steps = append([]func() error{func() error {
			_, err := s.client.CoreV1().Secrets(meta.Namespace).Create(ctx, &corev1.Secret{ObjectMeta: meta}, metav1.CreateOptions{})
			return err
		}, func() error {
			service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
			_, err := s.client.CoreV1().Services(meta.Namespace).Create(ctx, service, metav1.CreateOptions{})
			return err
		}}, steps...)
	}
	for _, step := range steps {
		var refused error
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
			if refused = step(); refused == nil {
				return true, nil
			}
			refusal, _ := quotawords.ParseRefusal(refused.Error())
			return !refusal.Uncounted, nil
		})
		if err = errors.Join(refused, err); err != nil {
			return nil, refused
		}
	}
	return made, nil
}

// limitedBy compares why the last one did not get in with what Room said.
func limitedBy(room placement.Headroom, setup *setup, err error, message string) error {
	on := func(what string) bool {
		return slices.ContainsFunc(room.LimitedBy, func(l placement.Limit) bool { return l.On == what })
	}
	if err == nil {
		explanation := placement.Explanation{}
		for _, node := range room.Nodes {
			explanation.Nodes = append(explanation.Nodes, node.NodeAnswer)
		}
		if want := "Unschedulable: " + explanation.Message(); !on(placement.OnNode) || !setup.even && !strings.HasPrefix(message, want) {
			return fmt.Errorf("waits: %s\nand %q was expected; the room was %s", message, want, room)
		}
		return nil
	}
	refusal, byQuota := quotawords.ParseRefusal(err.Error())
	if !byQuota {
		if !on(placement.OnLimitRange) {
			return fmt.Errorf("refused: %w; the room was %s", err, room)
		}
		return nil
	}
	for _, limit := range room.LimitedBy {
		_, named := refusal.Requested[limit.Resource]
		named = named || slices.Contains(refusal.Unstated, string(limit.Resource))
		if limit.On == placement.OnQuota && limit.Name == refusal.Quota && named && limit.Never == refusal.Never() {
			return nil
		}
	}
	return fmt.Errorf("refused: %w; the limits were %+v", err, room.LimitedBy)
}
