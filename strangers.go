package jr2

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/render"
)

// strangers looks, before the first write, whether somebody else has objects under the names of the Instance's in a namespace into which nothing was
// converged yet: the namespace would be labelled and the operator applied before a converge comes upon them. Once the record of the set is there they
// are met where they are to be written. What may not be looked at is the affair of the check of rights.
func (c *converge) strangers(ctx context.Context) error {
	if c.homeless {
		return nil
	}
	core := c.cluster.client.CoreV1()
	_, err := core.ConfigMaps(c.cluster.namespace).Get(ctx, apply.InventoryName(setInstance), metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return nil
	}
	kept := []string{names.InstanceSecret}
	if render.Holds(c.input) {
		kept = append(kept, names.HeldCA)
	}
	var errs []error
	for _, name := range kept {
		errs = append(errs, c.strangersSecret(ctx, core.Secrets(c.cluster.namespace), name))
	}
	_, _, err = c.publisher().Current(ctx)
	if err = unowned(err); errors.As(err, new(*apply.UnownedError)) {
		errs = append(errs, err)
	}
	outline := c.sketch()
	outline.record = c.kitRecord()
	if set, opts, err := outline.instanceSet(); err == nil { // else the step that renders it tells
		opts.Prune = false
		errs = append(errs, notForbidden(apply.CheckOwners(ctx, c.cluster.config, set, outline.applying(opts))))
	}
	return errors.Join(errs...)
}

func (c *converge) strangersSecret(ctx context.Context, secrets typedcorev1.SecretInterface, name string) error {
	secret, err := secretIfAny(ctx, secrets, name)
	if err != nil || secret == nil {
		return notForbidden(err)
	}
	return c.claim(secret)
}

func notForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// passes keeps what a plan comes upon that is somebody else's, so that the plan goes on and says the rest too. A check has a finding of it.
func (p *planning) passes(err error) error {
	if p.whole || !errors.As(err, new(*apply.UnownedError)) {
		return err
	}
	p.plan.inTheWay = append(p.plan.inTheWay, err)
	p.plan.InTheWay = append(p.plan.InTheWay, err.Error())
	return nil
}
