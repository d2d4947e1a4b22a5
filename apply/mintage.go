package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// A recipe says where the value of a key comes from.
type recipe struct {
	make func() ([]byte, error)
	from string // the key of the private key of which it is the public one; "" for a value that is made
}

// A mintage makes the values of one Secret. It is kept over the tries of one write.
type mintage struct {
	secrets typedcorev1.SecretInterface
	ref     Ref
	// secret is what is created, with the given values and without those to be made.
	secret  *corev1.Secret
	recipes map[string]recipe
	// owner, unless empty, is the mark of the set that an existing Secret gets.
	owner string
	// claim is asked whether a Secret that is there may be used at all; nil says yes.
	claim func(now *corev1.Secret) error
	// allow is asked before each write, with what is there, or nil; nil allows all.
	allow func(now *corev1.Secret) error

	absent bool              // nothing has the name, as far as anybody saw
	lost   bool              // a write may have been done, and its answer was lost
	values map[string][]byte // made at most once for each key, however often the write is tried
}

// minted is what a mintage came to.
type minted struct {
	uid     types.UID
	version string
	created bool
	keys    []string // that were made, sorted
	given   []string // that were added with the values which the set gives, sorted
	adopted bool     // the mark of the set was put on it
}

// An unreadable error is a Secret that may be there and could not be read.
type unreadable struct{ error }

func (u unreadable) Unwrap() error { return u.error }

// ensure creates the Secret, or adds what it lacks. Only a clear "not found" leads to a create, and a create can't replace anything.
func (m *mintage) ensure(ctx context.Context) (*minted, error) {
	for range mintAttempts {
		if m.absent {
			got, err := m.create(ctx)
			switch Classify(err) {
			case ClassAlreadyExists: // somebody else was faster, or this mintage was, and did not hear of it
				m.absent = false
			case ClassStale:
				continue
			default:
				return got, err
			}
		}
		now, err := m.secrets.Get(ctx, m.ref.Name, metav1.GetOptions{})
		if Classify(err) == ClassNotFound {
			m.absent = true
			continue
		}
		if err != nil {
			return nil, unreadable{fmt.Errorf("it could not be read, so nothing was minted: %w", err)}
		}
		got, err := m.complete(ctx, now)
		if c := Classify(err); c == ClassStale || c == ClassNotFound {
			continue
		}
		return got, err
	}
	return nil, &ObjectError{Ref: m.ref, Class: ClassStale, Err: fmt.Errorf("it changed %d times while keys were added to it", mintAttempts)}
}

func (m *mintage) create(ctx context.Context) (*minted, error) {
	if err := m.ask(nil); err != nil {
		return nil, err
	}
	keys := slices.Sorted(maps.Keys(m.recipes))
	add, err := m.make(nil, keys)
	if err != nil {
		return nil, err
	}
	body := m.secret.DeepCopy()
	body.Data = maps.Clone(m.secret.Data)
	if body.Data == nil {
		body.Data = map[string][]byte{}
	}
	maps.Copy(body.Data, add)
	got, err := m.secrets.Create(context.WithValue(ctx, refKey{}, m.ref), body, m.createOptions())
	if m.note(err); err != nil {
		return nil, err
	}
	return &minted{uid: got.UID, version: got.ResourceVersion, created: true, keys: keys}, nil
}

func (m *mintage) createOptions() metav1.CreateOptions {
	return metav1.CreateOptions{FieldManager: mintManager, FieldValidation: metav1.FieldValidationStrict}
}

// complete adds to exactly the Secret that was read what it lacks.
func (m *mintage) complete(ctx context.Context, now *corev1.Secret) (*minted, error) {
	if now.DeletionTimestamp != nil {
		return nil, &ObjectError{Ref: m.ref, Class: ClassBeingDeleted, Err: errors.New("it is being deleted")}
	}
	if m.claim != nil {
		if err := m.claim(now); err != nil {
			return nil, err
		}
	}
	missing, given, err := m.lacks(now.Data)
	if err != nil {
		return nil, err
	}
	got := &minted{uid: now.UID, version: now.ResourceVersion, given: given}
	got.adopted = m.owner != "" && now.Annotations[SetAnnotation] != m.owner
	if m.lost {
		got.keys = m.mine(now.Data)
	}
	if len(missing)+len(given) == 0 && !got.adopted {
		return got, nil
	}
	if err := m.ask(now); err != nil {
		return nil, err
	}
	if err := m.fixed(now, slices.Concat(missing, given)); err != nil {
		return nil, err
	}
	add, err := m.make(now.Data, missing)
	if err != nil {
		return nil, err
	}
	for _, k := range given {
		add[k] = m.secret.Data[k]
	}
	after, err := m.patch(ctx, now, add, got.adopted)
	if m.note(err); err != nil {
		return nil, err
	}
	got.version, got.keys = after.ResourceVersion, slices.Sorted(slices.Values(slices.Concat(got.keys, missing)))
	return got, nil
}

