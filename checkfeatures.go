package jr2

import (
	"context"
	"slices"

	"jr2.dev/jr2/preflight"
)

// podFeatures asks whether the API server keeps what the pods of Sandboxes can't do without. Where no Sandbox is made, none has an image volume.
func (c *converge) podFeatures(ctx context.Context, pods preflight.PodCreator) ([]preflight.Finding, error) {
	findings, err := preflight.PodFeatures(ctx, pods, c.cluster.context, c.server)
	if c.inst.ComposesSandbox() {
		return findings, err
	}
	return slices.DeleteFunc(findings, func(f preflight.Finding) bool { return f.Code == preflight.CodeImageVolumes }), err
}
