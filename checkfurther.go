package jr2

import (
	"context"

	"jr2.dev/jr2/preflight"
)

// further runs the checks that stand on nothing but what was read before: those of package preflight and the caller's.
func (c *converge) further(ctx context.Context) error {
	checks := append(c.ownChecks(), c.opts.Checks...)
	findings, err := preflight.Run(ctx, checks, preflight.RunOptions{Choice: c.choice})
	if err != nil {
		return err
	}
	for _, finding := range findings {
		if finding.Severity != preflight.Refuse {
			c.note(finding)
		}
	}
	return preflight.Refused(findings)
}

// ownChecks are those of package preflight that know the cluster from what they ask themselves.
func (c *converge) ownChecks() []preflight.Check {
	return []preflight.Check{
		preflight.NewCheck("rights", c.mayConverge, preflight.CodeRightMissing, preflight.CodeEscalation),
		c.servedAPIs(),
	}
}
