package apply

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// step says what is to be done to one object.
func (r *run) step(ctx context.Context, o order) Step {
	if o.pos.isHook() {
		return r.hookStep(ctx, o)
	}
	now := r.live.get(o.ref)
	s := Step{Ref: o.ref}
	if now != nil {
		s.uid = now.UID
		if err := r.ownedByOther(o.ref, now); err != nil {
			return s.fails(WillConflict, err)
		}
		if o.asAsked(now, r.inv.records[o.ref.key()], r.opts.FieldManager) {
			s.Intent = WillLeave
			return s
		}
		if now.DeletionTimestamp != nil {
			if o.ref.Group == "" && o.ref.Kind == "Namespace" {
				return s.fails(WillFail, &ObjectError{Ref: o.ref, Class: ClassNamespaceTerminating, Err: r.terminating(ctx, o.ref.Name)})
			}
			s.Intent, s.Why = WillCreate, "the old one is being deleted"
			return s
		}
	}
	var t trial
	err := r.retry.do(ctx, o.ref, func(ctx context.Context) (err error) {
		t, err = r.try(ctx, o)
		return err
	})
	var conflict *ConflictError
	switch {
	case errors.Is(err, errArrivesLater):
		s.Intent, s.Why = WillArrive, errArrivesLater.Error()
		return s
	case errors.As(err, &conflict):
		s.Conflicts = conflict.Conflicts
		return s.fails(WillConflict, err)
	case Classify(err) == ClassQuotaWait:
		s.Intent, s.Why = WillCreate, "it waits for the quota: "+errors.Unwrap(err).Error()
		if now != nil {
			s.Intent = WillConfigure
		}
		return s
	case err != nil:
		return s.fails(WillFail, discreet(o, r.explain(ctx, o.ref, err)))
	}
	r.judge(&s, t)
	return s
}

// fails makes the step one that Apply refuses.
func (s Step) fails(i Intent, err error) Step {
	s.Intent, s.err, s.Why = i, err, strings.TrimPrefix(err.Error(), s.Ref.String()+": ")
	return s
}

// A trial is what a dry run of one object told.
type trial struct {
	before, after *unstructured.Unstructured // before is nil when there is none, or when it may not be read
	unread        bool
	force         bool
	unseen        string // why there is no after, when the object can be written all the same
}

// try dry-runs the write of an object onto the version that it reads.
func (r *run) try(ctx context.Context, o order) (trial, error) {
	var t trial
	m, err := r.cluster.mapping(o.ref)
	if meta.IsNoMatchError(err) {
		if r.arrives(o.ref) {
			return t, errArrivesLater
		}
		r.cluster.mapper.reset()
		return t, final{r.noMatch(o.ref, err)}
	}
	if err != nil {
		return t, err
	}
	if _, err := r.cluster.in(m, o.ref); err != nil { // it checks that a namespace is named
		return t, err
	}
	var at dynamic.ResourceInterface = r.cluster.dynamic.Resource(m.Resource)
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		at = r.cluster.dynamic.Resource(m.Resource).Namespace(o.ref.Namespace)
	}
	version := ""
	t.before, err = at.Get(ctx, o.ref.Name, metav1.GetOptions{})
	switch Classify(err) {
	case ClassNone:
		version = t.before.GetResourceVersion()
	case ClassNotFound, ClassNoMatch:
		t.before = nil
	case ClassForbidden:
		t.before, t.unread = nil, true
	default:
		return t, err
	}
	t.after, err = r.dryPatch(ctx, at, o, version, false)
	if Classify(err) == ClassConflict {
		conflicts := conflictsOf(err)
		if version == "" || !r.mayTake(conflicts) {
			return t, &ConflictError{Ref: o.ref, Conflicts: conflicts, Err: err}
		}
		t.force = true
		t.after, err = r.dryPatch(ctx, at, o, version, true)
	}
	switch {
	case err == nil:
	case apierrors.IsNotFound(err) && r.arrives(o.ref), r.groundArrives(o.ref, Classify(err)):
		return t, final{errArrivesLater}
	case strings.Contains(err.Error(), "does not support dry run"):
		t.after, t.unseen = nil, err.Error()
		return t, nil
	}
	return t, err
}

func (r *run) dryPatch(ctx context.Context, at dynamic.ResourceInterface, o order, version string, force bool) (*unstructured.Unstructured, error) {
	raw, err := o.encode(version)
	if err != nil {
		return nil, err
	}
	options := r.patchOptions(force)
	options.DryRun = []string{metav1.DryRunAll}
	return at.Patch(context.WithValue(ctx, refKey{}, o.ref), o.ref.Name, types.ApplyPatchType, raw, options)
}

// groundArrives says that the server refused an object for lack of what the set brings: the account of a pod, its priority, the role of
// a binding, the new definition of a kind.
func (r *run) groundArrives(ref Ref, c Class) bool {
	brings := func(kinds ...string) bool {
		return slices.ContainsFunc(r.orders, func(o order) bool {
			return slices.Contains(kinds, o.ref.Kind) && (o.ref.Namespace == "" || o.ref.Namespace == ref.Namespace) && r.live.get(o.ref) == nil
		})
	}
	switch c {
	case ClassServiceAccount:
		return brings("ServiceAccount")
	case ClassPriorityClass:
		return brings("PriorityClass")
	case ClassNotFound:
		return ref.Group == "rbac.authorization.k8s.io" && brings("Role", "ClusterRole")
	case ClassInvalid:
		return r.kinds[ref.Group+"/"+ref.Kind]
	}
	return false
}

// judge reads the step off a trial that the server allowed.
func (r *run) judge(s *Step, t trial) {
	s.force = t.force
	switch {
	case t.unread && s.uid != "":
		s.Intent, s.Why = WillConfigure, "it may not be read, so nobody compared it"
	case t.before == nil:
		s.Intent, s.Why, s.uid = WillCreate, t.unseen, ""
	case t.after == nil:
		s.Intent, s.Why, s.version = WillConfigure, t.unseen, t.before.GetResourceVersion()
	default:
		s.uid, s.version, s.Fields = t.before.GetUID(), t.before.GetResourceVersion(), diff(t.before, t.after)
		switch {
		case len(s.Fields) > 0:
			s.Intent = WillConfigure
		case entryOf(noted(t.before), r.opts.FieldManager) != entryOf(noted(t.after), r.opts.FieldManager):
			s.Intent, s.Why = WillConfigure, "its values stay; which of them are this set's is noted"
		default:
			s.Intent = WillLeave
		}
	}
}

// noted is what the server notes about the managers of an object.
func noted(o *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: o.GetManagedFields()}}
}

// encode is the body of a server-side apply. version, when given, must still be the object's.
func (o order) encode(version string) ([]byte, error) {
	body := o.body
	if version != "" {
		body = body.DeepCopy()
		body.SetResourceVersion(version)
	}
	return runtime.Encode(unstructured.UnstructuredJSONScheme, body)
}
