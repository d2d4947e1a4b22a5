package provision_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement/provision"
	"jr2.dev/jr2/placement/v1alpha1"
)

// TestAQuotaIsWaitedFor is the story of the source document: a quota of 512Mi, a Size of 1Gi, and then the quota is raised.
func TestAQuotaIsWaitedFor(t *testing.T) {
	s := newSite(t)
	q := s.quota("team-quota", list(corev1.ResourceLimitsMemory, "512Mi"))
	request := s.request()
	name, run := request.Sandbox.Name, request.Sandbox.Labels[v1alpha1.LabelRun]
	going := s.start(request, provision.Options{})
	words := fmt.Sprintf(`pods "%s" is forbidden: exceeded quota: team-quota, requested: limits.memory=1Gi, used: limits.memory=0, limited: limits.memory=512Mi`, name)
	going.tells("waits on quota (never): " + words)

	// What another process sees of it, in the cluster alone.
	status, err := provision.Status(t.Context(), s.cfg, s.namespace, run[:8])
	if err != nil {
		t.Fatal(err)
	}
	if len(status.Waiting) != 1 || status.Waiting[0].Message != words || status.Waiting[0].On != "quota" || status.Waiting[0].Child != "" ||
		time.Since(status.Waiting[0].Since) > time.Minute || !slices.Equal(status.Placing, []string{""}) || status.Workflow != "hold" || !status.Live() {
		t.Errorf("status: %+v", status)
	}
	if w := status.Workspaces; len(w) != 1 || w[0].Sandbox != name || w[0].State != provision.Placing || w[0].Kept == nil || time.Since(*w[0].Kept) > time.Minute {
		t.Errorf("workspaces: %+v", w)
	}
	var secret corev1.Secret
	if !s.get(name+"-token", &secret) || secret.Labels["jr2.dev/sandbox"] != name || len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].Name != name {
		t.Errorf("the token: %v, %v", secret.Labels, secret.OwnerReferences)
	}

	s.raise(q, list(corev1.ResourceLimitsMemory, "4Gi"))
	raised := time.Now()
	box, err := going.end()
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(raised); took > 25*time.Second {
		t.Errorf("it was placed %s after the quota was raised", took)
	}
	if want := "placing\nwaits on quota (never): " + words + "\nwaited, placed true\nprovisioning roomy\nready roomy"; going.told() != want {
		t.Errorf("told\n%s\nwant\n%s", going.told(), want)
	}
	if box.State != provision.Ready || box.Sandbox.Status.Node != "roomy" || box.Removed || box.Adopted || box.Placing <= 0 {
		t.Errorf("%+v", box)
	}
	if status, err = provision.Status(t.Context(), s.cfg, s.namespace, run); err != nil || status.Placing != nil || status.Waiting != nil {
		t.Errorf("status: %+v, %v", status, err)
	}
	if err := box.Teardown(t.Context()); err != nil {
		t.Error(err)
	}
	s.are(0)
	if err := box.Teardown(t.Context()); err != nil {
		t.Errorf("a second teardown: %v", err)
	}
}

// TestANodeIsWaitedFor: no node of the pool is there, and then one is.
func TestANodeIsWaitedFor(t *testing.T) {
	s := newSite(t)
	request := s.request(pooled(s.namespace), at("F-1"))
	going := s.start(request, provision.Options{})
	going.tells("waits on node (not yet): 0/")
	runs, err := provision.Runs(t.Context(), s.cfg, s.namespace)
	if err != nil || len(runs) != 1 || !slices.Equal(runs[0].Placing, []string{"F-1"}) || runs[0].Waiting[0].On != "node" || !strings.Contains(runs[0].Waiting[0].Message, "nodes are available") {
		t.Errorf("%+v, %v", runs, err)
	}
	if err := shared.AddNode(t.Context(), devcluster.Node{Name: s.namespace, Labels: map[string]string{"pool": s.namespace}, Allocatable: roomy(),
		Taints: []corev1.Taint{{Key: "pool", Value: s.namespace, Effect: corev1.TaintEffectNoSchedule}}}); err != nil {
		t.Fatal(err)
	}
	box, err := going.end()
	if err != nil || box.Sandbox.Status.Node != s.namespace {
		t.Fatalf("%+v, %v", box, err)
	}
	if told := going.told(); strings.Count(told, "waits on") != 1 || !strings.HasSuffix(told, "waited, placed true\nprovisioning "+s.namespace+"\nready "+s.namespace) {
		t.Errorf("told\n%s", told)
	}
	gone := make(chan error, 1)
	go func() { gone <- box.Watch(t.Context()) }()
	if err := s.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: request.Sandbox.Name}}, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; !errors.Is(err, provision.ErrPodLost) || !strings.Contains(err.Error(), "PodDeleted") || box.State != provision.Lost {
		t.Errorf("lost: %v, %s", err, box.State)
	}
}

