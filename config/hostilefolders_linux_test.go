package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/devcluster"
)

// TestHostileFolders loads random folders of somebody who means harm, in a process that strace watches: each load ends within its time, with
// at most 256 MiB, opens nothing outside of the folder, and starts no process. JR2_FOLDERS is how many there are, JR2_FOLDERS_FROM the first seed.
func TestHostileFolders(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		devcluster.Missing(t, "strace is not on PATH: .ci/deps.sh installs it")
	}
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return otherwise
	}
	loader := filepath.Join(t.TempDir(), "loader")
	build := exec.Command("go", "build", "-o", loader, "./testdata/loader")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // a program that opens no libraries
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	from := number("JR2_FOLDERS_FROM", 1)
	var dirs []string
	for seed := from; seed < from+number("JR2_FOLDERS", 30); seed++ {
		at := filepath.Join(base, fmt.Sprintf("seed%d", seed))
		hostileFolder(t, at, rand.New(rand.NewPCG(uint64(seed), 71)))
		dirs = append(dirs, filepath.Join(at, "up", "inst"))
	}
	trace := filepath.Join(t.TempDir(), "trace")
	watched := exec.Command(strace, append([]string{"-f", "-qq", "-y", "-s", "4096", "-e", "trace=%file,%process", "-e", "signal=none", "-o", trace, loader}, dirs...)...)
	var out, said bytes.Buffer
	watched.Stdout, watched.Stderr, watched.Env = &out, &said, []string{"CANARY=canary-of-the-process"}
	if err := watched.Run(); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	loaded := 0
	for line := range strings.Lines(out.String()) {
		var told struct {
			Dir     string
			Seconds float64
			Said    string
			Memory  int64
		}
		if err := json.Unmarshal([]byte(line), &told); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch {
		case told.Memory > 256<<20:
			t.Errorf("it took %s at once", config.FormatMemory(told.Memory))
		case told.Memory > 0:
			t.Logf("%d folders took %s at once", loaded, config.FormatMemory(told.Memory))
		default:
			loaded++
		}
		if bound := 10.0; told.Seconds > bound { // the loader allows 3, and the bundler ends a little later
			t.Errorf("%s took %.1f s", told.Dir, told.Seconds)
		}
		if strings.Contains(told.Said, "canary") {
			t.Errorf("%s shows what is outside: %s", told.Dir, told.Said)
		}
	}
	if loaded != len(dirs) {
		t.Errorf("%d of %d folders were loaded: %s", loaded, len(dirs), said.String())
	}
	log, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	opened := judgeTrace(t, string(log), base)
	if opened < len(dirs) {
		t.Errorf("the trace shows only %d files opened below the folders", opened)
	}
}

var (
	// openedAs is an open that succeeded, with the place of what was opened.
	openedAs = regexp.MustCompile(`(?m)^\d+ +(?:<\.\.\. )?open(?:at2?)?\b.* = \d+<(.*)>$`)
	started  = regexp.MustCompile(`(?m)^\d+ +(?:execve|fork|vfork|clone3?)\(.*$`)
	// of the Go runtime: its memory, its clock, its cgroup
	runtimes = regexp.MustCompile(`^/(?:proc/\d+/(?:status|cgroup|mountinfo|maps)|sys/(?:kernel/mm|fs/cgroup|devices/system/cpu)/.*|usr/share/zoneinfo/.*|etc/localtime|dev/null)$`)
	seedDir  = regexp.MustCompile(`^seed\d+/up/inst(?:/|$)`)
)

// judgeTrace gives how many files were opened in folders.
func judgeTrace(t *testing.T, trace, base string) (opened int) {
	t.Helper()
	for _, match := range openedAs.FindAllStringSubmatch(trace, -1) {
		place := match[1]
		if rel, below := strings.CutPrefix(place, base+"/"); below && seedDir.MatchString(rel) {
			opened++
			continue
		}
		if !runtimes.MatchString(place) {
			t.Errorf("opened outside: %s", match[0])
		}
	}
	executions := 0
	for _, call := range started.FindAllString(trace, -1) {
		switch {
		case strings.Contains(call, "execve("):
			executions++
		case !strings.Contains(call, "CLONE_THREAD"):
			t.Errorf("started a process: %s", call)
		}
	}
	if executions != 1 {
		t.Errorf("%d programs were run, want the loader alone", executions)
	}
	return opened
}

