package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jr2.dev/jr2"
	"jr2.dev/jr2/config"
)

// runMain makes the test's own executable the command.
const runMain = "JR2_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if evaluates := len(os.Args) == 2 && os.Args[1] == evaluateName; evaluates || os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// command is the command as a process of its own.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	executable, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), executable, args...)
	cmd.Env = append(os.Environ(), runMain+"=1")
	return cmd
}

func TestUsageErrorsAreOneLine(t *testing.T) {
	isolated(t)
	for _, test := range []struct {
		args []string
		line string
	}{
		{[]string{"downward"}, `error: unknown command "downward" for "jr2"`},
		{[]string{"down", "a", "b"}, `error: accepts at most 1 arg(s), received 2`},
		{[]string{"down", "-o", "yaml"}, `error: --output "yaml": want text or json`},
		{[]string{"plan", "--yes"}, `error: unknown flag: --yes`}, // a plan asks nobody
		{[]string{"apply"}, `error: apply takes one directory, and 0 were given: jr2 apply DIR`},
		{[]string{"apply", ".", "-o", "yaml"}, `error: --output "yaml": want text or json`},
		{[]string{"apply", ".", "--name", "A"}, `error: "A" can't be the name of a set: it takes lower case letters, digits and '-' between them, 63 at most — give another with --name`},
		{[]string{"apply", ".", "--name", "a", "--image", "web"}, `error: --image "web": want NAME=REF or NAME=@DIGEST`},
		{[]string{"apply", ".", "--name", "a", "--prune-data", "state"}, `error: --prune-data "state": want an object as it is printed, such as "PersistentVolumeClaim demo/state"`},
		{[]string{"apply", ".", "--name", "a", "--prune-data", "secret demo/key"}, `error: --prune-data "secret demo/key": only PersistentVolumeClaim, PersistentVolume, Secret, Namespace, CustomResourceDefinition, StatefulSet hold data`},
		{[]string{"apply", "nowhere"}, `error: nowhere: no such file or directory`},
		{[]string{"u"}, `error: unknown command "u" for "jr2"`}, // what is near a command brings no suggestions along
		{[]string{"up", "--colour"}, `error: unknown flag: --colour`},
		{[]string{"up", "-x"}, `error: unknown shorthand flag: 'x' in -x`},
		{[]string{"up", "--context"}, `error: flag needs an argument: --context`},
		{[]string{"up", "--yes=perhaps"}, `error: invalid argument "perhaps" for "--yes" flag: strconv.ParseBool: parsing "perhaps": invalid syntax`},
		{[]string{"up", "a", "b"}, `error: accepts at most 1 arg(s), received 2`},
		{[]string{"up", "-o", "yaml"}, `error: --output "yaml": want text or json`},
		{[]string{"up", "-o", ""}, `error: --output "": want text or json`},
	} {
		s := newSession()
		if err := s.run(t.Context(), test.args...); err == nil {
			t.Errorf("%q: no error", test.args)
		}
		s.silent(t)
		if got := s.err.String(); got != test.line+"\n" {
			t.Errorf("%q: got %q, want %q", test.args, got, test.line)
		}
	}
}

