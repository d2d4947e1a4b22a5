package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/placement/v1alpha1"
)

// The rows read: what was written before, what the pod says, and what stands in the status then.
type row struct {
	before func(*v1alpha1.Sandbox)
	pod    func(*corev1.Pod) // nil: no pod
	see    func(*observation)
	phase  v1alpha1.SandboxPhase
	// conditions are "Status/Reason message"; "" where a condition is absent. A message that is left out may be anything.
	scheduled, ready, lost, fresh string
}

const (
	created = "2026-11-30T09:00:00Z"
	later   = "2026-11-30T09:00:07Z"
	earlier = "2026-11-30T08:00:00Z"
)

func at(text string) *metav1.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return &metav1.Time{Time: t}
}

func box() *v1alpha1.Sandbox {
	return &v1alpha1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a", UID: "box", Generation: 3, CreationTimestamp: *at(created)},
		Spec:       v1alpha1.SandboxSpec{Image: "i", Port: 9000},
	}
}

func says(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

func all(edits ...func(*corev1.Pod)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for _, edit := range edits {
			edit(pod)
		}
	}
}

func placed(pod *corev1.Pod)  { pod.Spec.NodeName = "node-1" }
func running(pod *corev1.Pod) { all(placed, says(corev1.PodReady, corev1.ConditionTrue, "", ""))(pod) }
func going(pod *corev1.Pod)   { pod.DeletionTimestamp = at(later) }
func ended(phase corev1.PodPhase, reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		placed(pod)
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = phase, reason, message
	}
}

func known(box *v1alpha1.Sandbox) { box.Status.PodUID, box.Status.Node = "pod", "node-1" }

// repo is wanted by the Sandbox; node is what node-1 reports of it, nil for nothing.
func repo(key string, node *v1alpha1.RepoNode) func(*observation) {
	return func(o *observation) {
		o.box.Spec.Repos = append(o.box.Spec.Repos, v1alpha1.SandboxRepo{Key: key, URL: "https://git.example.com/" + key})
		if o.repos == nil {
			o.repos = map[string]*v1alpha1.Repo{}
		}
		o.repos[key] = &v1alpha1.Repo{Status: v1alpha1.RepoStatus{Nodes: []v1alpha1.RepoNode{{Node: "other", Present: true, Synced: true, LastFetched: at(later)}}}}
		if node != nil {
			node.Node = "node-1"
			o.repos[key].Status.Nodes = append(o.repos[key].Status.Nodes, *node)
		}
	}
}

func missing(key string) func(*observation) {
	return func(o *observation) {
		o.box.Spec.Repos = append(o.box.Spec.Repos, v1alpha1.SandboxRepo{Key: key, URL: "https://git.example.com/" + key})
	}
}

func both(a, b func(*observation)) func(*observation) { return func(o *observation) { a(o); b(o) } }

