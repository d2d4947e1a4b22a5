package preflight_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

const strict = `{"compilerOptions": {"strict": true, "module": "nodenext", "target": "es2022", "types": []}}`

func TestTypecheckWithTheRealCompiler(t *testing.T) {
	modules := filepath.Join(devcluster.TypeScript(t), "node_modules")
	for name, test := range map[string]struct {
		source string
		lines  []string
	}{
		"compiles": {source: `export const machine: { states: string[] } = { states: ["idle"] };`},
		"two errors": {
			source: "export const machine: { states: string[] } = { states: [1] };\nexport default elsewhere;",
			lines: []string{
				"workflows/hold.ts(1,57): error TS2322: Type 'number' is not assignable to type 'string'.",
				"workflows/hold.ts(2,16): error TS2304: Cannot find name 'elsewhere'.",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			above := instance(t, map[string]string{"app/tsconfig.json": strict, "app/package.json": `{"type": "module"}`, "app/workflows/hold.ts": test.source})
			// In the folder above, as in a workspace.
			if err := os.Symlink(modules, filepath.Join(above, "node_modules")); err != nil {
				t.Fatal(err)
			}
			root := filepath.Join(above, "app")
			result, err := preflight.Typecheck(t.Context(), root, preflight.TypecheckOptions{Trusted: true})
			if test.lines == nil {
				if err != nil || !strings.HasPrefix(result.Compiler, above) {
					t.Errorf("got %+v, %v", result, err)
				}
			} else {
				var refused *preflight.TypecheckError
				if !errors.As(err, &refused) || !slices.Equal(refused.Output, test.lines) {
					t.Errorf("got %v", err)
				}
			}
			if _, err := os.Stat(filepath.Join(root, "workflows", "hold.js")); err == nil {
				t.Error("the compiler wrote its output")
			}
		})
	}
}
