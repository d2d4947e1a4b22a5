package config_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"jr2.dev/jr2/config"
)

// TestImagesOfPackages: an image context may lie in a package of the Instance's own node_modules, also behind a link inside of it, as
// package managers make them. A link that leads out of the Instance is refused, and so is a folder above it or beside it.
func TestImagesOfPackages(t *testing.T) {
	for name, c := range map[string]struct {
		links    map[string]string // below the Instance
		image    string            // the expression
		contexts string            // where it lies, below the Instance; empty when it is refused
	}{
		"a package":                {nil, `import.meta.resolve("../node_modules/@acme/toolbox/image")`, "node_modules/@acme/toolbox/image"},
		"a link inside":            {map[string]string{"node_modules/linked": "@acme/toolbox"}, `import.meta.resolve("../node_modules/linked/image")`, "node_modules/linked/image"},
		"a link out":               {map[string]string{"node_modules/linked": "../../outside"}, `import.meta.resolve("../node_modules/linked/image")`, ""},
		"beside the Instance":      {nil, `import.meta.resolve("../../outside/image")`, ""},
		"node_modules above":       {nil, `import.meta.resolve("../../node_modules/above/image")`, ""},
		"a name that begins alike": {nil, `import.meta.resolve("../../fx-review-too/image")`, ""},
		"the folder itself":        {nil, `import.meta.resolve("../")`, "."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := instance(t, "review", map[string]string{
				"node_modules/@acme/toolbox/image/Dockerfile": "FROM scratch\n",
				"../outside/image/Dockerfile":                 "FROM scratch\n",
				"../node_modules/above/image/Dockerfile":      "FROM scratch\n",
				"../fx-review-too/image/Dockerfile":           "FROM scratch\n",
				"workflows/review.ts":                         imports + "export const machine = workspace(plain, { repos: app, image: " + c.image + " });",
			})
			for link, target := range c.links {
				if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			inst, err := config.Load(context.Background(), config.LoadOptions{Dir: dir})
			if c.contexts == "" {
				var outside *config.OutsideError
				if !errors.As(err, &outside) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if contexts := inst.ImageContexts(); len(contexts) != 1 || contexts[0].Dir != filepath.Join(inst.Root, c.contexts) {
				t.Errorf("got %+v", contexts)
			}
		})
	}
}
