package config_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"jr2.dev/jr2/config"
)

// TestHostileTime bounds code that does not end.
func TestHostileTime(t *testing.T) {
	for name, code := range map[string]string{
		"loop":             `while (true) {}`,
		"microtasks":       `(function f() { Promise.resolve().then(f); })(); await new Promise(() => {});`,
		"await loop":       `while (true) await 0;`,
		"generator":        `function* g() { while (true) yield 1; } for (const x of g()) x;`,
		"array-like":       `Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1);`,
		"spread of holes":  `const a = []; a.length = 2 ** 32 - 1; for (let i = 0; i < 1e9; i++) Math.max(...a);`,
		"catching":         `while (true) { try { while (true) {} } catch {} finally { continue; } }`,
		"getter":           `export default { get name() { while (true) {} } }`,
		"proxy":            `new Proxy({}, { get() { while (true) {} } }).x;`,
		"message of error": `throw { get message() { while (true) {} } };`,
		"toString":         `throw { toString() { while (true) {} }, get name() { return this; } };`,
		"sort":             `[3, 2, 1].sort(() => { while (true) {} });`,
		"tower of arrays":  `let a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; a.flat(Infinity);`,
		"tower in JSON":    `let a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; JSON.stringify(a);`,
		"tower in text":    `let a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; String(a);`,
		"tower as config":  `let a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; export default { a };`,
		"endless iterable": `Array.from({ [Symbol.iterator]: () => ({ next: () => ({ done: false }) }) }, () => { });`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "hostile")
			if !strings.Contains(code, "export default") {
				code += "\nexport default {};"
			}
			write(t, dir, map[string]string{"jr2.config.ts": code})
			_, err := config.Load(context.Background(), config.LoadOptions{Dir: dir, Timeout: 500 * time.Millisecond}) // one that never ends would hold the test
			if !errors.Is(err, config.ErrTimeout) && !errors.Is(err, config.ErrMemory) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestHostileMemory bounds code that allocates, in many small pieces and in single large ones.
func TestHostileMemory(t *testing.T) {
	slow := map[string]bool{"closures": true, "raw": true, "typed like": true} // these may reach the time bound first
	for name, code := range map[string]string{
		"arrays":          `const a = []; while (1) a.push(new Array(1e6).fill(0));`,
		"objects":         `const a = []; while (1) a.push({ x: {} });`,
		"doubling":        `let s = "x"; while (1) s += s;`,
		"doubling wide":   `let s = "ж"; while (1) s = s + s;`,
		"repeat":          `"x".repeat(2 ** 30);`,
		"pad":             `"x".padStart(2 ** 30);`,
		"pad end":         `"x".padEnd(2 ** 30, "ab");`,
		"replace":         `const s = "x".repeat(1e6); s.replaceAll("x", s);`,
		"replace regexp":  `const s = "x".repeat(1e6); s.replace(/x/g, s);`,
		"replace context": "const s = 'x'.repeat(1e5); s.replace(/x/g, \"$'$'$'\");",
		"array":           `new Array(2 ** 32 - 1).fill(1);`,
		"apply":           `Math.max.apply(null, { length: 1e9 });`,
		"reflect":         `Reflect.apply(Math.max, null, { length: 1e9 });`,
		"join":            `const a = []; a.length = 1e9; a.join("x".repeat(1e6));`,
		"typed":           `new Float64Array(1e9);`,
		"typed like":      `new Uint8Array({ length: 1e10 });`,
		"buffer":          `new ArrayBuffer(1e10);`,
		"many buffers":    `const a = []; while (1) a.push(new Uint8Array(1e7));`,
		"map":             `const m = new Map(); for (let i = 0; ; i++) m.set(i, [i]);`,
		"closures":        `let f = () => 0; while (1) { const g = f; f = () => g; }`,
		"wide key":        `const o = {}; for (let i = 0; ; i++) o["k" + i] = i;`,
		"regexp":          `new RegExp("(".repeat(1e6));`,
		"subclass":        `class A extends Array {} new A(1e9).fill(1);`,
		"constructor":     `new ([].constructor)(1e9).fill(1);`,
		"from":            `Array.from({ length: 1e9 }, () => [1]);`,
		"raw":             `String.raw({ raw: { length: 1e9 } });`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "hostile")
			write(t, dir, map[string]string{"jr2.config.ts": code + "\nexport default {};"})
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			timeout := 5 * time.Minute // the race detector makes the evaluator slow, and others may have the processor
			if slow[name] {
				timeout = 3 * time.Second
			}
			_, err := config.Load(context.Background(), config.LoadOptions{Dir: dir, Timeout: timeout, MemoryLimit: 16 << 20})
			runtime.ReadMemStats(&after)
			if !errors.Is(err, config.ErrMemory) && !(errors.Is(err, config.ErrTimeout) && slow[name]) {
				t.Errorf("got %v", err)
			}
			if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 1<<30 {
				t.Errorf("the heap grew by %s", config.FormatMemory(grown))
			}
		})
	}
}

