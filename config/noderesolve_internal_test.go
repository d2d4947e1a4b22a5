package config

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

// TestTheResolverAgreesWithTheBundlersOwn compares both on random packages: the bundler's own resolver is the judge.
func TestTheResolverAgreesWithTheBundlersOwn(t *testing.T) {
	t.Parallel()
	found := 0
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		root := t.TempDir()
		root, err := filepath.EvalSymlinks(root)
		if err != nil {
			t.Fatal(err)
		}
		put := func(name, text string) {
			t.Helper()
			path := filepath.Join(root, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				if !strings.Contains(err.Error(), "directory") {
					t.Fatal(err)
				}
			}
		}
		pick := func(of ...string) string { return of[r.IntN(len(of))] }
		names := []string{"a", "b", "@s/c"}
		var target func(depth int) string
		target = func(depth int) string {
			switch n := r.IntN(8); {
			case depth > 2 || n < 3:
				return `"` + pick("./index.js", "./lib/x.js", "./lib/x.mjs", "./lib/*.js", "./lib/*", "./missing.js", "../out.js", "x.js", "./lib/", "./lib/../y.js") + `"`
			case n == 3:
				return "null"
			case n == 4:
				return "[" + target(depth+1) + "," + target(depth+1) + "]"
			}
			keys := []string{"import", "require", "node", "default", "types", "browser"}
			r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			var parts []string
			for _, key := range keys[:1+r.IntN(3)] {
				parts = append(parts, fmt.Sprintf("%q:%s", key, target(depth+1)))
			}
			return "{" + strings.Join(parts, ",") + "}"
		}
		table := func(keys ...string) string {
			var parts []string
			for _, key := range keys {
				if r.IntN(2) == 0 {
					parts = append(parts, fmt.Sprintf("%q:%s", key, target(0)))
				}
			}
			return "{" + strings.Join(parts, ",") + "}"
		}
		manifest := func(name string) string {
			fields := []string{fmt.Sprintf(`"name":%q`, name)}
			if r.IntN(2) == 0 {
				fields = append(fields, fmt.Sprintf(`"main":%q`, pick("lib/x", "./lib/x.js", "lib", "index.js", "missing", "./lib/")))
			}
			if r.IntN(3) == 0 {
				fields = append(fields, fmt.Sprintf(`"module":%q`, pick("lib/x.mjs", "./index.mjs", "missing")))
			}
			switch r.IntN(4) {
			case 0:
				fields = append(fields, `"exports":`+table(".", "./x", "./lib/*", "./l*", "./lib/x.js", "./*", "./package.json"))
			case 1:
				fields = append(fields, `"exports":`+target(0))
			}
			if r.IntN(2) == 0 {
				fields = append(fields, `"imports":`+table("#x", "#lib/*", "#y"))
			}
			return "{" + strings.Join(fields, ",") + "}"
		}
		files := []string{"index.js", "index.ts", "index.mjs", "lib/x.js", "lib/x.mjs", "lib/x.ts", "lib/index.js", "lib/y.json", "y.js", "lib/d/index.ts", "lib/d.js"}
		bases := []string{"", "sub/"}
		for _, name := range names {
			bases = append(bases, "node_modules/"+name+"/", "sub/node_modules/"+name+"/")
		}
		for _, base := range bases {
			if strings.HasPrefix(base, "sub/n") && r.IntN(2) == 0 {
				continue
			}
			for _, file := range files {
				if r.IntN(3) > 0 {
					text := ";"
					if strings.HasSuffix(file, ".json") {
						text = "{}"
					}
					put(base+file, text)
				}
			}
			if name := strings.TrimSuffix(base[strings.LastIndex(base, "node_modules/")+1:], "/"); r.IntN(4) > 0 {
				put(base+manifestName, manifest(strings.TrimPrefix(name, "ode_modules/")))
			}
		}
		specifiers := []string{"./lib/x", "./lib/x.js", "./lib", "./lib/", "./lib/d", "./lib/d/", ".", "..", "./", "../", "./index", "#x", "#lib/x.js", "#lib/x", "#y", "#", "./missing",
			"../lib/x.js", "./lib/y", "./x.js?q", "./lib/x.js?q#h", "./lib/../y", "a/../b"}
		for _, name := range names {
			for _, sub := range []string{"", "/x", "/lib/x.js", "/lib/x", "/lib", "/lib/y.json", "/package.json", "/", "/missing"} {
				specifiers = append(specifiers, name+sub)
			}
		}
		for _, dir := range []string{root, filepath.Join(root, "sub"), filepath.Join(root, "node_modules/a"), filepath.Join(root, "node_modules/@s/c/lib")} {
			if _, err := os.Stat(dir); err != nil {
				continue
			}
			for _, assembly := range []bool{false, true} {
				for _, kind := range []api.ResolveKind{api.ResolveJSImportStatement, api.ResolveJSRequireCall} {
					got := ours(t, root, dir, specifiers, assembly, kind)
					want := theirs(t, root, dir, specifiers, assembly, kind)
					for _, specifier := range specifiers {
						if got[specifier] != want[specifier] {
							t.Errorf("seed %d: %q from %s (assembly %v, kind %v): %q, want %q", seed, specifier, dir, assembly, kind, got[specifier], want[specifier])
						}
						if want[specifier] != "" {
							found++
						}
					}
				}
			}
		}
		if t.Failed() {
			return
		}
	}
	if found < 300 {
		t.Errorf("only %d imports led to a file", found)
	}
}