func rows() map[string]row {
	quota := &refusal{v1alpha1.ReasonQuotaExceeded, `pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`}
	fetched := &v1alpha1.RepoNode{Present: true, Synced: true, Attempted: v1alpha1.AttemptFetch, LastFetched: at(created), LastAttempt: at(created)}
	return map[string]row{
		"nothing tried yet":          {phase: "Pending"},
		"a quota refuses":            {see: func(o *observation) { o.refusal = quota }, phase: "Pending", scheduled: "False/QuotaExceeded " + quota.message, ready: "False/QuotaExceeded " + quota.message},
		"the scheduler is silent":    {pod: func(*corev1.Pod) {}, phase: "Pending", scheduled: "Unknown/SchedulingPending", ready: "False/PodNotReady the scheduler has not placed the pod"},
		"no node":                    {pod: says(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/1 nodes are available: 1 Insufficient cpu."), phase: "Pending", scheduled: "False/Unschedulable 0/1 nodes are available: 1 Insufficient cpu.", ready: "False/Unschedulable 0/1 nodes are available: 1 Insufficient cpu."},
		"a scheduler without reason": {pod: says(corev1.PodScheduled, corev1.ConditionFalse, "", "no"), phase: "Pending", scheduled: "False/Unschedulable no", ready: "False/Unschedulable no"},
		"a scheduler's odd reason":   {pod: says(corev1.PodScheduled, corev1.ConditionFalse, "not a word", "no"), phase: "Pending", scheduled: "False/Unschedulable no", ready: "False/Unschedulable no"},
		"the scheduler's own fault":  {pod: says(corev1.PodScheduled, corev1.ConditionFalse, "SchedulerError", "x"), phase: "Pending", scheduled: "False/SchedulerError x", ready: "False/SchedulerError x"},
		"gated": {pod: all(says(corev1.PodScheduled, corev1.ConditionFalse, "SchedulingGated", ""), func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/admission"}, {Name: "b"}}
		}), phase: "Pending", scheduled: "False/SchedulingGated gate example.com/admission, gate b", ready: "False/SchedulingGated gate example.com/admission, gate b"},
		"gated, with words": {pod: all(says(corev1.PodScheduled, corev1.ConditionFalse, "SchedulingGated", "Scheduling is blocked"), func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}}
		}), phase: "Pending", scheduled: "False/SchedulingGated Scheduling is blocked: gate g", ready: "False/SchedulingGated"},
		"placed":        {pod: placed, phase: "Pending", scheduled: "True/Scheduled", ready: "False/PodNotReady the pod has not started"},
		"starting":      {pod: all(placed, says(corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady", "containers with unready status: [harness]")), phase: "Pending", scheduled: "True/Scheduled", ready: "False/PodNotReady containers with unready status: [harness]"},
		"ready":         {pod: running, phase: "Ready", scheduled: "True/Scheduled", ready: "True/PodReady"},
		"ready no more": {before: func(b *v1alpha1.Sandbox) { known(b); b.Status.Phase = "Ready" }, pod: all(placed, says(corev1.PodReady, corev1.ConditionFalse, "X", "")), phase: "Pending", scheduled: "True/Scheduled", ready: "False/PodNotReady X"},
		"being deleted": {before: known, pod: all(running, going), phase: "Pending", scheduled: "True/Scheduled", ready: "False/PodNotReady the pod is being deleted"},
		"being evicted": {before: known, pod: all(running, going, says(corev1.DisruptionTarget, corev1.ConditionTrue, "EvictionByEvictionAPI", "Eviction API: evicting")), phase: "Pending", scheduled: "True/Scheduled", ready: "False/PodNotReady the pod is being deleted: Eviction API: evicting"},
		"gone":          {before: known, phase: "Lost", ready: "False/PodDeleted the pod is gone", lost: "True/PodDeleted the pod is gone"},
		"gone, it is known why": {before: func(b *v1alpha1.Sandbox) {
			known(b)
			b.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "PodNotReady", Message: "the pod is being deleted: Eviction API: evicting"}}
		}, phase: "Lost", ready: "False/PodDeleted the pod is gone: Eviction API: evicting", lost: "True/PodDeleted the pod is gone: Eviction API: evicting"},
		"gone with its node":      {before: known, see: func(o *observation) { o.nodeAway = true }, phase: "Lost", ready: "False/NodeLost", lost: "True/NodeLost the pod is gone"},
		"deleted on a lost node":  {before: known, pod: all(running, going), see: func(o *observation) { o.nodeAway = true }, phase: "Lost", scheduled: "True/Scheduled", ready: "False/NodeLost", lost: "True/NodeLost the pod is being deleted and its node node-1 is gone or does not answer"},
		"the kubelet is silent":   {before: known, pod: all(running, going, func(p *corev1.Pod) { p.Status.Reason = "NodeLost" }), phase: "Lost", scheduled: "True/Scheduled", ready: "False/NodeLost", lost: "True/NodeLost"},
		"a node that may be back": {before: known, pod: running, see: func(o *observation) { o.nodeAway = true }, phase: "Ready", scheduled: "True/Scheduled", ready: "True/PodReady"},
		"collected with its node": {before: known, pod: all(ended(corev1.PodFailed, "", ""), going, says(corev1.DisruptionTarget, corev1.ConditionTrue, "DeletionByPodGC", "PodGC: node no longer exists")), phase: "Lost", scheduled: "True/Scheduled", ready: "False/NodeLost PodGC: node no longer exists", lost: "True/NodeLost PodGC: node no longer exists"},
		"failed":                  {pod: ended(corev1.PodFailed, "", ""), phase: "Lost", scheduled: "True/Scheduled", ready: "False/PodFailed", lost: "True/PodFailed all containers of the pod have ended"},
		"succeeded":               {pod: ended(corev1.PodSucceeded, "", ""), phase: "Lost", scheduled: "True/Scheduled", ready: "False/PodSucceeded", lost: "True/PodSucceeded"},
		"evicted":                 {pod: ended(corev1.PodFailed, "Evicted", "The node was low on resource: memory."), phase: "Lost", scheduled: "True/Scheduled", ready: "False/Evicted The node was low on resource: memory.", lost: "True/Evicted The node was low on resource: memory."},
		"rejected by the kubelet": {pod: ended(corev1.PodFailed, "OutOfcpu", "Node didn't have enough resource: cpu"), phase: "Lost", scheduled: "True/Scheduled", ready: "False/OutOfcpu", lost: "True/OutOfcpu Node didn't have enough resource: cpu"},
		"ended by its deletion":   {before: known, pod: all(ended(corev1.PodSucceeded, "", ""), going), phase: "Lost", scheduled: "True/Scheduled", ready: "False/PodDeleted the pod was deleted", lost: "True/PodDeleted the pod was deleted"},
		"ended by an eviction":    {before: known, pod: all(ended(corev1.PodFailed, "", ""), going, says(corev1.DisruptionTarget, corev1.ConditionTrue, "EvictionByEvictionAPI", "Eviction API: evicting")), phase: "Lost", scheduled: "True/Scheduled", ready: "False/PodDeleted", lost: "True/PodDeleted the pod was deleted: Eviction API: evicting"},
		"evicted, then deleted":   {before: known, pod: all(ended(corev1.PodFailed, "Evicted", "m"), going), phase: "Lost", scheduled: "True/Scheduled", ready: "False/Evicted m", lost: "True/Evicted m"},
		"an odd reason of a pod":  {pod: ended(corev1.PodFailed, "no reason!", "m"), phase: "Lost", scheduled: "True/Scheduled", ready: "False/PodFailed m", lost: "True/PodFailed m"},
		"lost stays lost": {before: func(b *v1alpha1.Sandbox) {
			known(b)
			b.Status.Phase = "Lost"
			b.Status.Conditions = []metav1.Condition{{Type: "Lost", Status: "True", Reason: "Evicted", Message: "m"}, {Type: "Ready", Status: "False", Reason: "Evicted", Message: "m"}}
		}, pod: running, phase: "Lost", ready: "False/Evicted m", lost: "True/Evicted m"},
		"being deleted itself": {before: func(b *v1alpha1.Sandbox) { known(b); b.DeletionTimestamp = at(later) }, phase: "Terminating", ready: "False/PodNotReady the Sandbox is being deleted"},
		"no Service any more":  {before: known, pod: running, see: func(o *observation) { o.refusal = &refusal{"NameTaken", "m"} }, phase: "Pending", scheduled: "True/Scheduled", ready: "False/NameTaken m"},

		"no Repo object":          {pod: running, see: missing("app"), phase: "Pending", scheduled: "True/Scheduled", ready: `False/RepoMissing there is no Repo "app" for https://git.example.com/app`},
		"the first of two":        {pod: running, see: both(repo("app", nil), missing("lib")), phase: "Pending", scheduled: "True/Scheduled", ready: "False/RepoPending node node-1 has not fetched https://git.example.com/app since the Sandbox was made"},
		"not on this node":        {pod: running, see: repo("app", nil), phase: "Pending", scheduled: "True/Scheduled", ready: "False/RepoPending"},
		"a repo counts when up":   {pod: placed, see: missing("app"), phase: "Pending", scheduled: "True/Scheduled", ready: "False/PodNotReady"},
		"the clone failed":        {pod: running, see: repo("app", &v1alpha1.RepoNode{Attempted: v1alpha1.AttemptClone, LastAttempt: at(created), LastError: "denied"}), phase: "Pending", scheduled: "True/Scheduled", ready: "False/RepoCloneFailed https://git.example.com/app: denied"},
		"an old clone failed":     {pod: running, see: repo("app", &v1alpha1.RepoNode{Attempted: v1alpha1.AttemptClone, LastAttempt: at(earlier), LastError: "denied"}), phase: "Pending", scheduled: "True/Scheduled", ready: "False/RepoPending"},
		"a probe failed":          {pod: running, see: repo("app", &v1alpha1.RepoNode{Attempted: v1alpha1.AttemptProbe, LastAttempt: at(later), LastError: "x"}), phase: "Pending", scheduled: "True/Scheduled", ready: "False/RepoPending"},
		"fetched":                 {pod: running, see: repo("app", fetched), phase: "Ready", scheduled: "True/Scheduled", ready: "True/PodReady", fresh: "True/Fetched"},
		"fetched before only":     {pod: running, see: repo("app", &v1alpha1.RepoNode{Present: true, Synced: true, Attempted: v1alpha1.AttemptFetch, LastFetched: at(earlier), LastAttempt: at(earlier)}), phase: "Pending", scheduled: "True/Scheduled", ready: "False/RepoPending"},
		"stale":                   {pod: running, see: repo("app", &v1alpha1.RepoNode{Present: true, Attempted: v1alpha1.AttemptFetch, LastFetched: at(earlier), LastAttempt: at(later), LastError: "timeout"}), phase: "Ready", scheduled: "True/Scheduled", ready: "True/PodReady", fresh: "False/FetchFailed https://git.example.com/app: timeout"},
		"one fresh, one is stale": {pod: running, see: both(repo("app", fetched), repo("lib", &v1alpha1.RepoNode{Present: true, Attempted: v1alpha1.AttemptFetch, LastAttempt: at(later), LastError: "timeout"})), phase: "Ready", scheduled: "True/Scheduled", ready: "True/PodReady", fresh: "False/FetchFailed https://git.example.com/lib: timeout"},
		"the gate is passed once": {before: func(b *v1alpha1.Sandbox) {
			b.Status.Conditions = []metav1.Condition{{Type: "ReposFresh", Status: "True", Reason: "Fetched"}}
		}, pod: running, see: missing("app"), phase: "Ready", scheduled: "True/Scheduled", ready: "True/PodReady", fresh: "True/Fetched"},
	}
}

