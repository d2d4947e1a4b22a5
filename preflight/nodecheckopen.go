package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/pod-security-admission/api"

	"jr2.dev/jr2/internal/names"
)

// What marks pods and namespaces of node checks.
const (
	nodeCheckLabel = "jr2.dev/node-check" // which check
	nodeCheckName  = "jr2-node-check-"    // how their names begin
)

// nodeChecking is one check under way.
type nodeChecking struct {
	NodeChecks
	shortPods
	// made is the namespace when it is this check's.
	made *corev1.Namespace
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
	run := &nodeChecking{NodeChecks: c, shortPods: shortPods{
		what: "a node check", label: nodeCheckLabel, id: rand.String(8), namespace: c.Namespace, timeout: c.Timeout,
	}}
	if c.Namespace == "" {
		if err := run.sweepNamespaces(ctx); err != nil {
			return nil, err
		}
		made, err := c.Client.Namespaces().Create(ctx, run.ownNamespace(), metav1.CreateOptions{FieldManager: names.ManagedBy})
		if err != nil {
			return nil, fmt.Errorf("make a namespace for node checks: %w", err)
		}
		run.namespace, run.made = made.Name, made
	}
	run.pods = c.Client.Pods(run.namespace)
	if run.made != nil {
		return run, nil
	}
	return run, run.sweep(ctx)
}

// ownNamespace is at the privileged level, and nobody is warned of what it is for.
func (r *nodeChecking) ownNamespace() *corev1.Namespace {
	labels := r.labels()
	for _, label := range []string{api.EnforceLevelLabel, api.AuditLevelLabel, api.WarnLevelLabel} {
		labels[label] = string(api.LevelPrivileged)
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: nodeCheckName, Labels: labels, Annotations: r.held()}}
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
		if old := &list.Items[i]; r.left(&old.ObjectMeta, leftoverAge) {
			err := r.Client.Namespaces().Delete(ctx, old.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &old.UID}})
			if err = gone(err); err != nil {
				return fmt.Errorf("remove namespace %s, which a node check left behind: %w", old.Name, err)
			}
		}
	}
	return nil
}

// close removes the namespace, or every pod of this check. What fails comes with err.
func (r *nodeChecking) close(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	if r.made != nil {
		exactly := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &r.made.UID}}
		if failed := gone(r.Client.Namespaces().Delete(ctx, r.namespace, exactly)); failed != nil {
			return errors.Join(err, fmt.Errorf("remove namespace %s of a node check: %w", r.namespace, failed))
		}
		return err
	}
	return r.removeAll(ctx, err)
}