// pooled wants nodes of a pool, which are for it alone.
func pooled(pool string) func(*provision.Composition) {
	return func(c *provision.Composition) {
		c.Instance.Sandbox.NodeSelector = map[string]string{"pool": pool}
		c.Instance.Sandbox.Tolerations = []corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpExists}}
	}
}

func at(path ...string) func(*provision.Composition) {
	return func(c *provision.Composition) { c.Workspace.Path = path }
}

// TestPlacedAtOnce: nobody waits, so no wait is told.
func TestPlacedAtOnce(t *testing.T) {
	s := newSite(t)
	going := s.start(s.request(), provision.Options{})
	if _, err := going.end(); err != nil || going.told() != "placing\nprovisioning roomy\nready roomy" {
		t.Errorf("%v, told\n%s", err, going.told())
	}
}

// TestWhatEndsAWait: what never ran goes at once, with its token, whatever ended the wait.
func TestWhatEndsAWait(t *testing.T) {
	stop := errors.New("the run was stopped")
	for name, test := range map[string]struct {
		opts  provision.Options
		act   func(*site, *telling, string)
		cause error
		says  string
		code  bool
	}{
		"a deadline":        {opts: provision.Options{PlacingDeadline: 3 * time.Second}, cause: provision.ErrPlacingDeadline, code: true, says: "nodes are available"},
		"its caller":        {act: func(_ *site, going *telling, _ string) { going.cancel(stop) }, cause: stop},
		"a deleted Sandbox": {act: remove, cause: provision.ErrDeleted, code: true, says: "nodes are available"},
		"no patience":       {opts: provision.Options{Refuse: func(provision.Wait) bool { return true }}, cause: provision.ErrRefused, code: true, says: "nodes are available"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			request := s.request(pooled("nowhere"))
			going := s.start(request, test.opts)
			going.tells("waits on node (not yet)")
			if test.act != nil {
				test.act(s, going, request.Sandbox.Name)
			}
			box, err := going.end()
			if !errors.Is(err, test.cause) || !strings.Contains(fmt.Sprint(err), test.says) {
				t.Errorf("ended with %v", err)
			}
			var lost *provision.LostError
			if errors.As(err, &lost) != test.code || test.code && (lost.Code() != "sandbox_lost" || lost.Wait == nil || lost.Wait.On != provision.OnNode || lost.After <= 0) {
				t.Errorf("the error: %+v", lost)
			}
			s.are(0)
			if told := going.told(); !strings.Contains(told, "waited, placed false") || strings.Contains(told, "removed") != box.Removed || box.Removed == (test.cause == provision.ErrDeleted) {
				t.Errorf("removed %t, told\n%s", box.Removed, told)
			}
		})
	}
}

// remove deletes the Sandbox behind the back of its Provision.
func remove(s *site, _ *telling, name string) {
	if err := s.Delete(s.Context(), &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}); err != nil {
		s.Error(err)
	}
}

// TestWhatNeverFits: with NeverFits nobody waits for a quota that is too small, and everybody for one that is full.
func TestWhatNeverFits(t *testing.T) {
	s := newSite(t)
	s.quota("q", list(corev1.ResourceLimitsMemory, "1536Mi"))
	first := s.start(s.request(), provision.Options{})
	if _, err := first.end(); err != nil {
		t.Fatal(err)
	}
	second := s.start(s.request(), provision.Options{Refuse: provision.NeverFits})
	second.tells("waits on quota (not yet)")
	memory := int64(2) << 30
	third := s.start(s.request(func(c *provision.Composition) { c.Workspace.Size.Memory = &memory }), provision.Options{Refuse: provision.NeverFits})
	_, err := third.end()
	var lost *provision.LostError
	if !errors.As(err, &lost) || lost.Cause != provision.ErrRefused || lost.Wait.Outlook != provision.Never {
		t.Fatalf("ended with %v", err)
	}
	requested, used, limited := lost.Wait.Quota.Requested[corev1.ResourceLimitsMemory], lost.Wait.Quota.Used[corev1.ResourceLimitsMemory], lost.Wait.Quota.Limited[corev1.ResourceLimitsMemory]
	if requested.String() != "2Gi" || used.String() != "1Gi" || limited.String() != "1536Mi" || lost.Wait.Quota.Quota != "q" {
		t.Errorf("%+v", lost.Wait.Quota)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: first.box.Sandbox.Name}}
	if err := s.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil { // the second one gets its room
		t.Fatal(err)
	}
	if _, err := second.end(); err != nil {
		t.Error(err)
	}
}