func TestConditions(t *testing.T) {
	for name, row := range rows() {
		t.Run(name, func(t *testing.T) {
			o := observation{box: box(), now: at(later).Time}
			if row.before != nil {
				row.before(o.box)
			}
			if row.pod != nil {
				o.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "pod"}}
				row.pod(o.pod)
			}
			if row.see != nil {
				row.see(&o)
			}
			before := o.box.DeepCopy()
			got := nextStatus(o)
			if got.Phase != row.phase {
				t.Errorf("phase %s, want %s", got.Phase, row.phase)
			}
			if got.Endpoint != "http://a.team.svc:9000" {
				t.Errorf("endpoint %s", got.Endpoint)
			}
			for kind, want := range map[string]string{"Scheduled": row.scheduled, "Ready": row.ready, "Lost": row.lost, "ReposFresh": row.fresh} {
				checkCondition(t, got.Conditions, kind, want)
			}
			if o.pod != nil && !isLost(&before.Status) && got.PodUID != "pod" {
				t.Errorf("pod UID %q", got.PodUID)
			}
			o.box.Status = got
			if again := nextStatus(o); again.Phase != got.Phase || len(again.Conditions) != len(got.Conditions) {
				t.Errorf("it does not rest: %+v, then %+v", got, again)
			}
		})
	}
}

