package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/pod-security-admission/api"

	"jr2.dev/jr2/internal/holder"
	"jr2.dev/jr2/internal/names"
)

// What marks pods and namespaces of node checks.
const (
	nodeCheckLabel  = "jr2.dev/node-check"        // which check
	nodeCheckHolder = "jr2.dev/node-check-holder" // annotation: whose
	nodeCheckName   = "jr2-node-check-"           // how their names begin
)

const (
	// cleanTimeout bounds the removal after a check.
	cleanTimeout = 15 * time.Second
	// leftoverAge is when a namespace of another machine's check counts as left behind: far longer than any check takes.
	leftoverAge = time.Hour
	// podSlack is what a pod's own deadline has beyond the check's.
	podSlack = 10 * time.Second
)

// nodeChecking is one check under way.
type nodeChecking struct {
	NodeChecks
	// id is the value of nodeCheckLabel.
	id        string
	namespace string
	// made says that the namespace is this check's.
	made bool
	pods corev1client.PodInterface
}

// open finds or makes the namespace, and removes what checks before it left behind.
func (c NodeChecks) open(ctx context.Context) (*nodeChecking, error) {
	c.Image = cmp.Or(c.Image, DefaultCheckImage)
	if c.Timeout <= 0 {
		c.Timeout = DefaultCheckTimeout
	}
	if c.Parallel <= 0 {
		c.Parallel = DefaultCheckParallel
	}
	run := &nodeChecking{NodeChecks: c, id: rand.String(8), namespace: c.Namespace}
	if c.Namespace == "" {
		if err := run.sweepNamespaces(ctx); err != nil {
			return nil, err
		}
		made, err := c.Client.Namespaces().Create(ctx, run.ownNamespace(), metav1.CreateOptions{FieldManager: names.ManagedBy})
		if err != nil {
			return nil, fmt.Errorf("make a namespace for node checks: %w", err)
		}
		run.namespace, run.made = made.Name, true
	}
	run.pods = c.Client.Pods(run.namespace)
	if run.made {
		return run, nil
	}
	return run, run.sweepPods(ctx)
}

// ownNamespace is at the privileged level, and nobody is warned of what it is for.
func (r *nodeChecking) ownNamespace() *corev1.Namespace {
	labels := r.labels()
	for _, label := range []string{api.EnforceLevelLabel, api.AuditLevelLabel, api.WarnLevelLabel} {
		labels[label] = string(api.LevelPrivileged)
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: nodeCheckName, Labels: labels, Annotations: map[string]string{nodeCheckHolder: holder.Self()}}}
}

func (r *nodeChecking) labels() map[string]string {
	return map[string]string{nodeCheckLabel: r.id, names.LabelManagedBy: names.ManagedBy}
}

// left says whether an object of a check has nobody any more: its process has ended, or its time is long over. The server's clock may differ
// from ours, which the ages allow for.
func left(object *metav1.ObjectMeta, age time.Duration) bool {
	return object.DeletionTimestamp == nil && (holder.Gone(object.Annotations[nodeCheckHolder]) || time.Since(object.CreationTimestamp.Time) > age)
}

// sweepNamespaces needs the right to list namespaces; without it, leftovers stay.
func (r *nodeChecking) sweepNamespaces(ctx context.Context) error {
	list, err := r.Client.Namespaces().List(ctx, metav1.ListOptions{LabelSelector: nodeCheckLabel})
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for leftovers of node checks: %w", err)
	}
	for i := range list.Items {
		if old := &list.Items[i]; left(&old.ObjectMeta, leftoverAge) {
			err := r.Client.Namespaces().Delete(ctx, old.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &old.UID}})
			if err = gone(err); err != nil {
				return fmt.Errorf("remove namespace %s, which a node check left behind: %w", old.Name, err)
			}
		}
	}
	return nil
}

func (r *nodeChecking) sweepPods(ctx context.Context) error {
	list, err := r.pods.List(ctx, metav1.ListOptions{LabelSelector: nodeCheckLabel})
	if err != nil {
		return fmt.Errorf("look for leftovers of node checks in namespace %s: %w", r.namespace, err)
	}
	for i := range list.Items {
		old := &list.Items[i]
		age := leftoverAge
		if old.Spec.ActiveDeadlineSeconds != nil {
			age = 2*time.Duration(*old.Spec.ActiveDeadlineSeconds)*time.Second + 5*time.Minute
		}
		if left(&old.ObjectMeta, age) {
			if err := r.remove(ctx, old.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove ends a pod without delay; that is no loss for one that only looks.
func (r *nodeChecking) remove(ctx context.Context, pod string) error {
	var now int64
	if err := gone(r.pods.Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: &now})); err != nil {
		return fmt.Errorf("remove pod %s/%s of a node check: %w", r.namespace, pod, err)
	}
	return nil
}

// gone is nil when what was to be removed is not there, or is another by now.
func gone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// close removes the namespace, or every pod of this check, also one whose creation was answered by no one. What fails comes with err.
func (r *nodeChecking) close(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	if r.made {
		if failed := gone(r.Client.Namespaces().Delete(ctx, r.namespace, metav1.DeleteOptions{})); failed != nil {
			return errors.Join(err, fmt.Errorf("remove namespace %s of a node check: %w", r.namespace, failed))
		}
		return err
	}
	list, failed := r.pods.List(ctx, metav1.ListOptions{LabelSelector: nodeCheckLabel + "=" + r.id})
	if failed != nil {
		return errors.Join(err, fmt.Errorf("look for pods of a node check in namespace %s: %w", r.namespace, failed))
	}
	for i := range list.Items {
		err = errors.Join(err, r.remove(ctx, list.Items[i].Name))
	}
	return err
}
