package apply

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var (
	old = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now = old.Add(time.Hour)
)

func n32(n int32) *int32 { return &n }

// deployment is in generation 5; failed, when not zero, is when its progress deadline was noted as exceeded.
func deployment(observed int64, updated, available int32, failed time.Time) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 5}, Spec: appsv1.DeploymentSpec{Replicas: n32(2)}}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: observed, Replicas: 2, UpdatedReplicas: updated, AvailableReplicas: available}
	if !failed.IsZero() {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: progressDeadlineExceeded, LastUpdateTime: metav1.NewTime(failed)}}
	}
	return d
}

// Field case F08: a failure that the last rollout left behind does not fail this one; a new failure does, promptly.
func TestProgressJudge(t *testing.T) {
	stalled := func(at time.Time) runtime.Object {
		status := "True"
		if at.IsZero() {
			status = "False"
		}
		return fixture(t, head("ex.io/v1 Thing", "")+`status: {observedGeneration: 2, conditions: [{type: Stalled, status: "`+status+`", reason: Bad, lastTransitionTime: "`+at.Format(time.RFC3339)+`"}, {type: Ready, status: "`+
			map[bool]string{true: "True", false: "False"}[at.IsZero()]+`"}]}`)
	}
	type step struct {
		after        time.Duration
		obj          runtime.Object
		done, failed bool
	}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"left behind", []step{{0, deployment(4, 1, 1, old), false, false}, {1, deployment(5, 1, 1, old), false, false},
			{2, deployment(5, 2, 1, time.Time{}), false, false}, {3, deployment(5, 2, 2, time.Time{}), true, false}}},
		{"first seen in the new generation", []step{{0, deployment(5, 1, 1, old), false, false}, {2, deployment(5, 2, 2, time.Time{}), true, false}}},
		{"noted late for the old generation", []step{{0, deployment(4, 1, 1, time.Time{}), false, false}, {1, deployment(4, 1, 1, now), false, false},
			{20, deployment(5, 1, 1, now), false, false}, {21, deployment(5, 2, 2, time.Time{}), true, false}}},
		{"new", []step{{0, deployment(5, 1, 1, time.Time{}), false, false}, {1, deployment(5, 1, 1, now), false, true}}},
		{"left behind, then new", []step{{0, deployment(5, 1, 1, old), false, false}, {1, deployment(5, 1, 1, now), false, true}}},
		{"stays", []step{{0, deployment(5, 1, 1, old), false, false}, {9, deployment(5, 1, 1, old), false, false}, {10, deployment(5, 1, 1, old), false, true}}},
		{"a custom resource, left behind", []step{{0, stalled(old), false, false}, {2, stalled(time.Time{}), true, false}}},
		{"a custom resource, new", []step{{0, stalled(old), false, false}, {2, stalled(now), false, true}}},
		{"done in spite of it", []step{{0, deployment(5, 2, 2, old), true, false}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			judge := progressJudge{grace: 10 * time.Second}
			for i, s := range tt.steps {
				got, again := judge.see(Ready(s.obj), now.Add(s.after*time.Second))
				if got.Done != s.done || got.Failed != s.failed {
					t.Fatalf("step %d: %+v", i+1, got)
				}
				if again < 0 || again > judge.grace {
					t.Errorf("step %d: look again after %s", i+1, again)
				}
			}
		})
	}
}

// Field case F09, and its like for DaemonSets.
func TestReady(t *testing.T) {
	set := func(strategy appsv1.StatefulSetUpdateStrategyType, partition *int32, replicas, ready, updated int32, revision string) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", Generation: 2}, Spec: appsv1.StatefulSetSpec{Replicas: n32(replicas)}}
		s.Spec.UpdateStrategy.Type = strategy
		if partition != nil {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: partition}
		}
		s.Status = appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: replicas, ReadyReplicas: ready, UpdatedReplicas: updated, CurrentRevision: "r1", UpdateRevision: revision}
		return s
	}
	daemon := func(strategy appsv1.DaemonSetUpdateStrategyType, desired, updated, available int32, observed int64) *appsv1.DaemonSet {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "cache", Generation: 2}}
		d.Spec.UpdateStrategy.Type = strategy
		d.Status = appsv1.DaemonSetStatus{ObservedGeneration: observed, DesiredNumberScheduled: desired, UpdatedNumberScheduled: updated, NumberAvailable: available}
		return d
	}
	const rolling, onDelete = appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType
	unobserved := set(rolling, n32(0), 1, 1, 1, "r1")
	unobserved.Status.ObservedGeneration = 1
	oldPods := deployment(5, 2, 2, time.Time{})
	oldPods.Status.Replicas = 3
	for _, tt := range []struct {
		name string
		obj  runtime.Object
		done bool
		note string
	}{
		{"OnDelete with old pods ready", set(onDelete, nil, 3, 3, 0, "r2"), true, stagedNote},
		{"OnDelete, nothing new", set(onDelete, nil, 3, 3, 3, "r1"), true, ""},
		{"OnDelete, not ready", set(onDelete, nil, 3, 1, 0, "r2"), false, ""},
		{"partition of all", set(rolling, n32(3), 3, 3, 3, "r1"), true, ""},
		{"partition of more than all", set(rolling, n32(5), 3, 3, 0, "r2"), true, "partitioned: pods below ordinal 5 keep their revision"},
		{"partition of some", set(rolling, n32(2), 3, 3, 1, "r2"), true, "partitioned: pods below ordinal 2 keep their revision"},
		{"partition of some, not yet", set(rolling, n32(1), 3, 3, 1, "r2"), false, ""},
		{"no replicas", set(rolling, n32(0), 0, 0, 0, "r2"), true, ""},
		{"rolling", set(rolling, n32(0), 3, 3, 2, "r2"), false, ""},
		{"rolled", set(rolling, n32(0), 3, 3, 3, "r2"), true, ""},
		{"not observed", unobserved, false, ""},
		{"no node", daemon(appsv1.RollingUpdateDaemonSetStrategyType, 0, 0, 0, 2), true, ""},
		{"no node, not observed", daemon(appsv1.RollingUpdateDaemonSetStrategyType, 0, 0, 0, 1), false, ""},
		{"daemons updated, not available", daemon(appsv1.RollingUpdateDaemonSetStrategyType, 2, 2, 1, 2), false, ""},
		{"daemons old", daemon(appsv1.RollingUpdateDaemonSetStrategyType, 2, 1, 2, 2), false, ""},
		{"daemons OnDelete", daemon(appsv1.OnDeleteDaemonSetStrategyType, 2, 0, 2, 2), true, stagedNote},
		{"old pods go", oldPods, false, ""},
		{"other kinds exist", &corev1.ConfigMap{}, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Ready(tt.obj); got.Done != tt.done || got.Note != tt.note || got.Message == "" {
				t.Errorf("%+v", got)
			}
		})
	}
}
