package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// mintAttempts bounds how often a write that met another writer is tried again from a new read.
const mintAttempts = 8

// mintManager owns the minted fields, so that an Apply of the same Secret never takes them for its own and drops them.
const mintManager = "jr2-mint"

// An EmptyKeyError is a key of a minted Secret that is present without a value.
type EmptyKeyError struct {
	Ref  Ref
	Keys []string
}

func (e *EmptyKeyError) Error() string {
	return fmt.Sprintf("%s: %s present but empty; give it a value, or remove it to have a new one made", e.Ref, strings.Join(e.Keys, ", "))
}

// SecretOptions say how EnsureSecret works.
type SecretOptions struct {
	// Labels are set on a Secret that is created, and left alone on one that exists. One that exists and carries them all is taken for the caller's.
	Labels map[string]string
	// Adopt takes over a Secret that exists, that does not carry the labels, and of which the server notes no field of this engine.
	Adopt bool
}

// EnsureSecret makes an Opaque Secret whose values are made once: it creates it when it is not there, adds the keys that are missing
// and never writes over a key that is present. It returns the names of the keys that it minted, sorted. A present but empty key is an
// *EmptyKeyError, because neither keeping nor replacing it can be right; a Secret that somebody else made is an *UnownedError, because its values are
// known to others. Every read error but "not found" ends it before anything is minted. A Generator's Generate can be a value of keys; in a Set,
// MintAnnotation says the same.
func EnsureSecret(ctx context.Context, client kubernetes.Interface, namespace, name string, keys map[string]func() ([]byte, error), opts SecretOptions) (minted []string, err error) {
	m := &mintage{
		secrets: client.CoreV1().Secrets(namespace),
		ref:     Ref{Version: "v1", Kind: "Secret", Namespace: namespace, Name: name},
		secret: &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: opts.Labels},
			Type:       corev1.SecretTypeOpaque,
		},
		recipes: map[string]recipe{},
	}
	m.claim = func(now *corev1.Secret) error {
		if opts.Adopt {
			return nil
		}
		return ClaimSecret(now, opts.Labels)
	}
	for k, f := range keys {
		m.recipes[k] = recipe{make: f}
	}
	got, err := m.ensure(ctx)
	switch {
	case isMintError(err) || errors.As(err, new(*UnownedError)):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s: %w", m.ref, err)
	}
	return got.keys, nil
}

// ClaimSecret is an *UnownedError for a Secret that neither carries these labels, of which there is at least one, nor has a field that the server notes
// as one of this engine's.
func ClaimSecret(now *corev1.Secret, labels map[string]string) error {
	kin := len(labels) > 0
	for key, value := range labels {
		kin = kin && now.Labels[key] == value
	}
	ours := slices.ContainsFunc(managersOf(now), func(manager string) bool { return manager == mintManager || manager == DefaultFieldManager })
	if kin || ours {
		return nil
	}
	return &UnownedError{Ref: Ref{Version: "v1", Kind: "Secret", Namespace: now.Namespace, Name: now.Name}, Managers: managersOf(now)}
}
