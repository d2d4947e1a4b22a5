package preflight

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CodeServiceAccount is the stable code of a finding about the default service account of a namespace.
const CodeServiceAccount = "service-account-missing"

// accountPatience is how long a namespace may be without its default service account, which a controller makes within moments.
const accountPatience = time.Minute

// DefaultAccount looks at the service account that pods get which name none, as those of Sandboxes do: it must be there, or the API server lets no
// such pod in, and a Secret that it names for pulling images must be there to be of any use. made is when the namespace was made: in a young one the
// account is on its way, and nothing is said. Whether pods get its token is no matter: those of Sandboxes say that they do not.
//
// An error says that somebody could not look; what was found until then comes with it.
func DefaultAccount(ctx context.Context, accounts ServiceAccountGetter, secrets SecretGetter, namespace string, made, now time.Time) ([]Finding, error) {
	const name = "default"
	object := "ServiceAccount " + namespace + "/" + name
	account, err := accounts.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if now.Sub(made) < accountPatience {
			return nil, nil
		}
		fix := fmt.Sprintf("kubectl -n %s create serviceaccount %s", namespace, name)
		return []Finding{{
			Severity: Warn, Code: CodeServiceAccount, Object: object, Fix: fix,
			Message: fmt.Sprintf("%s does not exist, although its namespace has been there for longer than the cluster's controllers take to make it, so no pod of a Sandbox is let in: %v — %s", object, err, fix),
		}}, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", object, err)
	}
	var findings []Finding
	for _, secret := range secretNames(account.ImagePullSecrets) {
		_, err := secrets.Get(ctx, secret, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			fix := fmt.Sprintf("kubectl -n %s create secret docker-registry %s --docker-server=... --docker-username=... --docker-password=...", namespace, secret)
			findings = append(findings, Finding{
				Severity: Warn, Code: CodePullSecret, Object: "Secret " + namespace + "/" + secret, Fix: fix,
				Message: fmt.Sprintf("%s names Secret %s/%s for pulling images, which does not exist: pods pull without it — create it, or take its name away: %s", object, namespace, secret, fix),
			})
		case err != nil:
			return findings, fmt.Errorf("read Secret %s/%s that %s names: %w", namespace, secret, object, err)
		}
	}
	return findings, nil
}