func checkCondition(t *testing.T, conditions []metav1.Condition, kind, want string) {
	t.Helper()
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		if want != "" {
			t.Errorf("no %s, want %s", kind, want)
		}
		return
	}
	got := string(c.Status) + "/" + c.Reason
	if strings.Contains(want, " ") {
		got += " " + c.Message
	}
	if got != want {
		t.Errorf("%s is %s, want %s", kind, got, want)
	}
}

// TestTransition: the time of a condition is when its status turned, so "since" of a wait holds while its words change.
func TestTransition(t *testing.T) {
	o := observation{box: box(), now: at(created).Time, refusal: &refusal{v1alpha1.ReasonQuotaExceeded, "one"}}
	o.box.Status = nextStatus(o)
	o.refusal, o.now = &refusal{v1alpha1.ReasonQuotaExceeded, "two"}, at(later).Time
	o.box.Status = nextStatus(o)
	c := meta.FindStatusCondition(o.box.Status.Conditions, v1alpha1.ConditionScheduled)
	if c.Message != "two" || !c.LastTransitionTime.Equal(at(created)) || c.ObservedGeneration != 3 {
		t.Errorf("%+v", c)
	}
}

func TestShortened(t *testing.T) {
	if got := shortened(strings.Repeat("é", maxMessage+1)); len([]rune(got)) != maxMessage {
		t.Errorf("%d characters", len([]rune(got)))
	}
	if got := shortened("a\xffb"); got != "a�b" {
		t.Errorf("%q", got)
	}
}

