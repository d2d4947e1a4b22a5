package preflight_test

import (
	"context"
	"fmt"

	"jr2.dev/jr2/preflight"
)

// A program adds a check of its own to those of this package, and has them run together.
func ExampleRun() {
	freeze := preflight.NewCheck("freeze", func(context.Context) ([]preflight.Finding, error) {
		return []preflight.Finding{{
			Severity: preflight.Refuse, Code: "acme-freeze", Object: "Namespace team-a",
			Message: "refusing: team-a is frozen until Monday — ask the release desk to lift it",
			Fix:     "ask the release desk to lift the freeze of team-a",
		}}, nil
	}, "acme-freeze")
	budget := preflight.NewCheck("budget", func(context.Context) ([]preflight.Finding, error) {
		return nil, fmt.Errorf("the billing service does not answer")
	}, "acme-budget")

	findings, err := preflight.Run(context.Background(), []preflight.Check{freeze, budget}, preflight.RunOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, finding := range findings {
		fmt.Println(finding.Severity, finding.Code, finding.Message)
	}
	fmt.Println(preflight.Refused(findings) != nil)
	// Output:
	// refuse acme-freeze refusing: team-a is frozen until Monday — ask the release desk to lift it
	// note not-looked-at budget: nobody could look: the billing service does not answer
	// true
}
