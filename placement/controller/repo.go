package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"jr2.dev/jr2/placement/v1alpha1"
)

// Reasons of Synced.
const (
	reasonSynced      = "Synced"
	reasonSyncFailed  = "SyncFailed"
	reasonNotReported = "NotReported"
)

// repos reconciles Repos: it sums up what the nodes report.
type repos struct {
	client client.Client
	clock  clock.PassiveClock
}

func (r *repos) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	repo := new(v1alpha1.Repo)
	if err := r.client.Get(ctx, request.NamespacedName, repo); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	next := repo.DeepCopy()
	setCondition(&next.Status.Conditions, repo.Generation, r.clock.Now(), synced(repo.Status.Nodes))
	if equality.Semantic.DeepEqual(repo.Status.Conditions, next.Status.Conditions) {
		return reconcile.Result{}, nil
	}
	// The patch is of the conditions alone: the nodes write theirs beside it. The lock keeps two controllers apart.
	err := r.client.Status().Patch(ctx, next, client.MergeFromWithOptions(repo, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: minRetry}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// synced is True when all nodes have the repository, False with the first error, Unknown when no node has reported.
func synced(nodes []v1alpha1.RepoNode) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionSynced, Status: metav1.ConditionUnknown, Reason: reasonNotReported, Message: "no node has reported"}
	if len(nodes) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonSynced, ""
	}
	for _, node := range nodes {
		if !node.Synced {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonSyncFailed, fmt.Sprintf("%s: %s", node.Node, node.LastError)
			break
		}
	}
	return c
}
