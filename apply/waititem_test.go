package apply

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// scripted is a wait for one object, whose watches are the test.
func scripted(o *unstructured.Unstructured, opts WaitOptions) (*waiter, *waitItem, *scene) {
	w := newWaiter(nil, []Ref{RefOf(o)}, opts.withDefaults())
	s := &scene{}
	w.scenes[o.GetNamespace()] = s
	w.begun = now
	w.groups[0].leave = func() {}
	return w, w.items[0], s
}

// shows gives the waiter a list and judges it.
func (w *waiter) shows(at time.Time, objs ...*unstructured.Unstructured) {
	list := make([]runtime.Object, len(objs))
	for i, o := range objs {
		list[i] = o
	}
	w.groups[0].see(list)
	w.judge(at)
}

// version gives a fixture a resource version.
func version(o *unstructured.Unstructured, v int) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetResourceVersion(fmt.Sprint(v))
	return o
}

func typedFixture[T any](t *testing.T, text string) *T {
	t.Helper()
	into := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
	return into
}

// Field case F04: a Job that is collected after it was seen complete succeeded; one that was not seen to finish did not. The same holds of
// a pod that ends, and of a hook of any kind, which its own controller may collect.
func TestF04AJobThatIsGone(t *testing.T) {
	added := version(fixture(t, head("batch/v1 Job", "")+"status: {active: 1}"), 1)
	complete := version(fixture(t, head("batch/v1 Job", "")+`status: {conditions: [{type: Complete, status: "True"}]}`), 2)
	failed := version(fixture(t, head("batch/v1 Job", "")+`status: {conditions: [{type: Failed, status: "True", reason: DeadlineExceeded}]}`), 2)
	again := version(added, 3)
	again.SetUID("u2")
	pod := func(v int, phase string) *unstructured.Unstructured {
		return version(fixture(t, head("v1 Pod", "")+"spec: {restartPolicy: Never}\nstatus: {phase: "+phase+"}"), v)
	}
	workflow := func(v int, metadata, ready string) *unstructured.Unstructured {
		return version(fixture(t, head("flow.example.com/v1 Workflow", metadata)+`status: {observedGeneration: 2, conditions: [{type: Ready, status: "`+ready+`"}]}`), v)
	}
	const hook = "annotations: {argocd.argoproj.io/hook: PreSync}"
	for _, tt := range []struct {
		name    string
		steps   []*unstructured.Unstructured // nil is an empty list
		end     waitEnd
		verdict string
	}{
		{"complete, then gone", []*unstructured.Unstructured{added, complete, nil}, endReady, ""},
		{"gone", []*unstructured.Unstructured{added, nil}, endFailed, "it was removed before it finished"},
		{"never there", []*unstructured.Unstructured{nil}, endFailed, "it does not exist"},
		{"failed, then gone", []*unstructured.Unstructured{added, failed, nil}, endFailed, `job "x" failed: DeadlineExceeded`},
		{"failed before the first look", []*unstructured.Unstructured{failed}, endFailed, `job "x" failed: DeadlineExceeded`},
		{"another one of its name", []*unstructured.Unstructured{added, again}, endFailed, "it was removed before it finished"},
		{"a pod that succeeded, then gone", []*unstructured.Unstructured{pod(1, "Running"), pod(2, "Succeeded"), nil}, endReady, ""},
		{"a pod that runs, then gone", []*unstructured.Unstructured{pod(1, "Running"), nil}, endFailed, "it was removed before it finished"},
		{"a hook of another kind that is done, then gone", []*unstructured.Unstructured{workflow(1, hook, "False"), workflow(2, hook, "True"), nil}, endReady, ""},
		{"a hook of another kind that runs, then gone", []*unstructured.Unstructured{workflow(1, hook, "False"), nil}, endFailed, "it was removed before it finished"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			waited := tt.steps[0]
			if waited == nil {
				waited = added
			}
			for _, together := range []bool{false, true} { // whether the wait comes to judge between the steps
				w, it, _ := scripted(waited, WaitOptions{})
				w.play(tt.steps, together)
				if it.end != tt.end || it.verdict != tt.verdict {
					t.Errorf("together %t: %q, %q", together, it.end, it.verdict)
				}
			}
		})
	}
}

// play shows the waiter the steps, nil for an empty list; together says that it judges only at the last one.
func (w *waiter) play(steps []*unstructured.Unstructured, together bool) {
	for i, o := range steps {
		var list []*unstructured.Unstructured
		var objs []runtime.Object
		if o != nil {
			list, objs = append(list, o), append(objs, o)
		}
		if together && i < len(steps)-1 {
			w.groups[0].see(objs)
			continue
		}
		w.shows(now.Add(time.Duration(i)*time.Second), list...)
	}
}

// late is a Deployment whose progress deadline was exceeded at a time.
func lateDeployment(t *testing.T, v int, available int, failedAt string) *unstructured.Unstructured {
	condition := `{type: Progressing, status: "True", reason: ReplicaSetUpdated}`
	if failedAt != "" {
		condition = `{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, lastUpdateTime: "` + failedAt + `"}`
	}
	return version(fixture(t, head("apps/v1 Deployment", `annotations: {deployment.kubernetes.io/revision: "1"}`)+
		fmt.Sprintf("spec: {replicas: 1}\nstatus: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: %d, conditions: [%s]}", available, condition)), v)
}

