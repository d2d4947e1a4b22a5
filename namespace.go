package jr2

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/placement/v1alpha1"
	"jr2.dev/jr2/preflight"
)

// namespaceAttempts bounds how often a namespace that came or changed between the look and the write is looked at again.
const namespaceAttempts = 8

// namespace makes the Instance's Namespace, or puts the Instance's label on the one that was agreed upon: the pod dry run after it needs one. Both writes
// hold for what was looked at alone. Another one that has the name by now is decided about as at the first time.
func (c *converge) namespace(ctx context.Context) error {
	ref := apply.Ref{Version: "v1", Kind: "Namespace", Name: c.cluster.namespace}
	for range namespaceAttempts {
		action, uid, err := c.bringNamespace(ctx)
		switch {
		case err == nil:
			c.result.Objects = append(c.result.Objects, apply.ObjectResult{Ref: ref, UID: string(uid), Action: action})
			if action != apply.Unchanged {
				c.result.Changed++
			}
			c.tell(NamespaceApplied{Name: c.cluster.namespace, Action: string(action), Asked: c.asked})
			return nil
		case !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
			return fmt.Errorf("namespace: %w", &apply.ObjectError{Ref: ref, Class: apply.Classify(err), Err: err})
		}
		if err := c.home(ctx); err != nil {
			return err
		}
		if err := c.contact(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("namespace: it changed %d times while it was written", namespaceAttempts)
}

func (c *converge) bringNamespace(ctx context.Context) (apply.Action, types.UID, error) {
	namespaces := c.cluster.client.CoreV1().Namespaces()
	options := metav1.CreateOptions{FieldManager: apply.DefaultFieldManager}
	switch {
	case c.homeless:
		asked := render.Namespace(c.input)
		asked.Annotations = map[string]string{names.AnnotationMadeBy: c.inst.Name, v1alpha1.AnnotationAllowance: c.allowance()}
		var made *corev1.Namespace
		err := c.patiently(ctx, func(ctx context.Context) (err error) {
			made, err = namespaces.Create(ctx, asked, options)
			return err
		})
		if err != nil {
			return "", "", err
		}
		return apply.Created, made.UID, nil
	case c.found.FirstContact:
		err := c.patiently(ctx, func(ctx context.Context) error {
			return c.cluster.markNamespace(ctx, c.seen, map[string]any{
				"labels":      map[string]any{names.LabelInstance: c.inst.Name},
				"annotations": map[string]any{v1alpha1.AnnotationAllowance: c.allowance()},
			})
		})
		return apply.Configured, c.seen.UID, err
	case c.seen.Annotations[v1alpha1.AnnotationAllowance] != c.allowance():
		return c.bringAllowance(ctx)
	}
	return apply.Unchanged, c.seen.UID, nil
}

// allowance is what the operator lets Sandboxes of this Instance ask for.
func (c *converge) allowance() string { return render.Allowance(c.input).String() }

// bringAllowance writes it on a Namespace that is the Instance's already. Who may not change Namespaces goes on without: the operator judges by
// what stands there.
func (c *converge) bringAllowance(ctx context.Context) (apply.Action, types.UID, error) {
	err := c.patiently(ctx, func(ctx context.Context) error {
		return c.cluster.markNamespace(ctx, c.seen, map[string]any{"annotations": map[string]any{v1alpha1.AnnotationAllowance: c.allowance()}})
	})
	if !apierrors.IsForbidden(err) {
		return apply.Configured, c.seen.UID, err
	}
	fix := fmt.Sprintf("kubectl annotate namespace %s --overwrite %s='%s'", c.cluster.namespace, v1alpha1.AnnotationAllowance, c.allowance())
	c.note(preflight.Finding{
		Severity: preflight.Warn, Code: preflight.CodeRightMissing, Object: "Namespace " + c.cluster.namespace, Fix: fix,
		Message: fmt.Sprintf("namespace %s does not say yet what this configuration gives its Sandboxes, and this user may not write it there — an administrator can: %s",
			c.cluster.namespace, fix),
	})
	return apply.Unchanged, c.seen.UID, nil
}

// patiently tries again what ends by itself, such as a webhook that does not answer yet.
func (c *converge) patiently(ctx context.Context, do func(context.Context) error) error {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Cap: 5 * time.Second, Steps: 20}
	var err error
	waited := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		err = do(ctx)
		class := apply.Classify(err)
		return !class.Retryable() || class == apply.ClassStale, nil
	})
	if err == nil && waited != nil && !wait.Interrupted(waited) {
		return waited
	}
	return err
}

// markNamespace changes metadata of exactly the Namespace that was read, in the version that was read.
func (c cluster) markNamespace(ctx context.Context, seen *corev1.Namespace, metadata map[string]any) error {
	metadata["uid"], metadata["resourceVersion"] = seen.UID, seen.ResourceVersion
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Namespaces().Patch(ctx, seen.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: apply.DefaultFieldManager})
	return err
}

// madeFor says that a converge of the Instance made the Namespace: the server notes that jr2 wrote the annotation, by a create. An apply under the name
// of jr2 proves nothing: `jr2 apply` writes under it whatever a manifest says.
func madeFor(namespace *corev1.Namespace, instance string) bool {
	if namespace.Annotations[names.AnnotationMadeBy] != instance || namespace.Labels[names.LabelInstance] != instance {
		return false
	}
	return setBy(namespace.ManagedFields, names.AnnotationMadeBy, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == apply.DefaultFieldManager && entry.Operation == metav1.ManagedFieldsOperationUpdate
	})
}

// setBy says that an entry of those which count has set the label or the annotation.
func setBy(entries []metav1.ManagedFieldsEntry, key string, counts func(metav1.ManagedFieldsEntry) bool) bool {
	field := []byte(`"f:` + key + `":{}`)
	for _, entry := range entries {
		if entry.Subresource == "" && entry.FieldsV1 != nil && counts(entry) && bytes.Contains(entry.FieldsV1.GetRawBytes(), field) {
			return true
		}
	}
	return false
}

// stillHome makes sure, under the lock, that the namespace is the Instance's still: a removal may have let go of it meanwhile.
func (c *converge) stillHome(ctx context.Context) error {
	now, err := c.cluster.readNamespace(ctx)
	if err != nil {
		return err
	}
	if now == nil || now.DeletionTimestamp != nil || now.Labels[names.LabelInstance] != c.inst.Name {
		return &LostNamespaceError{Instance: c.inst.Name, Context: c.cluster.context, Namespace: c.cluster.namespace}
	}
	return nil
}

// A LostNamespaceError says that the namespace stopped being the Instance's while a converge waited for the lock: somebody removed the Instance.
type LostNamespaceError struct{ Instance, Context, Namespace string }

func (e *LostNamespaceError) Error() string {
	return fmt.Sprintf("namespace %q on %s stopped being that of instance %q while this converge waited: somebody removed the instance. Nothing was applied after that; run it again to bring it back",
		e.Namespace, e.Context, e.Instance)
}