// hostileFolder makes up/inst with an Instance in it, and beside it what nobody may reach.
func hostileFolder(t *testing.T, base string, r *rand.Rand) {
	t.Helper()
	inst := filepath.Join(base, "up", "inst")
	if err := os.MkdirAll(inst, 0o755); err != nil {
		t.Fatal(err)
	}
	// All is written through a root: what was made before may be a link that leads out. What can't be written then is as good as written.
	root, err := os.OpenRoot(base)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	below := func(path string) string {
		rel, err := filepath.Rel(base, path)
		if err != nil {
			t.Fatal(err)
		}
		return rel
	}
	put := func(path, text string) {
		if err := root.MkdirAll(below(filepath.Dir(path)), 0o755); err == nil {
			_ = root.WriteFile(below(path), []byte(text), 0o600)
		}
	}
	// node makes what a root has no call for.
	node := func(path string, do func(string) error) {
		if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil && strings.HasPrefix(real+"/", base+"/") {
			_ = do(filepath.Join(real, filepath.Base(path)))
		}
	}
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	for path, text := range map[string]string{
		"outside/creds.json": `{"name":"canary"}`, "outside/token": "canary", "outside/a.ts": `export const x = "canary";`,
		"outside/pkg/package.json": `{"main":"i.js"}`, "outside/pkg/i.js": `export const x = "canary";`, "outside/d/Dockerfile": "FROM canary",
	} {
		put(filepath.Join(base, path), text)
	}
	outward := []string{
		"../../outside", "../../outside/token", "../../outside/creds.json", base + "/outside/a.ts", "../../../outside/pkg", "/etc/passwd", "/proc/self/environ",
		"/dev/zero", "/dev/stdin", "/proc/self/cwd", "/", ".", "..", "loop", "../inst/jr2.config.ts", "missing", base + "/outside", "/proc/1/root/etc",
	}
	names := []string{
		"a.ts", "a.js", "b.json", "package.json", "tsconfig.json", ".env", "ca.pem", "workflows", "workflows/w.ts", "workflows/v.ts", "node_modules",
		"node_modules/p", "node_modules/p/package.json", "node_modules/p/i.js", "node_modules/@jr2/orchestrator/package.json", "node_modules/xstate/package.json",
		"node_modules/zod", "images/default", "images/default/Dockerfile", "images", "sub", "sub/package.json", "sub/a.ts", "loop", "../package.json",
		"../pnpm-workspace.yaml", "../node_modules", "../node_modules/p", "../tsconfig.json", "node_modules/typescript/package.json", "i\nx.ts", "\u202eodd.ts",
		"node_modules/p/sub/package.json", "workflows/_h.ts", strings.Repeat("n", 255), "node_modules/p/deep",
	}
	specifiers := []string{
		"./a.ts", "./a.js", "./b.json", "p", "p/i.js", "p/../../../outside/pkg/i.js", "../../outside/a.ts", base + "/outside/a.ts", "#x", "./sub", "./sub/a.ts", "zod",
		"xstate", "@jr2/orchestrator", "../node_modules/creds.json", "/etc/passwd", "./loop", "node:fs", "./missing", ".", "..", "file:///etc/passwd", "data:text/javascript,1",
		"./workflows/w.ts", "p/deep/i.js", "./" + strings.Repeat("d/", 150) + "a.ts",
	}
	module := func() string {
		var text strings.Builder
		for n := range r.IntN(4) {
			fmt.Fprintf(&text, pick("import * as m%d from %q;\n", "const m%d = await import(%q).catch(() => 0);\n", "export * as m%d from %q;\n"), n, pick(specifiers...))
		}
		text.WriteString(pick("", "", "const n: any = 1; const l = () => import(\"../../\" + n);\n", "const n: any = 1; const l = () => import(`../../../${n}/x`);\n", "for (;;);\n",
			"const a: any = []; for (;;) a.push(new Array(1000).fill(1));\n", "function f(): any { return f(); } f();\n", "throw new Error(\"no\");\n", "\"a\".repeat(1e9);\n",
			"/(a+)+$/.test(\"a\".repeat(60) + \"!\");\n", "{ broken\n", strings.Repeat("[", 5000)+"\n", "await new Promise(() => {});\n"))
		text.WriteString(pick("", "//# sourceMappingURL=../../outside/creds.json\n", "//# sourceMappingURL=file://"+base+"/outside/creds.json\n", "//# sourceMappingURL=loop\n"))
		return text.String()
	}
	manifest := func() string {
		return pick(`{}`, `{"main":"i.js"}`, `{"main":"../../../../outside/a.ts"}`, `{"exports":{".":"./../../outside/a.ts"}}`, `{"exports":{"./*":"./*"}}`, `{"exports":"/etc/passwd"}`,
			`{"imports":{"#x":"../../outside/a.ts"}}`, `{"imports":{"#x":"./../outside/a.ts"}}`, `{"name":"p","exports":{".":{"import":"./i.js"}}}`, `{"workspaces":["inst"]}`,
			`{"sideEffects":["**/**/**/**/*"]}`, `{"exports":`+strings.Repeat(`[`, 3000)+strings.Repeat(`]`, 3000)+`}`, `{ broken`, `[]`, `"x"`, `{"main":{"a":1}}`, `{"version":"1.2.3"}`,
			`{"dependencies":{"@jr2/orchestrator":"`+strings.Repeat("x", 5000)+`"}}`, "\x00\x00")
	}
	put(filepath.Join(inst, config.ConfigFile), module()+`export default { name: "n`+strconv.Itoa(r.IntN(9))+`", harness: { caBundle: "`+pick("ca.pem", "../../outside/token", "/etc/passwd", "loop")+`" } };`+"\n")
	for _, name := range names {
		path := filepath.Join(inst, name)
		if r.IntN(3) > 0 || name == "../node_modules/p" && r.IntN(2) == 0 {
			continue
		}
		_ = root.MkdirAll(below(filepath.Dir(path)), 0o755)
		switch r.IntN(10) {
		case 0, 1, 2:
			_ = root.Symlink(pick(outward...), below(path))
		case 3:
			node(path, func(path string) error { return syscall.Mkfifo(path, 0o600) })
		case 4:
			if file, err := root.Create(below(path)); err == nil {
				_ = errors.Join(file.Truncate(int64(1+r.IntN(3))<<30), file.Close())
			}
		case 5: // /dev/zero, where the test is root
			node(path, func(path string) error { return syscall.Mknod(path, syscall.S_IFCHR|0o600, 1<<8|5) })
		case 6:
			node(path, func(path string) error {
				if len(path) > 100 {
					return nil
				}
				socket, err := net.Listen("unix", path)
				if err == nil {
					socket.(*net.UnixListener).SetUnlinkOnClose(false)
					err = socket.Close()
				}
				return err
			})
		case 7:
			_ = root.MkdirAll(below(path)+"/"+strings.Repeat("d/", 150), 0o755)
		default:
			text := module()
			if strings.HasSuffix(name, ".json") {
				text = pick(manifest(), manifest(), `{"extends":"../../../outside/creds.json"}`)
			}
			put(path, text)
		}
	}
}
