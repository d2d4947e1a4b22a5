package provision

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/internal/names"
)

// orphanAge is how old a token without a Sandbox must be before it is one: a quota may keep its Sandbox out for a while, but its Provision
// is then at work.
const orphanAge = time.Hour

// SweepTokens deletes the tokens whose Provision was killed after it wrote them and before it wrote their Sandboxes: Secrets with the label
// of a token, without an owner, older than an hour, of no Sandbox. It reads no values of Secrets. It returns the names of what it deleted,
// also with an error.
func SweepTokens(ctx context.Context, cfg *rest.Config, namespace string) ([]string, error) {
	c, err := connect(cfg, namespace)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(quiet(cfg))
	if err != nil {
		return nil, err
	}
	secrets := objects.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)
	all, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: names.LabelToken})
	if err != nil {
		return nil, fmt.Errorf("list the tokens of namespace %q: %w", namespace, err)
	}
	var swept []string
	for i := range all.Items {
		secret := &all.Items[i]
		if len(secret.OwnerReferences) > 0 || time.Since(secret.CreationTimestamp.Time) < orphanAge {
			continue
		}
		_, err := c.sandboxes.Get(ctx, secret.Labels[names.LabelToken], metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			if err != nil {
				return swept, wrap(err, "read", "Sandbox", secret.Labels[names.LabelToken])
			}
			continue
		}
		err = secrets.Delete(ctx, secret.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion}})
		switch {
		case err == nil:
			swept = append(swept, secret.Name)
		case !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
			return swept, wrap(err, "delete", "Secret", secret.Name)
		}
	}
	return swept, nil
}
