package config_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"jr2.dev/jr2/config"
)

// TestAFolderDoesNotSayHowFarItReaches: what an uploaded folder has beside the Instance opens nothing for its code.
func TestAFolderDoesNotSayHowFarItReaches(t *testing.T) {
	base := t.TempDir()
	write(t, base, map[string]string{
		"outside/creds.json": `{"name":"stolen"}`, "outside/pkg/package.json": `{"main":"i.js"}`, "outside/pkg/i.js": `export const name = "stolen";`,
		"up/pnpm-workspace.yaml": "packages: [inst]\n", "up/package.json": `{"workspaces":["inst"]}`,
	})
	link := func(to, at string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(base, at)), 0o755), os.Symlink(to, filepath.Join(base, at))); err != nil {
			t.Fatal(err)
		}
	}
	for name, prepare := range map[string]func() string{
		"node_modules above is a link": func() string {
			link("../outside", "up/node_modules")
			return `import c from "../node_modules/creds.json"; export default c;`
		},
		"an absolute link above": func() string {
			link(filepath.Join(base, "outside"), "up/node_modules")
			return `import { name } from "pkg"; export default { name };`
		},
		"a package of it is a link": func() string {
			link("../../outside/pkg", "up/node_modules/pkg")
			return `import { name } from "pkg"; export default { name };`
		},
		"a link deeper in a package": func() string {
			write(t, base, map[string]string{"up/inst/node_modules/p/package.json": `{"main":"deep/i.js"}`})
			link("../../../../../outside/pkg", "up/inst/node_modules/p/deep")
			return `import { name } from "p"; export default { name };`
		},
		"exports that climb": func() string {
			write(t, base, map[string]string{"up/inst/node_modules/p/package.json": `{"exports":{"./*":"./x/*"}}`})
			return `import { name } from "p/../../../../../outside/pkg/i.js"; export default { name };`
		},
		"imports that climb": func() string {
			write(t, base, map[string]string{"up/inst/package.json": `{"imports":{"#x":"./../../outside/pkg/i.js"}}`})
			return `import { name } from "#x"; export default { name };`
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, dir := range []string{"up/inst", "up/node_modules"} {
				if err := os.RemoveAll(filepath.Join(base, dir)); err != nil {
					t.Fatal(err)
				}
			}
			write(t, base, map[string]string{"up/inst/jr2.config.ts": prepare()})
			for _, outermost := range []string{"", filepath.Join(base, "up")} {
				inst, err := config.Load(context.Background(), config.LoadOptions{Dir: filepath.Join(base, "up/inst"), Outermost: outermost})
				if err == nil || strings.Contains(err.Error(), "stolen") || inst != nil && inst.Name == "stolen" {
					t.Errorf("with Outermost %q: %+v, %v", outermost, inst, err)
				}
			}
		})
	}
}

// TestAPackageManagersLinksLeadToTheWorkspace: pnpm keeps packages in one folder of the workspace, and links to them.
func TestAPackageManagersLinksLeadToTheWorkspace(t *testing.T) {
	base := t.TempDir()
	write(t, base, map[string]string{
		"node_modules/.pnpm/a@1.0.0/node_modules/a/package.json": `{"name":"a","exports":{"import":"./a.mjs"}}`,
		"node_modules/.pnpm/a@1.0.0/node_modules/a/a.mjs":        `export { b } from "b";`,
		"node_modules/.pnpm/b@1.0.0/node_modules/b/package.json": `{"name":"b","main":"b.js","module":"b.mjs"}`,
		"node_modules/.pnpm/b@1.0.0/node_modules/b/b.mjs":        `export const b = "found";`,
		"apps/inst/jr2.config.ts":                                `import { b } from "a"; export default { name: b };`,
	})
	for at, to := range map[string]string{
		"apps/inst/node_modules/a":                   "../../../node_modules/.pnpm/a@1.0.0/node_modules/a",
		"node_modules/.pnpm/a@1.0.0/node_modules/b":  "../../b@1.0.0/node_modules/b",
		"node_modules/.pnpm/node_modules/unused.txt": "../../../missing",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(base, at)), 0o755), os.Symlink(to, filepath.Join(base, at))); err != nil {
			t.Fatal(err)
		}
	}
	inst, err := config.Load(context.Background(), config.LoadOptions{Dir: filepath.Join(base, "apps/inst"), Outermost: base})
	if err != nil || inst.Name != "found" {
		t.Errorf("got %+v, %v", inst, err)
	}
	var outside *config.OutsideError
	if _, err := config.Load(context.Background(), config.LoadOptions{Dir: filepath.Join(base, "apps/inst")}); !errors.As(err, &outside) {
		t.Errorf("without Outermost: %v, want an OutsideError", err)
	}
	for _, outermost := range []string{filepath.Join(base, "apps/inst/node_modules"), filepath.Join(base, "missing")} {
		if _, err := config.Load(context.Background(), config.LoadOptions{Dir: filepath.Join(base, "apps/inst"), Outermost: outermost}); err == nil ||
			!strings.Contains(err.Error(), "LoadOptions.Outermost") {
			t.Errorf("Outermost %s: %v, want an error that names the option", outermost, err)
		}
	}
}