func currentSet() *appsv1.ReplicaSet {
	yes := true
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "x-1", UID: "rs", Annotations: map[string]string{revisionAnnotation: "1"},
		OwnerReferences: []metav1.OwnerReference{{UID: "u", Controller: &yes}}}}
}

// podOf is a pod of a maker.
func podOf(t *testing.T, maker types.UID, text string) *corev1.Pod {
	t.Helper()
	p := typedFixture[corev1.Pod](t, text)
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{UID: maker, Controller: &yes}}
	return p
}

const (
	homeless = `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/3 nodes are available}]}}`
	starting = `{spec: {nodeName: n1}, status: {phase: Pending}}`
	serving  = `{spec: {nodeName: n1}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`
)

// A progress deadline that was exceeded while no node took the pod is no failure, then or later; a later one is.
func TestTheProgressDeadlineDoesNotCountWithoutANode(t *testing.T) {
	const first, second = "2026-01-01T02:00:00Z", "2026-01-01T03:00:00Z"
	w, it, s := scripted(lateDeployment(t, 1, 0, ""), WaitOptions{})
	s.sets = []*appsv1.ReplicaSet{currentSet()}
	s.pods = []*corev1.Pod{podOf(t, "rs", homeless)}
	w.shows(now, lateDeployment(t, 1, 0, ""))
	if it.status.On != OnNode || it.status.Message != "0/3 nodes are available" {
		t.Fatalf("%+v", it.status)
	}
	hour := now.Add(time.Hour)
	w.shows(hour, lateDeployment(t, 2, 0, first))
	if it.end != "" || it.status.On != OnNode {
		t.Fatalf("the deadline failed it: %q, %+v", it.verdict, it.status)
	}
	s.pods = []*corev1.Pod{podOf(t, "rs", starting)}
	it.news = true
	w.judge(hour)
	w.shows(hour.Add(100*time.Second), lateDeployment(t, 3, 0, first))
	if it.end != "" || it.status.On != "" {
		t.Fatalf("with a node: %q, %+v", it.verdict, it.status)
	}
	if left := it.again.Sub(hour); left != DefaultRolloutTimeout {
		t.Errorf("%s are left: the hour without a node counted", left)
	}
	w.shows(hour.Add(110*time.Second), lateDeployment(t, 4, 0, second))
	if it.end != endFailed || !strings.Contains(it.verdict, "exceeded its progress deadline") {
		t.Errorf("a later one: %q, %q", it.end, it.verdict)
	}
}

// Field case F08, through the wait: what the last rollout left behind fails nothing, what is new fails at once.
func TestWaitReadyOfAStaleFailure(t *testing.T) {
	const before, after = "2026-01-01T00:00:00Z", "2026-01-01T02:00:00Z"
	w, it, _ := scripted(lateDeployment(t, 1, 0, before), WaitOptions{})
	w.shows(now, lateDeployment(t, 1, 0, before))
	w.shows(now.Add(time.Second), lateDeployment(t, 2, 0, ""))
	w.shows(now.Add(2*time.Second), lateDeployment(t, 3, 1, ""))
	if it.end != endReady {
		t.Errorf("left behind: %q, %+v", it.end, it.status)
	}
	w, it, _ = scripted(lateDeployment(t, 1, 0, before), WaitOptions{})
	w.shows(now, lateDeployment(t, 1, 0, before))
	w.shows(now.Add(time.Second), lateDeployment(t, 2, 0, after))
	if it.end != endFailed {
		t.Errorf("new: %q, %+v", it.end, it.status)
	}
	w, it, _ = scripted(lateDeployment(t, 1, 0, before), WaitOptions{})
	w.shows(now, lateDeployment(t, 1, 0, before))
	w.judge(now.Add(DefaultRolloutGrace))
	if it.end != endFailed {
		t.Errorf("stays: %q, %+v", it.end, it.status)
	}
}

