package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/v1alpha1"
)

// operate does in the embedded cluster what its simulated pods do not: the operator's controller runs in this process, and repositories are
// said to be on the nodes, as images are said to be pulled there.
func operate(ctx context.Context, cfg *rest.Config) (stop func(), err error) {
	both := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(both); err != nil {
			return nil, err
		}
	}
	c, err := client.New(cfg, client.Options{Scheme: both})
	if err != nil {
		return nil, fmt.Errorf("embedded operator: %w", err)
	}
	log.SetLogger(logr.Discard())
	// What a run still does when it was interrupted needs no operator.
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		controller.Run(ctx, cfg, controller.Options{}) //nolint:errcheck // without the kinds, Run says that nothing was converged
	}()
	go pretendClones(ctx, c)
	return func() { cancel(); <-done }, nil
}

// pretendClones says of each Repo that every node has it.
func pretendClones(ctx context.Context, c client.Client) {
	for tick := time.NewTicker(200 * time.Millisecond); ctx.Err() == nil; {
		var repos v1alpha1.RepoList
		var nodes corev1.NodeList
		if c.List(ctx, &repos) == nil && c.List(ctx, &nodes) == nil {
			for i := range repos.Items {
				pretendClone(ctx, c, &repos.Items[i], nodes.Items)
			}
		}
		select {
		case <-ctx.Done():
			tick.Stop()
		case <-tick.C:
		}
	}
}

func pretendClone(ctx context.Context, c client.Client, repo *v1alpha1.Repo, nodes []corev1.Node) {
	now := metav1.Now()
	if old := repo.Status.Nodes; len(old) == len(nodes) && len(old) > 0 && old[0].LastFetched != nil && now.Sub(old[0].LastFetched.Time) < time.Second {
		return
	}
	repo.Status.Nodes = nil
	for _, node := range nodes {
		repo.Status.Nodes = append(repo.Status.Nodes, v1alpha1.RepoNode{
			Node: node.Name, Present: true, Synced: true, Attempted: v1alpha1.AttemptFetch, LastAttempt: &now, LastFetched: &now, ObservedGeneration: repo.Generation,
		})
	}
	c.Status().Update(ctx, repo) //nolint:errcheck // the next tick tries again
}
