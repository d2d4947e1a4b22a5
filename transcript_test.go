package jr2_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/devcluster"
)

// declarations stand for the types of packages that the Instance of this test does not install.
const declarations = `declare module "@jr2/orchestrator" {
  export function defineConfig<T>(config: T): T;
  export const jr2Setup: any, workspace: any;
}
declare module "xstate" { export const setup: any; }
declare const process: { env: Record<string, string | undefined> };
`

// TestTranscript is the sample output of "Converge", line by line: the configuration at the head of the document, its two Workflows, one
// node with the label of the pool, Kubernetes v1.36.1, a real compiler, a real builder, a real registry.
func TestTranscript(t *testing.T) {
	t.Parallel()
	y := theYard(t, "amd64")
	w := loneWorld(t, node("jr2-control-plane", labeled("pool", "agents")))
	w.classes(t, "platform-critical", "batch-low")
	dir := folder(t, map[string]string{
		"jr2.config.ts":             exampleConfig(t),
		"workflows/hold.ts":         hold("3Gi", "1500m"),
		"workflows/ping.ts":         ping,
		"images/default/Dockerfile": "FROM " + y.base + "\nRUN true\n",
		".env":                      "JR2_REGISTRY=" + y.registry.Host + "/team\nJR2_GIT_TOKEN=token\n",
		"tsconfig.json":             `{"compilerOptions": {"strict": true, "module": "nodenext", "target": "es2022", "types": []}, "include": ["**/*.ts"]}`,
		"package.json":              `{"type": "module"}`,
		"jr2.d.ts":                  declarations,
	})
	must(t, os.Symlink(filepath.Join(devcluster.TypeScript(t), "node_modules"), filepath.Join(dir, "node_modules")))
	told := w.up(t, dir, y.use, w.served(t, devcluster.ServerVersion("v1.36.1")), func(o *jr2.Options) {
		o.Trusted = true
		delete(o.Env, "JR2_REGISTRY") // it comes from .env
		o.Yes, o.Confirm = false, w.terminal(o)
	})
	must(t, told.err)
	want := sample(t, "→ .env: JR2_REGISTRY", "converged —")
	told.tells(t, want)
	if first := strings.SplitN(told.lines, "\n", 2)[0]; first != "→ .env: JR2_REGISTRY, JR2_GIT_TOKEN" {
		t.Errorf("the first line is %q", first)
	}
	if strings.Contains(told.lines, "token\n") {
		t.Error("a value of .env was told")
	}
}

// TestTypeErrorsRefuse: an Instance that does not compile is refused before anything is built or applied.
func TestTypeErrorsRefuse(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{
		"jr2.config.ts":     plainConfig,
		"workflows/ping.ts": ping + "const wrong: number = \"text\";\n",
		"tsconfig.json":     `{"compilerOptions": {"strict": true, "module": "nodenext", "target": "es2022", "types": []}, "include": ["**/*.ts"]}`,
		"package.json":      `{"type": "module"}`,
		"jr2.d.ts":          declarations,
	})
	must(t, os.Symlink(filepath.Join(devcluster.TypeScript(t), "node_modules"), filepath.Join(dir, "node_modules")))
	told := w.up(t, dir, into("type-error"), func(o *jr2.Options) { o.Trusted = true })
	told.tells(t, []string{
		"…", "typecheck: tsc --noEmit (the instance's own compiler)",
		"refusing: the instance does not compile. Nothing was built and nothing was applied.",
		"  workflows/ping.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.",
	})
	w.isAbsent(t, "type-error")
}

// exampleConfig is the jr2.config.ts at the head of the document.
func exampleConfig(t *testing.T) string {
	t.Helper()
	return strings.Join(sample(t, "import { defineConfig }", "});"), "\n")
}
