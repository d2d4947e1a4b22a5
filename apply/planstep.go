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
	if o.mints() {
		return r.mintStep(ctx, o)
	}
	s := Step{Ref: o.ref}
	if err := r.seen(ctx, o.ref); err != nil {
		return s.fails(WillFail, err)
	}
	now, rec := r.live.get(o.ref), r.inv.records[o.ref.key()]
	if o.spent(now, rec) {
		s.Intent, s.Why = WillLeave, whySpent
		return s
	}
	if now != nil {
		s.uid = now.UID
		if o.joined {
			s.Intent, s.Why = WillLeave, whyJoined
			return s
		}
		if err := r.claim(o.ref, now); err != nil {
			return r.unclaimed(ctx, o, s, err)
		}
		if r.proven(o, now, rec) || r.heldAlready(ctx, o, now) {
			s.Intent = WillLeave
			return s
		}
		if now.DeletionTimestamp != nil {
			if o.ref.Group == "" && o.ref.Kind == "Namespace" {
				return s.fails(WillFail, &ObjectError{Ref: o.ref, Class: ClassNamespaceTerminating, Err: r.terminating(ctx, o.ref.Name)})
			}
			s.Intent, s.Why, s.Finalizers = WillCreate, "the old one is being deleted", now.Finalizers
			return s
		}
	}
	if now != nil {
		if err := r.keepsValues(ctx, o, now); err != nil {
			if conflict := (*ConflictError)(nil); errors.As(err, &conflict) {
				s.Conflicts = conflict.Conflicts
			}
			return s.fails(WillConflict, err)
		}
	}
	return r.tried(ctx, o, s)
}

// unclaimed says of an object that is somebody else's what an adoption would change of it.
func (r *run) unclaimed(ctx context.Context, o order, s Step, claim error) Step {
	if errors.As(claim, new(*UnownedError)) {
		tried := r.tried(ctx, o, s)
		s.Fields, s.Conflicts = tried.Fields, tried.Conflicts
	}
	return s.fails(WillConflict, claim)
}

// tried says what a dry run shows. It waits for no quota: that has an end which nobody knows.
func (r *run) tried(ctx context.Context, o order, s Step) Step {
	retry := r.retry
	retry.limits.Quota = -1
	var t trial
	err := retry.do(ctx, o.ref, func(ctx context.Context) (err error) {
		t, err = r.try(ctx, o)
		return err
	})
	var conflict *ConflictError
	var later *arrival
	switch {
	case err == nil:
		r.judge(&s, t)
	case errors.As(err, &later):
		s.Intent, s.Why = WillArrive, later.Error()
	case errors.As(err, &conflict):
		s.Conflicts = conflict.Conflicts
		return s.fails(WillConflict, err)
	case Classify(err) == ClassQuotaWait:
		s.Intent, s.Why = WillCreate, whyQuota+errors.Unwrap(err).Error()
		if s.uid != "" {
			s.Intent = WillConfigure
		}
	case Classify(err) == ClassImmutable:
		return r.triedAgain(ctx, o, s, t, err)
	default:
		return s.fails(WillFail, discreet(o, r.explain(ctx, o.ref, err)))
	}
	return s
}

// triedAgain says whether an object with an immutable field would be deleted and made again.
func (r *run) triedAgain(ctx context.Context, o order, s Step, t trial, refusal error) Step {
	err := r.retry.do(ctx, o.ref, func(ctx context.Context) error {
		return r.recreatable(ctx, o, r.live.get(o.ref), refusal)
	})
	if err != nil {
		return s.fails(WillFail, err)
	}
	s.Intent, s.Why, s.force = WillRecreate, whyRecreated(immutable(o.ref, refusal).Fields), t.ruling.force
	if t.before != nil {
		s.version = t.before.GetResourceVersion()
	}
	return s
}

// An arrival is why an object can't be judged before what the set brings is there.
type arrival struct{ why string }

func (a *arrival) Error() string { return a.why }

const (
	whyGround = "its kind or its namespace arrives with this set"
	whyKind   = "the server refuses it as its kind is defined now; the set changes the definition"
	whyNeeds  = "the server refuses it without what arrives with this set"
)

// fails makes the step one that Apply refuses.
func (s Step) fails(i Intent, err error) Step {
	s.Intent, s.err, s.Why = i, err, strings.TrimPrefix(err.Error(), s.Ref.String()+": ")
	return s
}

// A trial is what a dry run of one object told.
type trial struct {
	before, after *unstructured.Unstructured // before is nil when there is none, or when it may not be read
	unread        bool
	ruling        ruling // where there were conflicts
	unseen        string // why there is no after, when the object can be written all the same
}