func TestErrorsBeforeAnyCluster(t *testing.T) {
	isolated(t)
	empty, ping := t.TempDir(), instances(t, "ping")
	kubeconfig := filepath.Join(t.TempDir(), "config")
	must(t, os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\nclusters: []\n"), 0o600))
	for name, test := range map[string]struct {
		args  []string
		is    func(error) bool
		lines string
	}{
		"no folder": {
			[]string{filepath.Join(empty, "nowhere")},
			func(err error) bool { return errors.As(err, new(*config.NotFoundError)) },
			"error: no jr2.config.ts in " + filepath.Join(empty, "nowhere") + " or in a folder above it — run this in an Instance folder, or name one\n",
		},
		"a folder without jr2.config.ts": {
			[]string{empty},
			func(err error) bool { return errors.As(err, new(*config.NotFoundError)) },
			"error: no jr2.config.ts in " + empty + " or in a folder above it — run this in an Instance folder, or name one\n",
		},
		"no kube context": {
			[]string{ping}, func(err error) bool { return errors.Is(err, jr2.ErrNoContext) }, "error: " + jr2.ErrNoContext.Error() + "\n",
		},
		"a kubeconfig without contexts": {
			[]string{ping, "--kubeconfig", kubeconfig}, func(err error) bool { return errors.Is(err, jr2.ErrNoContext) }, "error: " + jr2.ErrNoContext.Error() + "\n",
		},
		"no such kubeconfig": {
			[]string{ping, "--kubeconfig", filepath.Join(empty, "none")}, func(err error) bool { return errors.Is(err, os.ErrNotExist) },
			"error: kubeconfig: stat " + filepath.Join(empty, "none") + ": no such file or directory\n",
		},
		"no such context": {
			[]string{ping, "--kubeconfig", kubeconfig, "--context", "other"}, func(err error) bool { return err != nil },
			"error: kubeconfig context \"other\": context \"other\" does not exist\n",
		},
		"embedded with a context": {
			[]string{ping, "--embedded", "--context", "shared"}, func(err error) bool { return err != nil },
			"error: --embedded brings its own cluster: leave out --kubeconfig and --context\n",
		},
		"embedded with a kubeconfig": {
			[]string{ping, "--embedded", "--kubeconfig", kubeconfig}, func(err error) bool { return err != nil },
			"error: --embedded brings its own cluster: leave out --kubeconfig and --context\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession()
			if err := s.run(t.Context(), append([]string{"up"}, test.args...)...); !test.is(err) {
				t.Errorf("got %#v", err)
			}
			s.silent(t)
			if s.err.String() != test.lines {
				t.Errorf("got  %q\nwant %q", s.err, test.lines)
			}
			s = newSession()
			if err := s.run(t.Context(), append([]string{"up", "-o", "json"}, test.args...)...); !test.is(err) {
				t.Errorf("json: got %#v", err)
			}
			if types := s.types(t); types[0] != "version" || types[len(types)-1] != "error" || s.err.String() != "" {
				t.Errorf("json: types %q, stderr %q", types, s.err)
			}
			if want := strings.ReplaceAll(strings.TrimSpace(test.lines), `"`, `\"`); !strings.Contains(s.out.lastLine(), `"message":"`+want+`"`) {
				t.Errorf("json: got %s", s.out.lastLine())
			}
		})
	}
}

func TestHelpOfDown(t *testing.T) {
	s := newSession()
	must(t, s.run(t.Context(), "down", "--help"))
	for _, flag := range []string{"--all", "--context", "--kubeconfig", "-n, --namespace", "--timeout", "--yes", "--embedded", "-o, --output"} {
		if !strings.Contains(s.out.String(), flag) {
			t.Errorf("the help has no %s:\n%s", flag, s.out)
		}
	}
}

// A flag's help that quotes a command would show the command as the type of the flag's value.
func TestFlagsWithoutAValueShowNone(t *testing.T) {
	for _, command := range []string{"up", "plan", "down", "apply"} {
		s := newSession()
		must(t, s.run(t.Context(), command, "--help"))
		if !strings.Contains(s.out.String(), "      --embedded   ") {
			t.Errorf("%s:\n%s", command, s.out)
		}
	}
}

func TestHelp(t *testing.T) {
	s := newSession()
	must(t, s.run(t.Context(), "up", "--help"))
	for _, flag := range []string{"--context", "--kubeconfig", "-n, --namespace", "--yes", "--force", "--embedded", "-o, --output"} {
		if !strings.Contains(s.out.String(), flag) {
			t.Errorf("the help has no %s:\n%s", flag, s.out)
		}
	}
	if s.err.String() != "" {
		t.Errorf("stderr holds %q", s.err)
	}
}

func TestExitCodes(t *testing.T) {
	isolated(t)
	out, err := command(t, "up", "--help").Output()
	if err != nil || !strings.Contains(string(out), "--namespace") {
		t.Errorf("help: %v, %q", err, out)
	}
	out, err = command(t, "up", t.TempDir()).Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || len(out) > 0 || !strings.HasPrefix(string(exit.Stderr), "error: no jr2.config.ts in ") {
		t.Errorf("no folder: %v, %q", err, out)
	}
}

// exitOf is the exit code of a process, -1 when it did not end.
func exitOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

func TestEnvironment(t *testing.T) {
	env := Streams{Env: []string{"A=1", "B=x=y", "EMPTY=", "noise"}}.environ()
	var names []string
	for name := range env {
		names = append(names, name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"A", "B", "EMPTY"}) || env["B"] != "x=y" {
		t.Errorf("got %v", env)
	}
}