// What holds up a workload is told from what is under way, and from refusals that are over.
func TestHoldup(t *testing.T) {
	const full = `create Pod x-0 in StatefulSet x failed error: pods "x-0" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3`
	set := fixture(t, head("apps/v1 StatefulSet", "")+"spec: {replicas: 2}\nstatus: {observedGeneration: 2, replicas: 1}")
	unseen := fixture(t, head("apps/v1 StatefulSet", "")+"spec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 1}")
	refused := func(text string, at time.Time) *corev1.Event {
		return &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "StatefulSet", Name: "x", UID: "u"}, Reason: failedCreate, Message: text, LastTimestamp: metav1.NewTime(at)}
	}
	made := func(text string, at time.Time) *corev1.Pod {
		p := podOf(t, "u", text)
		p.CreationTimestamp = metav1.NewTime(at)
		return p
	}
	before, after := now.Add(-time.Minute), now.Add(time.Minute)
	for _, tt := range []struct {
		name  string
		obj   *unstructured.Unstructured
		scene scene
		on    WaitsOn
		words string
	}{
		{"nothing", set, scene{}, "", ""},
		{"no node", set, scene{pods: []*corev1.Pod{made(homeless, before)}}, OnNode, "0/3 nodes are available"},
		{"no node, not observed", unseen, scene{pods: []*corev1.Pod{made(homeless, before)}}, "", ""},
		{"no node for the second", set, scene{pods: []*corev1.Pod{made(serving, before), made(homeless, before)}}, OnNode, "0/3"},
		{"no node, and one that starts", set, scene{pods: []*corev1.Pod{made(starting, before), made(homeless, before)}}, "", ""},
		{"of another", set, scene{pods: []*corev1.Pod{podOf(t, "other", homeless)}}, "", ""},
		{"quota", set, scene{refusals: []*corev1.Event{refused(full, now)}}, OnQuota, "exceeded quota: q, requested: pods=1"},
		{"quota, for the second", set, scene{refusals: []*corev1.Event{refused(full, now)}, pods: []*corev1.Pod{made(serving, before)}}, OnQuota, "exceeded quota"},
		{"quota, and then a pod", set, scene{refusals: []*corev1.Event{refused(full, now)}, pods: []*corev1.Pod{made(serving, after)}}, "", ""},
		{"quota, and then a pod without a node", set, scene{refusals: []*corev1.Event{refused(full, now)}, pods: []*corev1.Pod{made(homeless, after)}}, OnNode, "0/3"},
		{"refused for another cause last", set, scene{refusals: []*corev1.Event{refused(full, now), refused(`pods "x-0" is forbidden: violates PodSecurity "restricted:latest": seccompProfile`, after)}}, "", ""},
	} {
		got := tt.scene.holdup(tt.obj)
		if got.on != tt.on || tt.on != "" && !strings.Contains(got.words, tt.words) {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

// A refusal that the server gave before the wait began may be over: it fails nothing until it comes again.
func TestARefusalOfBeforeFailsNothing(t *testing.T) {
	set := fixture(t, head("apps/v1 StatefulSet", "")+"spec: {replicas: 1}\nstatus: {observedGeneration: 2}")
	e := &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "StatefulSet", Name: "x", UID: "u"}, LastTimestamp: metav1.NewTime(now.Add(-time.Minute)),
		Message: `pods "x-0" is forbidden: violates PodSecurity "restricted:latest": seccompProfile`}
	w, it, s := scripted(set, WaitOptions{})
	s.refusals = []*corev1.Event{e}
	w.shows(now, version(set, 1))
	if it.end != "" || !strings.Contains(it.status.Message, "violates PodSecurity") {
		t.Errorf("%q, %+v", it.end, it.status)
	}
	e.LastTimestamp = metav1.NewTime(now.Add(time.Second))
	w.shows(now.Add(time.Second), version(set, 2))
	if it.end != endFailed {
		t.Errorf("again: %q, %+v", it.end, it.status)
	}
}

// Field case F16: the deadlock of a surge is certain only when nobody else's leaving would help.
func TestDeadlock(t *testing.T) {
	deployment := func(surge, unavailable string) *unstructured.Unstructured {
		return fixture(t, head("apps/v1 Deployment", `annotations: {deployment.kubernetes.io/revision: "2"}`)+
			"spec: {replicas: 1, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: "+surge+", maxUnavailable: "+unavailable+"}}}\nstatus: {observedGeneration: 2}")
	}
	old := podOf(t, "rs", `{spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: 600m}, limits: {memory: 1Gi}}}]}, status: {phase: Running}}`)
	refused := func(what string) string { return `pods "x" is forbidden: exceeded quota: q, ` + what }
	for _, tt := range []struct {
		name, text string
		obj        *unstructured.Unstructured
		says       string
	}{
		{"certain", refused("requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1"), deployment("25%", "25%"), "set maxSurge to 0 and maxUnavailable to 1, or raise the quota q"},
		{"others could leave", refused("requested: requests.cpu=600m, used: requests.cpu=1900m, limited: requests.cpu=2"), deployment("25%", "25%"), ""},
		{"the old one goes first", refused("requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1"), deployment("0", "1"), ""},
		{"pods", refused("requested: pods=1, used: pods=1, limited: pods=1"), deployment("1", "0"), "pods 1"},
		{"limits", refused("requested: limits.memory=1Gi, used: limits.memory=1Gi, limited: limits.memory=1Gi"), deployment("1", "0"), "limits.memory 1Gi"},
		{"what is counted by nobody here", refused("requested: services=1, used: services=1, limited: services=1"), deployment("1", "0"), ""},
		{"replica sets", `replicasets.apps "x-2" is forbidden: exceeded quota: q, requested: count/replicasets.apps=1, used: count/replicasets.apps=1, limited: count/replicasets.apps=1`, deployment("0", "1"), "count/replicasets.apps 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := scene{sets: []*appsv1.ReplicaSet{currentSet()}, pods: []*corev1.Pod{old}}
			got := s.deadlock(tt.obj, tt.text)
			if (got != nil) != (tt.says != "") || got != nil && !strings.Contains(got.Text, tt.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}
