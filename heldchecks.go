package jr2

import (
	"context"
	"errors"

	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/preflight"
)

// heldFindings checks what the rules of held secrets need the cluster for, and what they need of the CA bundle.
func (c *converge) heldFindings(ctx context.Context) ([]preflight.Finding, error) {
	core := c.cluster.client.CoreV1()
	findings, err := preflight.HarnessReach(ctx, core.Secrets(c.cluster.namespace), core.ConfigMaps(c.cluster.namespace), c.inst, c.cluster.namespace)
	if err != nil {
		return findings, err
	}
	var large *render.TrustSizeError
	if errors.As(render.CheckTrust(c.input), &large) {
		findings = append(findings, preflight.Finding{
			Severity: preflight.Refuse, Code: preflight.CodeTrustTooLarge, Object: "Instance " + c.inst.Name, Message: large.Error(),
			Fix: "leave the public authorities out of the file that harness.caBundle names",
		})
	}
	return findings, nil
}
