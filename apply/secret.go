package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// mintAttempts bounds how often a write that met another writer is tried again from a new read.
const mintAttempts = 8

// An EmptyKeyError is a key of a minted Secret that is present without a value.
type EmptyKeyError struct {
	Ref  Ref
	Keys []string
}

func (e *EmptyKeyError) Error() string {
	return fmt.Sprintf("%s: %s present but empty; give it a value, or remove it to have a new one made", e.Ref, strings.Join(e.Keys, ", "))
}

// EnsureSecret makes an Opaque Secret whose values are made once: it creates it when it is not there, adds the keys that are missing
// and never writes over a key that is present. It returns the names of the keys that it minted, sorted. A present but empty key is an
// *EmptyKeyError, because neither keeping nor replacing it can be right. Every read error but "not found" ends it before anything is
// minted. Labels are set on a Secret that it creates and left alone on one that exists.
func EnsureSecret(ctx context.Context, client kubernetes.Interface, namespace, name string, labels map[string]string, keys map[string]func() ([]byte, error)) (minted []string, err error) {
	ref := Ref{Version: "v1", Kind: "Secret", Namespace: namespace, Name: name}
	secrets := client.CoreV1().Secrets(namespace)
	values := map[string][]byte{} // made at most once for each key, however often the write is tried
	for range mintAttempts {
		now, err := secrets.Get(ctx, name, metav1.GetOptions{})
		absent := Classify(err) == ClassNotFound
		if err != nil && !absent {
			return nil, fmt.Errorf("%s: it could not be read, so nothing was minted: %w", ref, err)
		}
		var held map[string][]byte
		if !absent {
			held = now.Data
		}
		missing, err := missingKeys(ref, held, keys)
		if err != nil || len(missing) == 0 && !absent {
			return nil, err
		}
		add, err := mint(ref, missing, keys, values)
		if err != nil {
			return nil, err
		}
		if absent {
			_, err = secrets.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
				Type:       corev1.SecretTypeOpaque,
				Data:       add,
			}, metav1.CreateOptions{FieldManager: mintManager})
		} else {
			err = addKeys(ctx, client, now, add)
		}
		switch Classify(err) {
		case ClassNone:
			return missing, nil
		case ClassAlreadyExists, ClassStale, ClassNotFound:
			if err := namespaceMissing(err); err != nil {
				return nil, fmt.Errorf("%s: %w", ref, err)
			}
			continue // somebody else was faster: read again
		}
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	return nil, fmt.Errorf("%s: it changed %d times while keys were added to it", ref, mintAttempts)
}

// mintManager owns the minted fields, so that an Apply of the same Secret never takes them for its own and drops them.
const mintManager = "jr2-mint"

// missingKeys lists the keys that the Secret lacks, sorted.
func missingKeys(ref Ref, held map[string][]byte, keys map[string]func() ([]byte, error)) ([]string, error) {
	var missing, empty []string
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		value, ok := held[k]
		switch {
		case !ok:
			missing = append(missing, k)
		case len(value) == 0:
			empty = append(empty, k)
		}
	}
	if len(empty) > 0 {
		return nil, &EmptyKeyError{Ref: ref, Keys: empty}
	}
	return missing, nil
}

func mint(ref Ref, missing []string, keys map[string]func() ([]byte, error), values map[string][]byte) (map[string][]byte, error) {
	add := map[string][]byte{}
	for _, k := range missing {
		if values[k] == nil {
			value, err := keys[k]()
			if err == nil && len(value) == 0 {
				err = errors.New("it made an empty value")
			}
			if err != nil {
				return nil, fmt.Errorf("%s: minting %s: %w", ref, k, err)
			}
			values[k] = value
		}
		add[k] = values[k]
	}
	return add, nil
}

// addKeys adds keys to exactly the Secret that was read.
func addKeys(ctx context.Context, client kubernetes.Interface, now *corev1.Secret, add map[string][]byte) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": now.UID, "resourceVersion": now.ResourceVersion},
		"data":     add,
	})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Secrets(now.Namespace).Patch(ctx, now.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: mintManager})
	return err
}

// namespaceMissing tells a create in a namespace that is not there from a patch of a Secret that has just gone.
func namespaceMissing(err error) error {
	if err != nil && Classify(err) == ClassNotFound && strings.Contains(err.Error(), "namespaces ") {
		return err
	}
	return nil
}