// TestHostileStops names code that must fail for a reason of its own, and not because its time is over.
func TestHostileStops(t *testing.T) {
	for name, c := range map[string]struct{ code, say string }{
		"recursion":          {`(function f() { f(); })();`, ""},
		"native recursion":   {`(function f() { [2, 1].sort(f); })();`, ""},
		"eval":               {`eval("1");`, "code from text"},
		"indirect eval":      {`(0, eval)("1");`, "code from text"},
		"Function":           {`new Function("return 1")();`, "code from text"},
		"hidden Function":    {`(() => 1).constructor("return 1")();`, "code from text"},
		"generator Function": {`(function* () {}).constructor("yield 1");`, "code from text"},
		"async Function":     {`(async () => {}).constructor("1");`, "code from text"},
		"big integers":       {`const x = 1n << 2n; if (typeof x !== "number") throw new Error("a big integer"); new BigInt64Array(1);`, "BigInt64Array"},
		"backtracking":       {`/^(a+)+(?=b)$/.test("a".repeat(40));`, "too long"},
		"backreference":      {`"a".repeat(40).match(/^(a*)*\1c$/);`, "too long"},
		"deep JSON":          {`JSON.parse("[".repeat(1e5));`, "nested too deeply"},
		"files":              {`import { readFileSync } from "node:fs"; readFileSync("/etc/passwd");`, "readFileSync"},
		"files by promise":   {`import { readFile } from "fs/promises"; await readFile("/etc/passwd");`, "readFile"},
		"processes":          {`import { execSync } from "child_process"; execSync("id");`, "execSync"},
		"network":            {`await fetch("http://127.0.0.1");`, "fetch"},
		"require":            {`require("node:fs").readFileSync("/etc/passwd");`, "readFileSync"},
		"timers":             {`await new Promise((done) => setTimeout(done, 1));`, "waits for something"},
		"rejection":          {`await Promise.reject(new Error("boom"));`, "boom"},
		"remote module":      {`import "https://example.com/x.js";`, "network"},
		"data module":        {`import "data:text/javascript,1";`, "cannot import"},
		"recorder":           {`import "jr2:state";`, "jr2:state"},
		"environment":        {`if (process.env.PATH || process.env.HOME) throw new Error("leak"); throw new Error("clean");`, "clean"},
		"write environment":  {`process.env.X = "1";`, "X"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "hostile")
			write(t, dir, map[string]string{"jr2.config.ts": c.code + "\nexport default {};"})
			_, err := config.Load(context.Background(), config.LoadOptions{Dir: dir, Timeout: 5 * time.Minute}) // time is not what stops it
			var module *config.ModuleError
			if !errors.As(err, &module) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("got %v, want %q", err, c.say)
			}
		})
	}
}

