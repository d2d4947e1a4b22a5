package apply

import (
	"context"
	"errors"

	"k8s.io/client-go/kubernetes"
)

// EnsureSecret makes an Opaque Secret whose values are made once: it creates it when it is not there, adds the keys that are missing
// and never writes over a key that is present. It returns the names of the keys that it minted, sorted. A present but empty key is an
// error, because neither keeping nor replacing it can be right. Every read error but "not found" ends it before anything is minted.
func EnsureSecret(ctx context.Context, client kubernetes.Interface, namespace, name string, labels map[string]string, keys map[string]func() ([]byte, error)) (minted []string, err error) {
	return nil, errors.ErrUnsupported
}