// patch writes to exactly the Secret that was read.
func (m *mintage) patch(ctx context.Context, now *corev1.Secret, add map[string][]byte, adopt bool) (*corev1.Secret, error) {
	meta := map[string]any{"uid": now.UID, "resourceVersion": now.ResourceVersion}
	if adopt {
		meta["annotations"] = map[string]any{SetAnnotation: m.owner}
	}
	body := map[string]any{"metadata": meta}
	if len(add) > 0 {
		body["data"] = add
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return m.secrets.Patch(context.WithValue(ctx, refKey{}, m.ref), now.Name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: mintManager})
}

func (m *mintage) ask(now *corev1.Secret) error {
	if m.allow == nil {
		return nil
	}
	return m.allow(now)
}

// note remembers that a write may have been done though nobody heard of it.
func (m *mintage) note(err error) {
	switch Classify(err) {
	case ClassUnavailable, ClassCanceled, ClassUnknown:
		m.lost = true
	}
}

// mine lists the keys whose value is the one that this mintage made, in a write whose answer was lost.
func (m *mintage) mine(held map[string][]byte) []string {
	var keys []string
	for _, k := range slices.Sorted(maps.Keys(m.values)) {
		if bytes.Equal(held[k], m.values[k]) {
			keys = append(keys, k)
		}
	}
	return keys
}

// lacks lists the keys that the Secret lacks, those to be made and those that are given, sorted.
func (m *mintage) lacks(held map[string][]byte) (missing, given []string, err error) {
	var empty []string
	for _, k := range slices.Sorted(maps.Keys(m.recipes)) {
		value, ok := held[k]
		switch {
		case !ok:
			missing = append(missing, k)
		case len(value) == 0:
			empty = append(empty, k)
		}
	}
	if len(empty) > 0 {
		return nil, nil, &EmptyKeyError{Ref: m.ref, Keys: empty}
	}
	for _, k := range slices.Sorted(maps.Keys(m.secret.Data)) {
		if _, ok := held[k]; !ok {
			given = append(given, k)
		}
	}
	for _, k := range missing {
		private := m.recipes[k].from
		public := k + publicSuffix
		if _, ok := held[public]; ok && m.recipes[public].from == k {
			return nil, nil, &MintError{Ref: m.ref, Keys: []string{k}, Err: fmt.Errorf("its public key %s is there, of a pair that is lost; remove it to have a new pair made", public)}
		}
		if _, ok := held[private]; ok && private != "" {
			if _, err := publicOf(held[private]); err != nil {
				return nil, nil, &MintError{Ref: m.ref, Keys: []string{k}, Err: fmt.Errorf("it is the public key of %s: %w", private, err)}
			}
		}
	}
	return missing, given, nil
}

// fixed refuses to add keys to a Secret that says of itself that it does not change.
func (m *mintage) fixed(now *corev1.Secret, keys []string) error {
	if len(keys) > 0 && now.Immutable != nil && *now.Immutable {
		return &MintError{Ref: m.ref, Keys: keys, Err: errors.New("the Secret is immutable")}
	}
	return nil
}

// make returns the values of the missing keys.
func (m *mintage) make(held map[string][]byte, missing []string) (map[string][]byte, error) {
	if m.values == nil {
		m.values = map[string][]byte{}
	}
	add := map[string][]byte{}
	for _, k := range missing { // a private key comes before its public one
		r := m.recipes[k]
		if private, ok := held[r.from]; ok && r.from != "" {
			r.make = func() ([]byte, error) { return publicOf(private) }
			m.values[k] = nil
		} else if r.from != "" {
			r.make = func() ([]byte, error) { return publicOf(m.values[r.from]) }
		}
		if m.values[k] == nil {
			value, err := r.make()
			if err == nil && len(value) == 0 {
				err = errors.New("it made an empty value")
			}
			if err != nil {
				return nil, &MintError{Ref: m.ref, Keys: []string{k}, Err: err}
			}
			m.values[k] = value
		}
		add[k] = m.values[k]
	}
	return add, nil
}