func TestBuiltinsStillWork(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fine")
	write(t, dir, map[string]string{"jr2.config.ts": `
import { join, dirname, basename, extname, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { execFile } from "node:child_process";
const run = promisify(execFile);
const out: unknown[] = [];
const same = (name: string, a: unknown, b: unknown) => { if (JSON.stringify(a) !== JSON.stringify(b)) throw new Error(name + ": " + JSON.stringify(a)); };
same("map", [1, 2, 3].map((x) => x * 2), [2, 4, 6]);
same("filter", [1, 2, 3].filter((x) => x > 1), [2, 3]);
same("slice", [1, 2, 3, 4].slice(-2), [3, 4]);
same("splice", (() => { const a = [1, 2, 3, 4]; const r = a.splice(1, 2, 9, 8, 7); return [a, r]; })(), [[1, 9, 8, 7, 4], [2, 3]]);
same("concat", [1].concat([2, 3], 4 as never), [1, 2, 3, 4]);
same("reduce", [1, 2, 3].reduce((a, b) => a + b), 6);
same("reduceRight", ["a", "b"].reduceRight((a, b) => a + b, ""), "ba");
same("flat", [1, [2, [3, [4]]]].flat(2), [1, 2, 3, [4]]);
same("sort", [3, 1, 2].sort(), [1, 2, 3]);
same("sort by", [1, 3, 2].toSorted((a, b) => b - a), [3, 2, 1]);
same("reverse", [1, 2, 3].reverse(), [3, 2, 1]);
same("join", [1, null, [2, 3]].join("-"), "1--2,3");
same("fill", new Array(3).fill(0), [0, 0, 0]);
same("from", Array.from({ length: 3 }, (_, i) => i), [0, 1, 2]);
same("set", [...new Set([1, 1, 2])], [1, 2]);
same("entries", [...["a", "b"].entries()], [[0, "a"], [1, "b"]]);
same("destructuring", (() => { const [a, , b = 5, ...c] = [1, 2, undefined, 4, 6]; return [a, b, c]; })(), [1, 5, [4, 6]]);
same("shift", (() => { const a = [1, 2]; return [a.shift(), a.unshift(5, 6), a]; })(), [1, 3, [5, 6, 2]]);
same("find", [[1, 2, 3].find((x) => x > 1), [1, 2].findLastIndex((x) => x === 9), [1, 2].at(-1)], [2, -1, 2]);
same("includes", [[NaN].includes(NaN), [NaN].indexOf(NaN), [1, 2, 1].lastIndexOf(1)], [true, -1, 2]);
same("apply", Math.max.apply(null, [1, 5, 2]), 5);
same("strings", ["x".repeat(3), "1".padStart(3, "0"), "a-b".replace("-", "+"), "a.b.c".replaceAll(".", "$&$&"), "a,b".split(",")], ["xxx", "001", "a+b", "a..b..c", ["a", "b"]]);
same("regexp", ["2024-01".match(/(?<y>\d+)-(\d+)/)?.groups?.y, "aXbX".replace(/x/gi, (m) => m + "!"), /(?<=a)b/.test("ab")], ["2024", "aX!bX!", true]);
same("json", JSON.parse(JSON.stringify({ a: [1, undefined, "é\n"], b: undefined, d: new Date(0) })), { a: [1, null, "é\n"], d: "1970-01-01T00:00:00.000Z" });
same("json indent", JSON.stringify({ a: [1] }, null, 2), '{\n  "a": [\n    1\n  ]\n}');
same("typed", [...new Uint8Array([1, 2, 3])].join(), "1,2,3");
same("instanceof", [[] instanceof Array, (() => 1) instanceof Function, /x/ instanceof RegExp, {} instanceof Array], [true, true, true, false]);
class Stack extends Array { top() { return this[this.length - 1]; } }
const s = new Stack(); s.push(7); same("subclass", [s.top(), s.length, s instanceof Stack, s instanceof Array], [7, 1, true, true]);
same("private", (() => { class P { #x = 1; has(o: object) { return #x in o; } } return new P().has(new P()); })(), true);
async function* gen() { yield 1; yield 2; }
const got: number[] = []; for await (const x of gen()) got.push(x); same("for await", got, [1, 2]);
same("import()", (await import("./other.ts")).value, 5);
same("path", [join("/a", "../b", "c.txt"), dirname("/a/b"), basename("/a/b.ts", ".ts"), extname("x.tar.gz"), relative("/a/b", "/a/c/d")], ["/b/c.txt", "/a", "b", ".gz", "../c/d"]);
same("url", [new URL("./x y", "file:///a/b").href, new URL("HTTPS://H.test:443/p?q=1#f").host, new URLSearchParams("a=1&b=%20").get("b")], ["file:///a/x%20y", "h.test", " "]);
same("fileURLToPath", fileURLToPath("file:///a%20b"), "/a b");
same("clone", structuredClone({ a: [new Map([[1, 2]])] }).a[0].get(1), 2);
same("text", new TextDecoder().decode(new TextEncoder().encode("é€")), "é€");
export default { name: typeof run === "function" ? "works" : "not" };
`, "other.ts": "export const value = 5;\n"})
	inst, err := config.Load(context.Background(), config.LoadOptions{Dir: dir})
	if err != nil || inst.Name != "works" {
		t.Fatal(err)
	}
}