// TestContainers: what the status says of the containers.
func TestContainers(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "preflight", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}}}},
		ContainerStatuses: []corev1.ContainerStatus{
			{Name: "custodian", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{Name: "harness", RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137, FinishedAt: *at(later)}}},
		},
	}}
	waiting := waitingOf(pod)
	if len(waiting) != 2 || waiting[0] != (v1alpha1.WaitingContainer{Container: "preflight", Reason: "CrashLoopBackOff", Message: "back-off"}) || waiting[1].Container != "harness" {
		t.Errorf("%+v", waiting)
	}
	harness := harnessOf(pod)
	if harness.RestartCount != 2 || harness.LastTerminated.ExitCode != 137 || harness.LastTerminated.Reason != "OOMKilled" || !harness.LastTerminated.FinishedAt.Equal(at(later)) {
		t.Errorf("%+v %+v", harness, harness.LastTerminated)
	}
	if harnessOf(&corev1.Pod{}) != nil || waitingOf(&corev1.Pod{}) != nil {
		t.Error("a pod of which nothing is known")
	}
}

// TestReposStatus: what was asked of each repository and what became of it.
func TestReposStatus(t *testing.T) {
	o := observation{box: box(), pod: &corev1.Pod{}, now: at(later).Time}
	placed(o.pod)
	both(repo("app", &v1alpha1.RepoNode{Present: true, LastFetched: at(earlier), LastAttempt: at(created), LastError: "e"}), missing("lib"))(&o)
	o.box.Annotations = map[string]string{v1alpha1.AnnotationAsked("app"): later, v1alpha1.AnnotationAsked("lib"): earlier}
	got := repoStatuses(o)
	if len(got) != 2 || !got[0].Asked.Equal(at(later)) || !got[0].Fetched.Equal(at(earlier)) || !got[0].Attempted.Equal(at(created)) || got[0].Error != "e" {
		t.Errorf("%+v", got)
	}
	if got[1].Key != "lib" || !got[1].Asked.Equal(at(created)) || got[1].Fetched != nil {
		t.Errorf("%+v", got[1])
	}
}

func TestIdleAt(t *testing.T) {
	for name, test := range map[string]struct {
		timeout   time.Duration
		keepalive string
		want      string // "" for never
	}{
		"none":              {},
		"zero":              {timeout: -1},
		"since its making":  {timeout: time.Hour, want: "2026-11-30T10:00:00Z"},
		"since it was used": {timeout: time.Hour, keepalive: later, want: "2026-11-30T10:00:07Z"},
		"used before":       {timeout: time.Hour, keepalive: earlier, want: "2026-11-30T10:00:00Z"},
		"an offset":         {timeout: time.Hour, keepalive: "2026-11-30T11:00:00+01:00", want: "2026-11-30T11:00:00Z"},
		"a fraction":        {timeout: time.Minute, keepalive: "2026-11-30T09:00:07.5Z", want: "2026-11-30T09:01:07.5Z"},
		"no time":           {timeout: time.Hour, keepalive: "soon"},
	} {
		b := box()
		if test.timeout != 0 {
			b.Spec.IdleTimeout = &metav1.Duration{Duration: max(test.timeout, 0)}
		}
		if test.keepalive != "" {
			b.Annotations = map[string]string{v1alpha1.AnnotationKeepalive: test.keepalive}
		}
		got, lapses := idleAt(b)
		if lapses != (test.want != "") || lapses && !got.Equal(at(test.want).Time) {
			t.Errorf("%s: %v %t", name, got, lapses)
		}
	}
}

func TestSynced(t *testing.T) {
	good, bad, worse := v1alpha1.RepoNode{Node: "a", Synced: true}, v1alpha1.RepoNode{Node: "b", LastError: "denied"}, v1alpha1.RepoNode{Node: "c", LastError: "gone"}
	for name, test := range map[string]struct {
		nodes []v1alpha1.RepoNode
		want  string
	}{
		"no node": {nil, "Unknown/NotReported no node has reported"},
		"all":     {[]v1alpha1.RepoNode{good}, "True/Synced"},
		"first":   {[]v1alpha1.RepoNode{good, bad, worse}, "False/SyncFailed b: denied"},
	} {
		c := synced(test.nodes)
		if got := strings.TrimSpace(string(c.Status) + "/" + c.Reason + " " + c.Message); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
