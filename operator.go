package jr2

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/preflight"
)

// operator applies the operator that all Instances of the cluster share, unless a newer one runs.
func (c *converge) operator(ctx context.Context) error {
	input, ours, err := c.decideOperator(ctx)
	if err != nil || !ours {
		return err
	}
	return c.bringOperator(ctx, input)
}

// decideOperator says whether the operator is this Instance's to apply, and as what.
func (c *converge) decideOperator(ctx context.Context) (input render.Input, ours bool, err error) {
	if !render.ManagesOperator(c.input) {
		c.tell(OperatorNotManaged{})
		c.noteMissingKinds(ctx)
		return input, false, nil
	}
	deployed, err := c.deployedOperator(ctx)
	if err != nil {
		return input, false, err
	}
	c.met = &metOperator{deployed}
	input = c.input
	if version := versionOf(deployed); version != "" {
		order, err := render.CompareVersions(version, c.inst.KitVersion)
		switch {
		case err != nil:
			return input, false, fmt.Errorf("the operator in %s: %w", names.OperatorNamespace, err)
		case order > 0:
			c.leaveOperator(deployed)
			return input, false, nil
		case order == 0 && deployed.Status.AvailableReplicas > 0:
			keepOperatorPod(&input, deployed)
		}
	}
	return input, true, nil
}

// keepOperatorPod leaves the image and the priority class of a working operator of the same version as the Instance that brought it chose
// them: with two Instances of different choice, each converge would otherwise roll the operator of the other.
func keepOperatorPod(input *render.Input, deployed *appsv1.Deployment) {
	pod := deployed.Spec.Template.Spec
	input.OperatorClass = pod.PriorityClassName
	for _, container := range pod.Containers {
		if container.Name == names.ManagerContainer {
			input.Kit.Operator = container.Image
		}
	}
}

// leaveOperator tells of a newer operator. Whether it works is its own Instance's business, but all Instances stand on it.
func (c *converge) leaveOperator(deployed *appsv1.Deployment) {
	c.tell(OperatorLeftAlone{Deployed: versionOf(deployed), Kit: c.inst.KitVersion})
	if deployed.Status.AvailableReplicas == 0 {
		c.note(preflight.Finding{
			Severity: preflight.Warn, Code: preflight.CodeOperatorDown, Object: "Deployment " + names.OperatorNamespace + "/" + names.OperatorDeployment,
			Message: fmt.Sprintf("the operator v%s has no available pod, so no Sandbox is made on this cluster — converge the Instance that brought it, or delete Deployment %s/%s and converge again",
				versionOf(deployed), names.OperatorNamespace, names.OperatorDeployment),
			Fix: "kubectl -n " + names.OperatorNamespace + " describe deployment " + names.OperatorDeployment,
		})
	}
}

// bringOperator applies again when another Instance changed the operator's inventory meanwhile: the lock is the Instance's, and the operator
// belongs to all. Each converge of the cluster can be in the way once and then finds nothing to change.
func (c *converge) bringOperator(ctx context.Context, input render.Input) error {
	set, opts, err := operatorSet(input, c.opts.Adopt)
	if err != nil {
		return err
	}
	for tries := 0; ; tries++ {
		err := c.apply(ctx, layerOperator, set, opts)
		if err == nil {
			return c.rollout(ctx, render.OperatorLayer(input))
		}
		if tries == 10 || !errors.Is(err, apply.ErrInventoryMoved) {
			return err
		}
	}
}

// A metOperator is the operator as it was when it was decided whose it is to apply; the Deployment is nil when there was none.
type metOperator struct{ deployed *appsv1.Deployment }

// knownOperator is the operator as it was met, for a look that comes after that decision, as in a Check; else it is read.
func (c *converge) knownOperator(ctx context.Context) (*appsv1.Deployment, error) {
	if c.met != nil {
		return c.met.deployed, nil
	}
	return c.deployedOperator(ctx)
}

// deployedOperator returns nil when there is none.
func (c *converge) deployedOperator(ctx context.Context) (*appsv1.Deployment, error) {
	deployments := c.cluster.client.AppsV1().Deployments(names.OperatorNamespace)
	deployment, err := deployments.Get(ctx, names.OperatorDeployment, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the operator's Deployment: %w", err)
	}
	return deployment, nil
}

// versionOf is the version in the operator's label, or "" when there is no operator or no label.
func versionOf(deployed *appsv1.Deployment) string {
	if deployed == nil {
		return ""
	}
	return deployed.Labels[names.LabelVersion]
}