// TestWhatRanStays: a pod that is not Ready in time is left to be looked at, and so is one whose caller has gone.
func TestWhatRanStays(t *testing.T) {
	s := newSite(t)
	broken := func(c *provision.Composition) {
		c.Images.Harness = devcluster.TroubleImage(devcluster.ImagePullBackOff)
	}
	box, err := s.start(s.request(broken), provision.Options{ReadyBudget: 2 * time.Second}).end()
	var late *provision.NotReadyError
	if !errors.As(err, &late) || late.Node != "roomy" || late.Reason != "ImagePullBackOff" || late.Budget < 2*time.Second {
		t.Errorf("ended with %v", err)
	}
	if box.Removed || box.State != provision.Provisioning {
		t.Errorf("%+v", box)
	}
	stopped := s.start(s.request(broken), provision.Options{})
	stopped.tells("provisioning roomy")
	stopped.cancel(nil)
	if _, err := stopped.end(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.are(2)
}

// TestARepoIsWaitedForLonger: a Ready pod whose repository is not on its node has a budget of its own.
func TestARepoIsWaitedForLonger(t *testing.T) {
	s := newSite(t)
	with := func(c *provision.Composition) {
		c.Workspace.Repos = []config.RepoSlot{{Slot: "app", State: config.SlotPerRun}}
		c.Repos = map[string]string{"app": "https://git.example.test/team/app"}
		c.Instance.Git.Credentials = []config.GitCredential{{Match: "*", Token: "T"}}
	}
	request := s.request(with)
	going := s.start(request, provision.Options{ReadyBudget: time.Second, RepoBudget: 5 * time.Second})
	_, err := going.end()
	var late *provision.NotReadyError
	if !errors.As(err, &late) || late.Reason != v1alpha1.ReasonRepoPending || late.Budget < 5*time.Second {
		t.Fatalf("ended with %v", err)
	}
	var repo v1alpha1.Repo
	if !s.get(request.Sandbox.Spec.Repos[0].Key, &repo) || repo.Spec.URL != "https://git.example.test/team/app" || repo.Spec.SecretRef == nil || repo.Annotations["jr2.dev/last-attached"] == "" {
		t.Errorf("the Repo: %+v", repo)
	}
	second := s.start(s.request(with), provision.Options{}) // the Repo is there already
	second.tells("provisioning")
	repo.Status.Nodes = []v1alpha1.RepoNode{{Node: "roomy", Present: true, Synced: true, Attempted: v1alpha1.AttemptFetch, LastFetched: ptr(metav1.NewTime(time.Now().Add(time.Minute)))}}
	if err := s.Status().Update(t.Context(), &repo); err != nil {
		t.Fatal(err)
	}
	if _, err := second.end(); err != nil {
		t.Error(err)
	}
}

func ptr[T any](v T) *T { return &v }

// TestTwoAtOnce: two runs wait side by side, each for its own, and one name is one Sandbox.
func TestTwoAtOnce(t *testing.T) {
	s := newSite(t)
	q := s.quota("q", list(corev1.ResourceLimitsMemory, "1536Mi"))
	a, b := s.start(s.request(), provision.Options{}), s.start(s.request(), provision.Options{})
	first, second := a, b
	select {
	case <-a.done:
	case <-b.done:
		first, second = b, a
	case <-time.After(time.Minute):
		t.Fatal("none was placed")
	}
	if _, err := first.end(); err != nil {
		t.Fatal(err)
	}
	second.tells("waits on quota (not yet)")
	runs, err := provision.Runs(t.Context(), s.cfg, s.namespace)
	if err != nil || len(runs) != 2 {
		t.Fatalf("%+v, %v", runs, err)
	}
	marked := slices.DeleteFunc(runs, func(r provision.Run) bool { return r.Placing == nil })
	if len(marked) != 1 {
		t.Errorf("marked: %+v", marked)
	}
	s.raise(q, corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse("2Gi")})
	if _, err := second.end(); err != nil {
		t.Error(err)
	}
}
