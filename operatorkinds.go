package jr2

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
	"jr2.dev/jr2/preflight"
)

// A NoKindsError says that the cluster does not serve the kinds that a run writes: nothing has brought the operator.
type NoKindsError struct{ Context string }

func (e *NoKindsError) Error() string {
	return fmt.Sprintf("%s does not serve the kinds Sandbox and Repo of %s, so no Sandbox can be made — `jr2 up` brings them with the operator, "+
		"unless operator.manage is false in jr2.config.ts: whoever manages the operator brings them then", e.Context, v1alpha1.GroupVersion())
}

// servesKinds asks for exactly the group and version of the kinds, so that the answer "not found" is about nothing else.
func (c cluster) servesKinds(ctx context.Context) (bool, error) {
	version := v1alpha1.GroupVersion()
	err := c.client.Discovery().RESTClient().Get().AbsPath("/apis", version.Group, version.Version).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return true, err
}

// kindless puts a *NoKindsError in the place of the error of a request for Sandboxes, when the cluster says that it has no such kind.
func (c cluster) kindless(ctx context.Context, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	if served, asked := c.servesKinds(ctx); served || asked != nil {
		return err
	}
	return &NoKindsError{Context: c.context}
}

// noteMissingKinds warns that an operator that somebody else manages is not there. It may come later, so it is no refusal; who can't be
// asked says nothing.
func (c *converge) noteMissingKinds(ctx context.Context) {
	if !c.inst.ComposesSandbox() {
		return
	}
	if served, err := c.cluster.servesKinds(ctx); served || err != nil {
		return
	}
	c.note(preflight.Finding{
		Severity: preflight.Warn, Code: preflight.CodeOperatorDown, Object: "Deployment " + names.OperatorNamespace + "/" + names.OperatorDeployment,
		Message: fmt.Sprintf("operator.manage is false, and the cluster does not serve the kinds Sandbox and Repo of %s, so no Sandbox is made on it — "+
			"have the operator and its kinds brought there, or leave operator.manage out", v1alpha1.GroupVersion()),
		Fix: "leave operator.manage out of jr2.config.ts, or have the operator installed",
	})
}

// kinds wants the kinds that the run writes, before it writes anything.
func (r *workflowRun) kinds(ctx context.Context) error {
	if len(r.workflow.Workspaces) == 0 {
		return nil
	}
	if served, err := r.cluster.servesKinds(ctx); served || err != nil {
		return nil // who can't be asked may serve them: the first write tells
	}
	return &NoKindsError{Context: r.cluster.context}
}