// TestTheBundlerOpensNothingByItself has the ways in which a module makes it look for files: each names a pipe, which would hold it up for ever.
func TestTheBundlerOpensNothingByItself(t *testing.T) {
	above := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(above, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	pipe := filepath.Join(above, "pipe")
	for _, name := range []string{"package.json", "tsconfig.json", "pnpm-workspace.yaml", "outside.json"} {
		if err := os.Symlink("pipe", filepath.Join(above, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"a source map":               "export default {};\n//# sourceMappingURL=../pipe\n",
		"a source map by its URL":    "export default {};\n//# sourceMappingURL=file://" + pipe + "\n",
		"a source map in a comment":  "export default {}; /*# sourceMappingURL=../pipe */\n",
		"tsconfig":                   "export default {};\n",
		"a computed import":          "const n: string = \"pipe\"; export default { x: () => import(\"../\" + n) };\n",
		"a template":                 "const n: string = \"pipe\"; export default { x: () => import(`../${n}.json`) };\n",
		"a computed require":         "const n: string = \"pipe\"; export default { x: () => require(\"../\" + n) };\n",
		"an escaped require":         "const n: string = \"pipe\"; export default { x: () => r\\u0065quire(\"../\" + n) };\n",
		"an enum":                    "enum E { up = \"../\" } const n: string = \"\"; export default { x: () => import(E.up + n) };\n",
		"parentheses":                "const n: string = \"\"; export default { x: () => import(/* no */ ((\"../\") + n)) };\n",
		"a choice":                   "const n: any = 1; export default { x: () => import(n ? \"../\" + n : \"x\") };\n",
		"dead code":                  "const n: any = 1; if (false) { import(\"../\" + n); } export default {};\n",
		"parts of parts":             "const n: any = 1; export default { x: () => import(\".\" + (\"./\" + n) + \".json\") };\n",
		"an optional call":           "const n: any = 1; export default { x: () => require?.(\"../\" + n) };\n",
		"a template without a hole":  "const n: any = 1; export default { x: () => import(`../` + n) };\n",
		"white space of JavaScript":  "const n: any = 1; export default { x: () => import\v(`../${n}.json`) };\n",
		"a blank that is none":       "const n: any = 1; export default { x: () => require\u00a0(\"../\" + n) };\n",
		"a line of its own":          "const n: any = 1; export default { x: () => import\u2028(\"../\" + n) };\n",
		"a choice of require":        "const n: any = 1; export default { x: () => require(n ? `../${n}` : \"x\") };\n",
		"a choice in a choice":       "const n: any = 1; export default { x: () => require(n ? (n ? \"../\" + n : \"x\") : \"x\") };\n",
		"a backslash in a template":  "const n: any = 1; export default { x: () => import(`../x\\\\/../../${n}`) };\n",
		"a source map's sources":     "export default {};\n//# sourceMappingURL=data:application/json,{\"version\":3,\"sources\":[\"file://" + pipe + "\"],\"mappings\":\"AAAA\"}\n",
		"sources, with import.meta":  "export default { x: () => import.meta.url };\n//# sourceMappingURL=data:application/json,{\"version\":3,\"sources\":[\"file://" + pipe + "\"],\"mappings\":\"AAAA\"}\n",
		"a package.json of a module": "import \"./sub/a.ts\"; export default {};\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp(above, "instance")
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir, map[string]string{"jr2.config.ts": text, "sub/a.ts": ";"})
			if err := os.Symlink("../../package.json", filepath.Join(dir, "sub/package.json")); err != nil {
				t.Fatal(err)
			}
			_, err = config.Load(context.Background(), config.LoadOptions{Dir: dir})
			if errors.Is(err, config.ErrTimeout) {
				t.Fatalf("it was held up: %v", err)
			}
			if refused := err != nil; refused != (!strings.Contains(name, "source") && name != "tsconfig") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestComputedImportsAreToldFromOthers: what the bundler does not look up in the file system stays as it is.
func TestComputedImportsAreToldFromOthers(t *testing.T) {
	for name, text := range map[string]string{
		"a name":            `const { x } = await import("./x.ts"); export default { name: x };`,
		"a template":        "const { x } = await import(`./x.ts`); export default { name: x };",
		"with a comment":    `const { x } = await import(/* webpackChunkName: "x" */ "./x.ts"); export default { name: x };`,
		"with attributes":   `const { default: d } = await import("./x.json", { with: { type: "json" } }); export default { name: d.x };`,
		"a text of it":      `const text = "it says import(x) and require(y)"; export default { name: text ? "fine" : "" };`,
		"a function so":     `const important = (x: string) => x; export default { name: important("fi" + "ne") };`,
		"a method so named": `const o = { load(x: string) { return x; } }; export default { name: o.load("./fi" + "ne").slice(2) };`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, map[string]string{"jr2.config.ts": text, "x.ts": `export const x = "fine";`, "x.json": `{"x":"fine"}`})
			inst, err := config.Load(context.Background(), config.LoadOptions{Dir: dir})
			if err != nil || inst.Name != "fine" {
				t.Errorf("got %+v, %v", inst, err)
			}
		})
	}
}

// TestFilesBesideTheCodeAreReadThroughTheDoor: each is a link out, a link to the process's environment, a pipe, a device, or without end.
func TestFilesBesideTheCodeAreReadThroughTheDoor(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(outside, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	for kind, put := range map[string]func(path string) error{
		"link":    func(path string) error { return os.Symlink(outside, path) },
		"environ": func(path string) error { return os.Symlink("/proc/self/environ", path) },
		"device":  func(path string) error { return os.Symlink("/dev/zero", path) },
		"pipe":    func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"sparse":  func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 3<<30)) },
		"folder":  func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		for name, file := range map[string]string{
			"package.json": "package.json", "of a package": "node_modules/p/package.json", "of a folder": "sub/package.json", "caBundle": "ca.pem",
			"a Workflow": "workflows/w.ts", "workflows": "workflows", "a module": "sub/a.ts", "of the kit": "node_modules/@jr2/orchestrator/package.json",
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				write(t, dir, map[string]string{
					"jr2.config.ts": `import "./sub/a.ts"; import "p"; export default { harness: { caBundle: "ca.pem" } };`,
					"sub/a.ts":      ";", "sub/b.txt": ";", "node_modules/p/index.js": ";", "node_modules/@jr2/orchestrator/x": ";", "ca.pem": ";",
				})
				path := filepath.Join(dir, file)
				if file != "workflows" {
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
				}
				if err := errors.Join(os.RemoveAll(path), put(path)); err != nil {
					t.Fatal(err)
				}
				inst, err := config.Load(context.Background(), config.LoadOptions{Dir: dir})
				if inst != nil && err == nil {
					_, err = inst.CABundle()
				}
				if errors.Is(err, config.ErrTimeout) || err != nil && strings.Contains(err.Error(), "canary") {
					t.Errorf("got %v", err)
				}
				if name == "of the kit" || kind == "folder" && (name == "workflows" || strings.Contains(file, "package.json")) {
					return // a note says so, or it is as if there were none
				}
				if named := err != nil && strings.Contains(err.Error(), filepath.Base(file)); !named && !errors.As(err, new(*config.OutsideError)) {
					t.Errorf("got %v, want an error that names %s", err, file)
				}
			})
		}
	}
}

// TestTheEnvironmentFileIsTheFoldersOwn: a link may lead to another file of the folder, and nowhere else.
func TestTheEnvironmentFileIsTheFoldersOwn(t *testing.T) {
	base := t.TempDir()
	write(t, base, map[string]string{"outside.env": "A=stolen\n", "in/.env.local": "A=own\n"})
	env := filepath.Join(base, "in", ".env")
	for to, want := range map[string]string{
		"../outside.env": "", filepath.Join(base, "outside.env"): "", "/proc/self/environ": "", "/dev/zero": "", "/dev/stdin": "", ".env": "",
		".env.local": "own", "./.env.local": "own", filepath.Join(base, "in", ".env.local"): "own",
	} {
		if err := errors.Join(os.RemoveAll(env), os.Symlink(to, env)); err != nil {
			t.Fatal(err)
		}
		read, err := config.ReadDotEnv(env)
		switch {
		case want == "" && (err == nil || !strings.Contains(err.Error(), ".env") || read != nil):
			t.Errorf("-> %s: %v, %v, want an error that names .env", to, read, err)
		case want != "" && (err != nil || len(read) != 1 || read[0].Value.Reveal() != want):
			t.Errorf("-> %s: %v, %v", to, read, err)
		}
	}
}
