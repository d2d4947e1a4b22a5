package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/v1alpha1"
)

// TestRepoGate: a Sandbox whose pod is ready waits for its repositories, in the order of its list, and tells of each.
func TestRepoGate(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.start(nil, controller.Options{})
	app, lib := s.repo("app"), s.repo("lib")
	s.nodeReports(lib, v1alpha1.RepoNode{Node: "roomy", Present: true, Synced: true, Attempted: v1alpha1.AttemptFetch})
	s.until("the controller has seen that", func() bool {
		return s.get("lib", lib) && meta.IsStatusConditionTrue(lib.Status.Conditions, v1alpha1.ConditionSynced)
	})
	s.create(sandbox("a", func(b *v1alpha1.Sandbox) {
		b.Spec.Repos = []v1alpha1.SandboxRepo{{Key: "app", URL: "https://git.example.com/app"}, {Key: "lib", URL: "https://git.example.com/lib"}, {Key: "new", URL: "https://git.example.com/new"}}
	}))
	box := s.reason("a", v1alpha1.ConditionReady, v1alpha1.ReasonRepoPending)
	if len(box.Status.Repos) != 3 || box.Status.Repos[0].Fetched != nil || !box.Status.Repos[0].Asked.Equal(&box.CreationTimestamp) {
		t.Errorf("%+v", box.Status.Repos)
	}
	pod := new(corev1.Pod)
	s.get("a", pod)
	if terms := pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution; len(terms) != 1 || terms[0].Preference.MatchFields[0].Values[0] != "roomy" {
		t.Errorf("%+v", terms)
	}
	soon := metav1.NewTime(time.Now().Add(time.Second))
	s.nodeReports(app, v1alpha1.RepoNode{Node: "roomy", Attempted: v1alpha1.AttemptClone, LastAttempt: &soon, LastError: "permission denied"})
	box = s.reason("a", v1alpha1.ConditionReady, v1alpha1.ReasonRepoCloneFailed)
	if box.Status.Repos[0].Error != "permission denied" || box.Status.Repos[0].Attempted == nil {
		t.Errorf("%+v", box.Status.Repos)
	}
	s.until("the Repo tells of its node", func() bool {
		return s.get("app", app) && meta.IsStatusConditionFalse(app.Status.Conditions, v1alpha1.ConditionSynced)
	})
	s.nodeReports(app, v1alpha1.RepoNode{Node: "roomy", Present: true, Synced: true, Attempted: v1alpha1.AttemptFetch, LastAttempt: &soon, LastFetched: &soon})
	s.nodeReports(lib, v1alpha1.RepoNode{Node: "roomy", Present: true, Attempted: v1alpha1.AttemptFetch, LastAttempt: &soon, LastError: "timeout"})
	s.reason("a", v1alpha1.ConditionReady, v1alpha1.ReasonRepoMissing)
	s.nodeReports(s.repo("new"), v1alpha1.RepoNode{Node: "roomy", Present: true, Synced: true, Attempted: v1alpha1.AttemptClone, LastAttempt: &soon, LastFetched: &soon})
	box = s.phase("a", v1alpha1.SandboxReady)
	if c := condition(box, v1alpha1.ConditionReposFresh); c.Reason != v1alpha1.ReasonFetchFailed || c.Message != "https://git.example.com/lib: timeout" {
		t.Errorf("%+v", c)
	}
	if err := s.Delete(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	box = s.box("a", "has heard of it", func(b *v1alpha1.Sandbox) bool { return b.Status.Repos[0].Fetched == nil })
	if box.Status.Phase != v1alpha1.SandboxReady {
		t.Errorf("a gate that was passed closed again: %+v", box.Status)
	}
}

func (s *site) repo(key string) *v1alpha1.Repo {
	s.Helper()
	repo := &v1alpha1.Repo{ObjectMeta: metav1.ObjectMeta{Name: key}, Spec: v1alpha1.RepoSpec{URL: "https://git.example.com/" + key}}
	s.create(repo)
	s.until("nobody has reported of it", func() bool {
		return s.get(key, repo) && meta.IsStatusConditionPresentAndEqual(repo.Status.Conditions, v1alpha1.ConditionSynced, metav1.ConditionUnknown)
	})
	return repo
}

// nodeReports writes what the Repo cache of a node would: its own entry, beside what others write.
func (s *site) nodeReports(repo *v1alpha1.Repo, node v1alpha1.RepoNode) {
	s.Helper()
	before := repo.DeepCopy()
	repo.Status.Nodes = []v1alpha1.RepoNode{node}
	if err := s.Status().Patch(s.Context(), repo, client.MergeFrom(before)); err != nil {
		s.Fatal(err)
	}
}
