package jr2_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"jr2.dev/jr2"
	"jr2.dev/jr2/preflight"
)

// TestNothingOfAFolderRunsUnlessItIsTrusted: the zero Options take a folder for data, in every verb, also where the code is evaluated in a process
// of its own.
func TestNothingOfAFolderRunsUnlessItIsTrusted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wrote := filepath.Join(dir, "wrote")
	for name, text := range map[string]string{
		"jr2.config.ts": `export default { name: "guest" };`, "tsconfig.json": "{}",
		"node_modules/typescript/package.json": `{"bin": {"tsc": "t.js"}}`,
		"node_modules/typescript/t.js":         `require("fs").writeFileSync(__dirname + "/../../wrote", "ran")`,
	} {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	options := jr2.Options{Dir: dir, Kubeconfig: kubeconfigOfNowhere(t), Yes: true}
	report, err := jr2.Check(t.Context(), options, preflight.Choice{})
	must(t, err)
	if !slices.ContainsFunc(report.Findings, func(f preflight.Finding) bool {
		return f.Code == preflight.CodeTypesUnchecked && f.Severity == preflight.Note
	}) {
		t.Errorf("the report does not say that types were not checked: %+v", report.Findings)
	}
	result, _ := jr2.Converge(t.Context(), options)
	if len(result.Findings) != 1 || result.Findings[0].Code != preflight.CodeTypesUnchecked {
		t.Errorf("the result does not say that types were not checked: %+v", result.Findings)
	}
	_, _ = jr2.MakePlan(t.Context(), options)
	_, _ = jr2.MinimalRoles(t.Context(), options, "guest")
	_, _ = jr2.Down(t.Context(), jr2.DownOptions{Dir: dir, Kubeconfig: options.Kubeconfig, Yes: true})
	_, _ = jr2.Run(t.Context(), jr2.RunOptions{Dir: dir, Kubeconfig: options.Kubeconfig, Workflow: "w"})
	_, _ = jr2.Runs(t.Context(), jr2.RunsOptions{Dir: dir, Kubeconfig: options.Kubeconfig})
	if _, err := os.Stat(wrote); err == nil {
		t.Error("a program of the folder ran")
	}
}

// kubeconfigOfNowhere names a cluster at which nobody listens.
func kubeconfigOfNowhere(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(path, []byte(`apiVersion: v1
kind: Config
current-context: nowhere
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: nowhere, context: {cluster: nowhere}}]
`), 0o600))
	return path
}