// TestImportsStayInside refuses what leaves the folder, also through links.
func TestImportsStayInside(t *testing.T) {
	base := t.TempDir()
	write(t, base, map[string]string{
		"outside/secret.ts":                   "export const secret = 1;\n",
		"outside/pkg/package.json":            `{"name":"linked","main":"index.js"}`,
		"outside/pkg/index.js":                "export const secret = 2;\n",
		"node_modules/above/package.json":     `{"name":"above","main":"index.js"}`,
		"node_modules/above/index.js":         "export const secret = 3;\n",
		"me/jr2.config.ts":                    "export default {};\n",
		"me/node_modules/inner/package.json":  `{"name":"inner","exports":"./a.js"}`,
		"me/node_modules/inner/a.js":          "export const fine = \"fine\";\n",
		"me/node_modules/escape/package.json": `{"name":"escape","main":"../../../outside/secret.ts"}`,
	})
	for link, target := range map[string]string{
		"me/link.ts": "../outside/secret.ts", "me/linkdir": "../outside", "me/node_modules/linked": "../../outside/pkg", "me/inner.ts": "node_modules/inner/a.js",
	} {
		if err := os.Symlink(target, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, specifier := range []string{"../outside/secret.ts", "./link.ts", "./linkdir/secret.ts", "linked", "/etc/hostname.ts", filepath.Join(base, "outside/secret.ts")} {
		write(t, base, map[string]string{"me/jr2.config.ts": "import * as x from \"" + specifier + "\";\nexport default { x };\n"})
		_, err := config.Load(context.Background(), config.LoadOptions{Dir: filepath.Join(base, "me")})
		var outside *config.OutsideError
		if !errors.As(err, &outside) || outside.Importer != filepath.Join(base, "me", "jr2.config.ts") {
			t.Errorf("%s: got %v", specifier, err)
		}
	}
	for _, specifier := range []string{"above", "escape"} {
		write(t, base, map[string]string{"me/jr2.config.ts": "import * as x from \"" + specifier + "\";\nexport default { x };\n"})
		if _, err := config.Load(context.Background(), config.LoadOptions{Dir: filepath.Join(base, "me")}); err == nil {
			t.Errorf("%s passed", specifier)
		}
	}
	write(t, base, map[string]string{"me/jr2.config.ts": "import { fine } from \"inner\";\nimport { fine as again } from \"./inner.ts\";\nexport default { name: fine === again ? fine : \"no\" };\n"})
	inst, err := config.Load(context.Background(), config.LoadOptions{Dir: filepath.Join(base, "me")})
	if err != nil || inst.Name != "fine" {
		t.Errorf("a package of the folder: %v", err)
	}
	// The packages of a workspace are open when the caller says so, and not because a file above says so.
	write(t, base, map[string]string{"pnpm-workspace.yaml": "packages: [me]\n", "me/jr2.config.ts": "import { secret } from \"above\";\nexport default { name: \"n\" + secret };\n"})
	if _, err = config.Load(context.Background(), config.LoadOptions{Dir: filepath.Join(base, "me")}); err == nil {
		t.Error("a workspace that nobody named was read")
	}
	workspace, err := config.FindWorkspace(filepath.Join(base, "me"))
	if err != nil || workspace != base {
		t.Errorf("the workspace is %q, %v, want %q", workspace, err, base)
	}
	inst, err = config.Load(context.Background(), config.LoadOptions{Dir: filepath.Join(base, "me"), Outermost: workspace})
	if err != nil || inst.Name != "n3" {
		t.Errorf("a package of the workspace: %v", err)
	}
}

func TestOddFiles(t *testing.T) {
	dir := instance(t, "ping", map[string]string{"big.ts": "export const x = 1;" + strings.Repeat(" ", 3<<20)})
	if err := syscall.Mkfifo(filepath.Join(dir, "workflows", "pipe.ts"), 0o600); err != nil {
		t.Skip(err)
	}
	if err := refused(t, dir, "syntax", "no regular file"); err.Workflow != "pipe" {
		t.Errorf("got %q", err)
	}
	write(t, dir, map[string]string{"workflows/pipe.ts": "", "jr2.config.ts": "import { x } from \"./big.ts\";\nexport default { x };\n"})
	refused(t, dir, "syntax", "larger than 64Ki")
}

// TestDeepSources: the deepest source that the bound on its size admits ends nothing but its own load.
func TestDeepSources(t *testing.T) {
	const size = 63 << 10
	for _, level := range []string{"a=>", "y=", "!", "(", "[", "${`"} {
		dir := filepath.Join(t.TempDir(), "hostile")
		text := "let y; const x = " + strings.Repeat(level, size/len(level)) + "1;"
		write(t, dir, map[string]string{"jr2.config.ts": text})
		if _, err := config.Load(context.Background(), config.LoadOptions{Dir: dir, Timeout: 2 * time.Second}); err == nil {
			t.Errorf("%q passed", level)
		}
	}
}

func TestImagesStayInside(t *testing.T) {
	const code = `export const machine = workspace(plain, { repos: app, image: "file:///etc" });`
	dir := instance(t, "review", map[string]string{"workflows/review.ts": imports + code})
	err := refused(t, dir, "image", "/etc")
	var outside *config.OutsideError
	if !errors.As(err, &outside) {
		t.Errorf("got %v", err)
	}
	inst, loadErr := config.Load(context.Background(), config.LoadOptions{Dir: dir, OutsideImages: true})
	if loadErr != nil || inst.ImageContexts()[0].Dir != "/etc" {
		t.Errorf("got %v", loadErr)
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "workflows", "linked")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"workflows/review.ts": imports + `export const machine = workspace(plain, { repos: app, user: import.meta.resolve("./linked") });`})
	refused(t, dir, "image", "user")
}

func TestCancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := config.Load(ctx, config.LoadOptions{Dir: samples + "ping"})
	if !errors.Is(err, context.Canceled) || errors.Is(err, config.ErrTimeout) {
		t.Errorf("got %v", err)
	}
}
