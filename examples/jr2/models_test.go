package main

import (
	"strings"
	"testing"
)

// testModels: who asks models, as the flags say. The nodes are simulated, so nobody is asked here.
func (s *stage) testModels(t *testing.T, w *workshop) {
	for want, args := range map[string][]string{
		"models were not asked — a plan and a check write nothing, and a converge asks each by a pod: anthropic/": {"check"},
		"models were not asked — there is no namespace yet to ask from: anthropic/":                               {"check", "--probe"},
	} {
		run := newSession()
		run.env = []string{"JR2_REGISTRY=" + w.registry.Host + "/team"}
		args = append(args, w.dir, "--kubeconfig", s.cluster.Kubeconfig(), "--context", "shared", "-n", "models-nowhere", "--only", "models-unprobed")
		_ = run.run(t.Context(), args...) // what is wrong beside it is another test's
		if !strings.Contains(run.out.String(), want) {
			t.Errorf("%q: no %q in\n%s%s", args, want, run.out, run.err)
		}
	}
}
