package apply

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// mintStep says what is to be done to a minted Secret, without making a value. Where the caller may not read it, a create that is not stored
// tells whether it is there.
func (r *run) mintStep(ctx context.Context, o order) Step {
	s := Step{Ref: o.ref}
	if !r.mayNotRead(o) {
		if err := r.seen(ctx, o.ref); err != nil {
			return s.fails(WillFail, err)
		}
	}
	now, rec := r.live.get(o.ref), r.inv.records[o.ref.key()]
	if now == nil {
		return r.triedMint(ctx, o, s, rec)
	}
	s.uid = now.UID
	if err := r.claim(o.ref, now); err != nil {
		if errors.As(err, new(*UnownedError)) {
			s.Fields = r.readMint(ctx, o, s, rec).Fields // what an adoption would add
		}
		return s.fails(WillConflict, err)
	}
	switch {
	case r.proven(o, now, rec):
		s.Intent = WillLeave
		return s
	case now.DeletionTimestamp != nil:
		s.Intent, s.Why = WillMint, strings.Join(o.mint.made(), ", ")+"; the old one is being deleted"
		return s
	}
	return r.readMint(ctx, o, s, rec)
}

// readMint says what the keys of a Secret show that is there.
func (r *run) readMint(ctx context.Context, o order, s Step, rec record) Step {
	var held *corev1.Secret
	err := r.retry.do(ctx, o.ref, func(ctx context.Context) (err error) {
		held, err = r.cluster.typed.CoreV1().Secrets(o.ref.Namespace).Get(ctx, o.ref.Name, metav1.GetOptions{})
		return err
	})
	switch Classify(err) {
	case ClassNone:
		return r.mintedStep(o, held)
	case ClassNotFound: // it has just gone
		return r.triedMint(ctx, o, Step{Ref: o.ref}, rec)
	case ClassForbidden:
		s.Intent, s.Why = WillLeave, whyUnread
		return s
	}
	return s.fails(WillFail, r.tellMint(ctx, o, err))
}

// triedMint says what a dry run of the create shows.
func (r *run) triedMint(ctx context.Context, o order, s Step, rec record) Step {
	retry := r.retry
	retry.limits.Quota = -1
	s.Intent, s.Why = WillMint, strings.Join(o.mint.made(), ", ")
	if rec.UID != "" {
		s.Why += "; " + whyMadeAgain
	}
	var taken bool
	err := retry.do(ctx, o.ref, func(ctx context.Context) (err error) {
		taken, err = r.mintage(o, true).taken(ctx, o.mint)
		if r.arrives(o.ref) && apierrors.IsNotFound(err) {
			return nil // its namespace comes with the set
		}
		return err
	})
	switch {
	case taken && r.mayNotRead(o):
		s.Intent, s.Why = WillLeave, whyUnread
	case taken: // somebody has just made it
		return r.readMint(ctx, o, Step{Ref: o.ref}, rec)
	case Classify(err) == ClassQuotaWait:
		s.Why += "; " + whyQuota + errors.Unwrap(err).Error()
	case err != nil:
		return s.fails(WillFail, r.tellMint(ctx, o, err))
	}
	return s
}

// mintedStep says what is to be done to a minted Secret that was read. It makes no value.
func (r *run) mintedStep(o order, now *corev1.Secret) Step {
	s := Step{Ref: o.ref, uid: now.UID, version: now.ResourceVersion}
	m := r.mintage(o, false)
	missing, given, err := m.lacks(now.Data)
	if err != nil {
		return s.fails(WillFail, err)
	}
	adopts := m.owner != "" && now.Annotations[SetAnnotation] != m.owner
	switch {
	case len(missing) > 0:
		s.Intent, s.Why = WillMint, strings.Join(missing, ", ")
	case adopts:
		s.Intent = WillAdopt
	case len(given) > 0:
		s.Intent = WillConfigure
	default:
		s.Intent = WillLeave
		return s
	}
	if err := m.fixed(now, slices.Concat(missing, given)); err != nil {
		return s.fails(WillFail, err)
	}
	after := now.DeepCopy()
	for _, k := range slices.Concat(missing, given) {
		if after.Data == nil {
			after.Data = map[string][]byte{}
		}
		after.Data[k] = []byte("x") // only that there is a value shows
	}
	if adopts {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, SetAnnotation, m.owner)
	}
	s.Fields, err = diffSecrets(now, after)
	if err != nil {
		return s.fails(WillFail, err)
	}
	return s
}

func diffSecrets(before, after *corev1.Secret) ([]FieldChange, error) {
	var sides []*unstructured.Unstructured
	for _, secret := range []*corev1.Secret{before, after} {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret)
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{Object: fields}
		u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		sides = append(sides, u)
	}
	return diff(sides[0], sides[1]), nil
}
