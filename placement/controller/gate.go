package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/placement/v1alpha1"
)

// repoGate is what holds a Sandbox whose pod is ready: the first repository of the list that is not there yet. held is nil when all are;
// stale then tells of those that are there in an older state, because the last fetch failed.
func repoGate(o observation) (held *refusal, stale string) {
	var failed []string
	since := o.box.CreationTimestamp
	for _, want := range o.box.Spec.Repos {
		repo := o.repos[want.Key]
		if repo == nil {
			return &refusal{v1alpha1.ReasonRepoMissing, fmt.Sprintf("there is no Repo %q for %s", want.Key, want.URL)}, ""
		}
		node := onNode(repo, o.pod.Spec.NodeName)
		pending := &refusal{v1alpha1.ReasonRepoPending, fmt.Sprintf("node %s has not fetched %s since the Sandbox was made", o.pod.Spec.NodeName, want.URL)}
		switch {
		case node == nil:
			return pending, ""
		case !node.Present && node.Attempted == v1alpha1.AttemptClone && failedSince(node, since):
			return &refusal{v1alpha1.ReasonRepoCloneFailed, fmt.Sprintf("%s: %s", want.URL, node.LastError)}, ""
		case !node.Present:
			return pending, ""
		case notBefore(node.LastFetched, since):
		case failedSince(node, since):
			failed = append(failed, fmt.Sprintf("%s: %s", want.URL, node.LastError))
		default:
			return pending, ""
		}
	}
	return nil, strings.Join(failed, "; ")
}

func failedSince(node *v1alpha1.RepoNode, since metav1.Time) bool {
	return !node.Synced && notBefore(node.LastAttempt, since)
}

// notBefore compares whole seconds, as the API server keeps them.
func notBefore(t *metav1.Time, since metav1.Time) bool {
	return t != nil && !t.Time.Before(since.Truncate(time.Second))
}

func onNode(repo *v1alpha1.Repo, node string) *v1alpha1.RepoNode {
	i := slices.IndexFunc(repo.Status.Nodes, func(n v1alpha1.RepoNode) bool { return n.Node == node })
	if i < 0 {
		return nil
	}
	return &repo.Status.Nodes[i]
}

// repoStatuses say how fresh each repository is on the pod's node. A fetch counts as asked for when the Sandbox was made, or when its
// annotation says later.
func repoStatuses(o observation) []v1alpha1.SandboxRepoStatus {
	var all []v1alpha1.SandboxRepoStatus
	for _, want := range o.box.Spec.Repos {
		status := v1alpha1.SandboxRepoStatus{Key: want.Key, Asked: o.box.CreationTimestamp}
		asked, err := time.Parse(time.RFC3339, o.box.Annotations[v1alpha1.AnnotationAsked(want.Key)])
		if err == nil && asked.After(status.Asked.Time) {
			status.Asked = metav1.NewTime(asked.Truncate(time.Second))
		}
		if repo := o.repos[want.Key]; repo != nil {
			if node := onNode(repo, o.pod.Spec.NodeName); node != nil {
				status.Fetched, status.Attempted, status.Error = node.LastFetched, node.LastAttempt, node.LastError
			}
		}
		all = append(all, status)
	}
	return all
}

// holdersOf are the nodes that have each repository.
func holdersOf(repos map[string]*v1alpha1.Repo) map[string][]string {
	holders := map[string][]string{}
	for key, repo := range repos {
		for _, node := range repo.Status.Nodes {
			if node.Present {
				holders[key] = append(holders[key], node.Node)
			}
		}
	}
	return holders
}