func ours(t *testing.T, root, dir string, specifiers []string, assembly bool, kind api.ResolveKind) map[string]string {
	t.Helper()
	fence, err := newFence(root, "")
	if err != nil {
		t.Fatal(err)
	}
	defer fence.close()
	resolver := &nodeResolver{fence: fence, conditions: conditionsOf(assembly), manifests: map[string]*manifest{}}
	out := map[string]string{}
	for _, specifier := range specifiers {
		if found, err := resolver.resolve(specifier, dir, kind); err == nil {
			out[specifier] = fmt.Sprint(found.path, found.suffix)
		}
	}
	return out
}

func theirs(t *testing.T, root, dir string, specifiers []string, assembly bool, kind api.ResolveKind) map[string]string {
	t.Helper()
	out := map[string]string{}
	type own struct{}
	platform := api.PlatformNeutral
	if assembly {
		platform = api.PlatformNode
	}
	built := api.Build(api.BuildOptions{
		EntryPoints: []string{"entry"}, Bundle: true, LogLevel: api.LogLevelSilent, AbsWorkingDir: root, Platform: platform, TsconfigRaw: "{}",
		MainFields: []string{"module", "main"}, Conditions: []string{"import"}, Outfile: filepath.Join(root, "out.js"),
		Plugins: []api.Plugin{{Name: "ask", Setup: func(build api.PluginBuild) {
			build.OnResolve(api.OnResolveOptions{Filter: "^entry$"}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
				if args.Kind != api.ResolveEntryPoint {
					return api.OnResolveResult{}, nil
				}
				for _, specifier := range specifiers {
					found := build.Resolve(specifier, api.ResolveOptions{ResolveDir: dir, Kind: kind, Namespace: "file", PluginData: own{}})
					// What is a module of Node is not asked of either.
					if len(found.Errors) == 0 && !found.External && found.Namespace == "file" {
						out[specifier] = fmt.Sprint(found.Path, found.Suffix)
					}
				}
				return api.OnResolveResult{Path: "entry", Namespace: "ask"}, nil
			})
			build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: "ask"}, func(api.OnLoadArgs) (api.OnLoadResult, error) {
				text := ""
				return api.OnLoadResult{Contents: &text}, nil
			})
		}}},
	})
	if len(built.Errors) > 0 {
		t.Fatalf("the bundler: %+v", built.Errors)
	}
	for specifier, path := range out {
		if !strings.HasPrefix(path, root) {
			delete(out, specifier) // ours does not look there
		}
	}
	return out
}

// TestAManifestThatIsNoObjectSaysNothing: the bundler took these for a package without fields, and packages are published with them.
func TestAManifestThatIsNoObjectSaysNothing(t *testing.T) {
	t.Parallel()
	for text, main := range map[string]string{`[]`: "", `"x"`: "", `null`: "", `3`: "", "\uFEFF" + `{"main":"a.js"}`: "a.js", " \n{}": ""} {
		pkg, err := parseManifest([]byte(text))
		if err != nil || pkg == nil || pkg.Main != main {
			t.Errorf("%q: %+v, %v, want main %q", text, pkg, err, main)
		}
	}
	for _, text := range []string{"", "{", "{]", "\uFEFF", "x", `{"a":1}{}`} {
		if pkg, err := parseManifest([]byte(text)); err == nil {
			t.Errorf("%q: %+v, want an error", text, pkg)
		}
	}
}

// TestSideEffectsAreReadAsTheBundlerDoes: a pattern too many drops a module that somebody needs.
func TestSideEffectsAreReadAsTheBundlerDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		field string
		has   []string
	}{
		{`false`, nil}, {`true`, []string{"a.js", "lib/b.css", "lib/deep/c.js"}}, {`[]`, nil}, {`["./a.js"]`, []string{"a.js"}},
		{`["*.css"]`, []string{"lib/b.css"}}, {`["lib/*"]`, []string{"lib/b.css"}}, {`["lib/**"]`, []string{"lib/b.css", "lib/deep/c.js"}},
		{`["**/*.js"]`, []string{"a.js", "lib/deep/c.js"}}, {`["?.js"]`, []string{"a.js", "lib/deep/c.js"}}, {`"no"`, []string{"a.js", "lib/b.css", "lib/deep/c.js"}},
	} {
		pkg, err := parseManifest([]byte(`{"sideEffects":` + c.field + `}`))
		if err != nil {
			t.Fatal(err)
		}
		pkg.dir = "/p"
		var has []string
		for _, file := range []string{"a.js", "lib/b.css", "lib/deep/c.js"} {
			if pkg.effectsOf(filepath.Join("/p", file)) {
				has = append(has, file)
			}
		}
		if !slices.Equal(has, c.has) {
			t.Errorf("%s: %q have effects, want %q", c.field, has, c.has)
		}
	}
}
