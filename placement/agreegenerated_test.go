package placement_test

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/placement"
)

// The generated cases: so many sets of nodes, and so many pods in front of each.
const (
	generatedFleets = 8
	generatedRounds = 4
	generatedPods   = 17
)

// A tally counts what became of the cases.
type tally struct{ judged, landed, gated, invalid int }

// generated pods come and go in front of nodes that change. The seed is told: see seedOf.
//
// Pods that are expected to find no node change nothing for others, so those of a round are all made at once. The others come one by one, and each
// is judged with the ones before it there.
func (s *scheduled) generated(t *testing.T) {
	seed := seedOf(t)
	c := chooserOf(seed)
	count := tally{}
	for number := range generatedFleets {
		s.become(t, number, madeUpFleet(c))
		facts := s.facts(t, metav1.NamespaceDefault)
		if len(facts.Pods) > 0 {
			t.Fatalf("%s still runs", facts.Pods[0].Name)
		}
		for round := range generatedRounds {
			s.nodesNow(t, facts)
			var pods []*corev1.Pod
			for i := range generatedPods {
				pods = append(pods, madeUp(c, fmt.Sprintf("made-up-%d-%d-%d", number, round, i)))
			}
			s.round(t, facts, pods, &count)
			if t.Failed() {
				t.Fatalf("seed %d, fleet %d, round %d", seed, number, round)
			}
		}
		for i := range facts.Pods {
			s.gone(t, &facts.Pods[i])
		}
	}
	t.Logf("seed %d: %+v", seed, count)
	if count.judged < 500 || count.landed < count.judged/5 || count.landed > count.judged*4/5 || count.gated < 5 || count.invalid > count.judged/10 {
		t.Errorf("%+v: the pods try too little", count)
	}
}

// round judges pods, and leaves those that landed among the facts' pods, the last few of them.
func (s *scheduled) round(t *testing.T, facts *placement.Facts, pods []*corev1.Pod, count *tally) {
	t.Helper()
	var nowhere, somewhere []*corev1.Pod
	for _, pod := range pods {
		want, _, err := explain(facts, pod)
		if err != nil {
			t.Fatal(err)
		}
		if len(want.Gates) > 0 || want.Best() != placement.Usable {
			nowhere = append(nowhere, pod)
		} else {
			somewhere = append(somewhere, pod)
		}
	}
	made := make([]*corev1.Pod, len(nowhere))
	group := errgroup.Group{}
	group.SetLimit(8)
	for i, pod := range nowhere {
		group.Go(func() error { made[i] = s.valid(t, pod, facts); return nil })
	}
	group.Wait() //nolint:errcheck // each tells its own
	for i := range made {
		count.add(made[i])
		if made[i] != nil {
			group.Go(func() error { s.gone(t, made[i]); return nil })
		}
	}
	group.Wait() //nolint:errcheck // each tells its own
	for _, pod := range somewhere {
		pod = s.valid(t, pod, facts)
		count.add(pod)
		switch {
		case pod == nil:
		case pod.Spec.NodeName == "":
			s.gone(t, pod)
		default:
			facts.Pods = append(facts.Pods, *pod)
		}
		if len(facts.Pods) > 14 {
			s.gone(t, &facts.Pods[0])
			facts.Pods = facts.Pods[1:]
		}
	}
}

// valid is agree for pods of which the API server may say that there can be none such: nil then.
func (s *scheduled) valid(t *testing.T, pod *corev1.Pod, facts *placement.Facts) *corev1.Pod {
	t.Helper()
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if odd(pod) {
		if _, err := s.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), withImages(pod), dry); apierrors.IsInvalid(err) {
			return nil
		}
	}
	return s.agree(t, pod, facts)
}

// odd pods have a bound of their own that their containers may exceed.
func odd(pod *corev1.Pod) bool { return pod.Spec.Resources != nil }

func (c *tally) add(pod *corev1.Pod) {
	if pod == nil {
		c.invalid++
		return
	}
	c.judged++
	if pod.Spec.NodeName != "" {
		c.landed++
	} else if len(pod.Spec.SchedulingGates) > 0 {
		c.gated++
	}
}
