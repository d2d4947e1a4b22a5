package provision_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/placement/provision"
	"jr2.dev/jr2/placement/v1alpha1"
)

const seedWords = `pods "ws-5e817334-x-0-61ru0u" is forbidden: exceeded quota: team-quota, requested: limits.memory=1Gi, used: limits.memory=2Gi, limited: limits.memory=512Mi`

// noon is when the conditions of boxes began.
func noon() metav1.Time { return metav1.NewTime(time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC)) }

// box is a Sandbox with conditions "Type Status Reason message".
func box(conditions ...string) *v1alpha1.Sandbox {
	box := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Name: "ws-1", CreationTimestamp: noon(), Labels: map[string]string{v1alpha1.LabelRun: "r1", v1alpha1.LabelWorkflow: "hold"}}}
	for _, text := range conditions {
		part := append(strings.SplitN(text, " ", 4), "", "")
		box.Status.Conditions = append(box.Status.Conditions, metav1.Condition{
			Type: part[0], Status: metav1.ConditionStatus(part[1]), Reason: part[2], Message: part[3], LastTransitionTime: noon()})
	}
	return box
}

func TestStateAndWait(t *testing.T) {
	on := func(b *v1alpha1.Sandbox, edit func(*v1alpha1.Sandbox)) *v1alpha1.Sandbox { edit(b); return b }
	for name, test := range map[string]struct {
		box   *v1alpha1.Sandbox
		state provision.State
		wait  string // "" when nobody has said why
	}{
		"fresh":                   {box(), provision.Placing, ""},
		"before the scheduler":    {box("Scheduled Unknown SchedulingPending"), provision.Placing, ""},
		"a quota that is small":   {box("Scheduled False QuotaExceeded " + seedWords), provision.Placing, "quota never " + seedWords},
		"a quota that is full":    {box("Scheduled False QuotaExceeded exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"), provision.Placing, "quota not yet exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"},
		"a quota nobody can read": {box("Scheduled False QuotaExceeded so much"), provision.Placing, "quota not yet so much"},
		"no node":                 {box("Scheduled False Unschedulable 0/1 nodes are available"), provision.Placing, "node not yet 0/1 nodes are available"},
		"a wordless scheduler":    {box("Scheduled False Unschedulable"), provision.Placing, "node not yet Unschedulable"},
		"F29 a gate":              {box("Scheduled False SchedulingGated gate example.com/admission"), provision.Placing, "gate not yet gate example.com/admission"},
		"admission":               {box("Scheduled False PodRefused no"), provision.Placing, "pod not yet no"},
		"a taken name":            {box("Scheduled False NameTaken whose"), provision.Placing, "pod not yet whose"},
		"a wrong pod":             {box("Scheduled False PodInvalid spec"), provision.Placing, "pod never spec"},
		"placed":                  {box("Scheduled True Scheduled"), provision.Provisioning, ""},
		"placed, by its node":     {on(box(), func(b *v1alpha1.Sandbox) { b.Status.Node = "a" }), provision.Provisioning, ""},
		"held by a repository":    {box("Scheduled True Scheduled", "Ready False RepoPending app"), provision.Provisioning, ""},
		"ready":                   {box("Scheduled True Scheduled", "Ready True PodReady"), provision.Ready, ""},
		"lost":                    {box("Scheduled True Scheduled", "Ready True PodReady", "Lost True PodDeleted"), provision.Lost, ""},
		"lost, by its phase":      {on(box("Scheduled False Unschedulable x"), func(b *v1alpha1.Sandbox) { b.Status.Phase = v1alpha1.SandboxLost }), provision.Lost, ""},
		"being deleted":           {on(box("Scheduled False Unschedulable x"), func(b *v1alpha1.Sandbox) { b.DeletionTimestamp = ptr(noon()) }), provision.Ending, ""},
	} {
		if state := provision.StateOf(test.box); state != test.state {
			t.Errorf("%s: %s, want %s", name, state, test.state)
		}
		wait, ok := provision.WaitOf(test.box)
		text := ""
		if ok {
			text = fmt.Sprintf("%s %s %s", wait.On, wait.Outlook, wait.Message)
			if !wait.Since.Equal(noon().Time) {
				t.Errorf("%s: since %s", name, wait.Since)
			}
		}
		if text != test.wait {
			t.Errorf("%s: waits %q, want %q", name, text, test.wait)
		}
	}
	wait, _ := provision.WaitOf(box("Scheduled False QuotaExceeded " + seedWords))
	used := wait.Quota.Used[corev1.ResourceLimitsMemory]
	if wait.Quota.Quota != "team-quota" || used.String() != "2Gi" {
		t.Errorf("%+v", wait.Quota)
	}
}