// try dry-runs the write of an object onto the version that it reads.
func (r *run) try(ctx context.Context, o order) (trial, error) {
	var t trial
	at, err := r.cluster.full(ctx, o.ref)
	if meta.IsNoMatchError(err) && r.arrives(o.ref) {
		return t, final{&arrival{whyGround}}
	}
	if meta.IsNoMatchError(err) {
		return t, final{r.unmapped(o.ref, err)}
	}
	if err != nil {
		return t, err
	}
	t.before, err = at.Get(ctx, o.ref.Name, metav1.GetOptions{})
	switch Classify(err) {
	case ClassNone:
	case ClassNotFound, ClassNoMatch:
		t.before = nil
	case ClassForbidden:
		t.before, t.unread = nil, true
	default:
		return t, err
	}
	err = r.tryOnto(ctx, at, o, &t)
	c := Classify(err)
	switch {
	case err == nil:
	case apierrors.IsNotFound(err) && r.arrives(o.ref):
		return t, final{&arrival{whyGround}}
	case r.groundArrives(o.ref, c) && c == ClassInvalid:
		return t, final{&arrival{whyKind}}
	case r.groundArrives(o.ref, c):
		return t, final{&arrival{whyNeeds}}
	case strings.Contains(err.Error(), "does not support dry run"):
		t.after, t.unseen = nil, err.Error()
		return t, nil
	}
	return t, err
}

// tryOnto dry-runs the write onto what was read, by force where the conflicts may be taken or would be migrated before.
func (r *run) tryOnto(ctx context.Context, at dynamic.ResourceInterface, o order, t *trial) error {
	version := ""
	if t.before != nil {
		version = t.before.GetResourceVersion()
	}
	moving, err := r.migrationOf(t.before)
	if err != nil {
		return err
	}
	t.after, err = r.dryPatch(ctx, at, o, version, false)
	if Classify(err) == ClassConflict {
		conflicts := slices.DeleteFunc(conflictsOf(err), func(c Conflict) bool { return moving.has(c.Manager) })
		decided, ok := ruling{order: o}, moving != nil
		if version != "" && len(conflicts) > 0 {
			decided, ok = r.rule(o, conflicts, t.before)
		}
		if !ok {
			return &ConflictError{Ref: o.ref, Conflicts: conflicts, Err: err}
		}
		t.ruling = decided
		t.after, err = r.dryPatch(ctx, at, decided.order, version, decided.force || moving != nil)
	}
	if err != nil || moving == nil {
		return err
	}
	dropped, err := moving.dropMigrated(t.after, r.opts.FieldManager)
	if err != nil || !dropped {
		return err
	}
	// The server fills in again what it defaults, and judges the rest.
	t.after.SetResourceVersion(version)
	t.after, err = at.Update(ctx, t.after, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: r.opts.FieldManager})
	return err
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
		return slices.ContainsFunc(r.orders, func(o order) bool {
			return tierOf(o.ref) == tierKinds && broughtBy(o.body) == Ref{Group: ref.Group, Kind: ref.Kind} && !r.isCurrent(o)
		})
	}
	return false
}

// judge reads the step off a trial that the server allowed.
func (r *run) judge(s *Step, t trial) {
	s.force = t.ruling.force
	if len(t.ruling.left) > 0 {
		s.Why, s.lean = whyLeft(t.ruling.left), func() order { return t.ruling.order }
	}
	switch {
	case t.unread && s.uid != "":
		s.Intent, s.Why = WillConfigure, "it may not be read, so nobody compared it"
	case t.before == nil:
		s.Intent, s.Why, s.uid = WillCreate, t.unseen, ""
	case t.after == nil:
		s.Intent, s.Why, s.version = WillConfigure, t.unseen, t.before.GetResourceVersion()
	default:
		s.uid, s.version, s.Fields = t.before.GetUID(), t.before.GetResourceVersion(), diff(t.before, t.after)
		switch owner := t.before.GetAnnotations()[SetAnnotation]; {
		case !r.opts.Shared && owner != "" && owner != r.set.ID():
			s.Intent, s.Why = WillAdopt, "it is taken over from the set "+owner
		case !r.opts.Shared && !r.marked(t.before):
			s.Intent = WillAdopt
		case len(s.Fields) > 0:
			s.Intent = WillConfigure
		case entryOf(t.before, r.opts.FieldManager) != entryOf(t.after, r.opts.FieldManager):
			s.Intent, s.Why = WillConfigure, "its values stay; which of them are this set's is noted"
		default:
			s.Intent, s.compared = WillLeave, noted(t.before)
		}
	}
}

// noted is the metadata of an object, without its values.
func noted(o *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Generation: o.GetGeneration(), ManagedFields: o.GetManagedFields(),
	}}
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
