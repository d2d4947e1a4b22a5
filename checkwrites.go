package jr2

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/assembly"
	"jr2.dev/jr2/internal/holder"
	"jr2.dev/jr2/preflight"
)

// A seenLock is the Lease of the lock as it was looked at; without one there was none.
type seenLock struct {
	looked bool
	lease  *coordinationv1.Lease
}

// writes tries by dry run what a converge writes beside the objects of its sets, where it would: its lock, new deploy keys, the list of its objects,
// the Assembly. A policy, a quota or an immutable ConfigMap would else end a converge, the Assembly's after all the rest is applied. The Secret of
// tokens is among the objects. A namespace that is not there refuses nothing.
func (k *checking) writes(ctx context.Context) error {
	if k.homeless {
		return nil
	}
	var unseen []error
	if k.locked.looked {
		err := apply.TryLock(ctx, k.cluster.client, k.cluster.namespace, lockName, holder.Self(), k.locked.lease)
		unseen = append(unseen, k.refusedWrite(err, "the lock of a converge", true))
	}
	unseen = append(unseen, k.tryDeployKeys(ctx))
	for _, layer := range k.plan.Layers {
		if layer.Name == layerInstance && layer.Plan.Changes() > 0 {
			set := &apply.Set{Name: setInstance, Namespace: k.cluster.namespace}
			unseen = append(unseen, k.refusedWrite(apply.TryInventory(ctx, k.cluster.client, set), "the list of what the Instance has", true))
		}
	}
	return errors.Join(append(unseen, k.tryAssembly(ctx))...)
}

func (k *checking) tryDeployKeys(ctx context.Context) error {
	missing, err := k.missingDeployKeys(ctx)
	unseen := []error{err}
	for _, key := range missing {
		secret := k.deployKeySecret(key.Secret, []byte(standInKey), []byte(standInKey))
		_, err := k.cluster.client.CoreV1().Secrets(key.Namespace).Create(ctx, secret, metav1.CreateOptions{FieldManager: authorityManager, DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			ref := apply.Ref{Version: "v1", Kind: "Secret", Namespace: key.Namespace, Name: key.Secret}
			unseen = append(unseen, k.refusedWrite(&apply.ObjectError{Ref: ref, Class: apply.Classify(err), Err: err}, "a new deploy key", false))
		}
	}
	return errors.Join(unseen...)
}

// tryAssembly leaves a Publisher of the caller's alone: nobody knows what it writes.
func (k *checking) tryAssembly(ctx context.Context) error {
	if !k.plan.Assembly.Publish || k.opts.Publisher != nil {
		return nil
	}
	built, err := assembly.Build(k.inst, k.contextDigests())
	if err != nil {
		return err
	}
	publisher := assembly.Cluster(k.cluster.client, k.cluster.namespace, k.labels())
	publisher.Adopt = k.opts.Adopt
	err = unowned(publisher.Try(ctx, built))
	several := joined(err)
	if len(several) == 0 {
		return err
	}
	var unseen []error
	for _, err := range several {
		if one := (*assembly.WriteError)(nil); errors.As(err, &one) {
			ref := apply.Ref{Version: "v1", Kind: "ConfigMap", Namespace: k.cluster.namespace, Name: one.Name}
			err = k.refusedWrite(&apply.ObjectError{Ref: ref, Class: apply.Classify(one.Err), Err: one.Err}, "the Assembly", false)
		}
		unseen = append(unseen, err)
	}
	return errors.Join(unseen...)
}

// refusedWrite tells what a server refuses, and returns what else went wrong, of which nobody knows what it means. waits says that a converge waits where
// a quota is full now; else it ends. A right that is lacking is the affair of the check of all rights.
func (k *checking) refusedWrite(err error, what string, waits bool) error {
	var object *apply.ObjectError
	if !errors.As(err, &object) {
		return err
	}
	f := preflight.Finding{Severity: preflight.Refuse, Object: object.Ref.String()}
	class := object.Class
	switch {
	case class == apply.ClassForbidden || class == apply.ClassNamespaceTerminating:
		return nil
	case class == apply.ClassImmutable:
		f.Code, f.Fix = preflight.CodeImmutable, deletion(object.Ref)
	case !explainClass(class, &f):
		return err
	}
	if class == apply.ClassQuotaWait && waits {
		f.Severity = preflight.Warn
	}
	if fix := preflight.RaiseQuota(object.Ref.Namespace, object.Err.Error()); fix != "" {
		f.Fix = fix
	}
	end := "would be refused"
	if f.Severity == preflight.Warn {
		end = "would wait for room"
	}
	f.Message = fmt.Sprintf("%s, %s, %s: %v — %s", f.Object, what, end, object.Err, f.Fix)
	k.note(f)
	return nil
}