// TestRunsOf groups Sandboxes by run, and shows each as `jr2 status` does.
func TestRunsOf(t *testing.T) {
	of := func(name, run, child string, age time.Duration, b *v1alpha1.Sandbox) v1alpha1.Sandbox {
		b.Name, b.CreationTimestamp = name, metav1.NewTime(noon().Add(-age))
		b.Labels[v1alpha1.LabelRun] = run
		b.Annotations = map[string]string{v1alpha1.AnnotationChild: child}
		return *b
	}
	kept := of("ws-a0", "a", "", time.Minute, box("Scheduled True Scheduled", "Ready False RepoPending app is not there"))
	kept.Annotations[v1alpha1.AnnotationKeepalive], kept.Status.Node = "2026-02-03T12:00:00Z", "n"
	alone := of("alone", "", "", 0, box())
	runs := provision.RunsOf([]v1alpha1.Sandbox{
		of("ws-a2", "a", "F-1", 0, box("Scheduled False Unschedulable none")), of("ws-b", "b", "", time.Hour, box("Lost True PodDeleted gone")), alone,
		of("ws-a1", "a", "F-1", 0, box("Scheduled Unknown SchedulingPending")), kept, of("ws-c", "c", "", 0, box()),
	})
	text, err := json.Marshal(runs)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"runId":"b","workflow":"hold","started":"2026-02-03T11:00:00Z","workspaces":[{"child":"","sandbox":"ws-b","state":"lost","reason":"PodDeleted","message":"gone"}]},` +
		`{"runId":"a","placing":["F-1"],"workflow":"hold","started":"2026-02-03T11:59:00Z","waiting":[{"child":"F-1","on":"node","message":"none","since":"2026-02-03T12:00:00Z"}],"workspaces":[` +
		`{"child":"","sandbox":"ws-a0","state":"provisioning","node":"n","reason":"RepoPending","message":"app is not there","kept":"2026-02-03T12:00:00Z"},` +
		`{"child":"F-1","sandbox":"ws-a1","state":"placing"},{"child":"F-1","sandbox":"ws-a2","state":"placing"}]},` +
		`{"runId":"c","placing":[""],"workflow":"hold","started":"2026-02-03T12:00:00Z","workspaces":[{"child":"","sandbox":"ws-c","state":"placing"}]}]`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if runs[0].Live() || !runs[1].Live() || !runs[2].Live() {
		t.Error("a run lives while one of its Sandboxes does")
	}
}

func TestErrorsInWords(t *testing.T) {
	wait := provision.Wait{On: provision.OnNode, Message: "0/1 nodes are available"}
	for want, err := range map[string]error{
		"sandbox_lost: ws-1: no node within the deadline of 10m0s — it waited for a node: 0/1 nodes are available": &provision.LostError{
			Sandbox: "ws-1", Cause: provision.ErrPlacingDeadline, After: 10 * time.Minute, Wait: &wait},
		"sandbox_lost: ws-1: the pod is lost: NodeLost": &provision.LostError{Sandbox: "ws-1", Cause: provision.ErrPodLost, Reason: "NodeLost"},
		"ws-1 is not Ready 2m0s after it was placed on a: ImagePullBackOff: harness: not found — it stays until its idle timeout": &provision.NotReadyError{
			Sandbox: "ws-1", Node: "a", Budget: 2 * time.Minute, Reason: "ImagePullBackOff", Message: "harness: not found"},
		`2 runs in namespace "n" begin with "a" — give more of the id: a1, a2`:    &provision.UnknownRunError{ID: "a", Namespace: "n", Matches: []string{"a1", "a2"}},
		`workflow "w" binds Repo Slot "app" per run, and no url was given for it`: &provision.SlotError{Workflow: "w", Slot: "app"},
	} {
		if err.Error() != want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
	}
}
