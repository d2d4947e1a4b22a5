package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2"
)

// keyedInstance binds two repositories over ssh, each with a Secret of its own.
func keyedInstance(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keyed")
	must(t, os.MkdirAll(filepath.Join(dir, "workflows"), 0o755))
	raw, err := os.ReadFile(filepath.Join(instances(t, "hold"), "workflows", "hold.ts"))
	must(t, err)
	for name, text := range map[string]string{
		"jr2.config.ts": `import { defineConfig } from "@jr2/orchestrator";
export default defineConfig({ git: { credentials: [{ match: "git.test/", sshKey: "one-ssh" }, { match: "other.test/", sshKey: "two-ssh" }] } });
`,
		"workflows/one.ts": strings.Replace(string(raw), "https://git.example.test/team/app.git", "git@git.test:a.git", 1),
		"workflows/two.ts": strings.Replace(string(raw), "https://git.example.test/team/app.git", "git@other.test:b.git", 1),
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

// testDeployKeys answers the menu: a key that does not do is asked for again, what is pasted is not shown, and a key that is generated is waited for.
func (s *stage) testDeployKeys(t *testing.T) {
	fits, fingerprint := sshHome(t)
	dir := keyedInstance(t)
	args := func(namespace string, more ...string) []string {
		args := s.args(namespace, more...)
		args[1] = dir
		return args
	}
	sealed := filepath.Join(filepath.Dir(fits), "id_sealed")
	menu := "where is the key in Secret \"one-ssh\" to come from?\n  1  generate one that nothing else uses (recommended)\n  2  " + fits + " — " + fingerprint +
		"\n  3  another private key of this machine\n  4  paste a private key\n     " + sealed + " can't be used: it has a passphrase\n1 to 4, or anything else to stop: "
	begin := func(t *testing.T, namespace string) (run *session, types func(string), shown *screen, ended <-chan error) {
		run = newSession()
		keyboard, tty := terminal(t)
		run.in = tty
		shown = newScreen()
		go func() { // what a terminal shows of what is typed
			part := make([]byte, 1024)
			for {
				n, err := keyboard.Read(part)
				if err != nil {
					return
				}
				shown.Write(part[:n]) //nolint:errcheck // it can't fail
			}
		}()
		types = func(keys string) {
			_, err := keyboard.WriteString(keys)
			must(t, err)
		}
		ended = run.start(t.Context(), args(namespace)...)
		run.err.await(t, "[y/N] ")
		types("y\n")
		run.err.await(t, menu)
		return run, types, shown, ended
	}
	for name, keys := range map[string]string{"nothing": "\n", "a word": "no\n", "a number that is none": "5\n", "a path that is none": "3\n\n", "Ctrl-C while pasting": "4\n\x03"} {
		t.Run(name, func(t *testing.T) {
			run, types, _, ended := begin(t, "unchosen")
			first, second, _ := strings.Cut(keys, "\n")
			types(first + "\n")
			if second != "" {
				run.err.await(t, map[string]string{"3": "its path: ", "4": "nothing is shown"}[first])
				types(second)
			}
			if err := within(t, ended, time.Minute); !errors.Is(err, jr2.ErrDeclined) || !strings.Contains(run.err.lastLine(), `error: deploy key: that of git@git.test:a.git belongs in Secret "one-ssh"`) {
				t.Errorf("got %v\n%s", err, run.err)
			}
			s.isAbsent(t, "unchosen")
		})
	}
	t.Run("chosen", func(t *testing.T) {
		run, types, shown, ended := begin(t, "chosen")
		types("3\n")
		run.err.await(t, "its path: ")
		types(sealed + "\n")
		run.err.await(t, "that does not do: "+sealed+": it has a passphrase")
		types("4\n")
		run.err.await(t, "nothing is shown")
		key, pasted := sshKey(t, "")
		types(strings.ReplaceAll(key, "\n", "\r"))
		run.err.await(t, `where is the key in Secret "two-ssh" to come from?`)
		types("1\n")
		run.err.await(t, "press Enter when it is added, or to go on without: ")
		if strings.Contains(run.err.String(), "\nmodels: ") {
			t.Errorf("it went on:\n%s", run.err)
		}
		types("\n")
		must(t, within(t, ended, 3*time.Minute))
		lines := run.err.lines()
		if len(lines) < 3 || lines[len(lines)-3] != "converged — `jr2 run <workflow>` when ready" || !strings.HasPrefix(lines[len(lines)-1], "  ssh-ed25519 ") {
			t.Errorf("its last words:\n%s", run.err)
		}
		if !strings.Contains(run.err.String(), "deploy key: the key "+pasted+" is in Secret \"one-ssh\"") {
			t.Errorf("got %s", run.err)
		}
		for line := range strings.Lines(key) {
			if word := strings.TrimSpace(line); strings.Contains(shown.String(), word) || strings.Contains(run.err.String(), word) {
				t.Errorf("the terminal shows the key")
			}
		}
		if !strings.Contains(shown.String(), sealed) { // what is to be shown is
			t.Errorf("the terminal shows %q", shown)
		}
		secret, err := s.client.CoreV1().Secrets("chosen").Get(t.Context(), "one-ssh", metav1.GetOptions{})
		must(t, err)
		if kept, err := ssh.ParsePrivateKey(secret.Data["identity"]); err != nil || ssh.FingerprintSHA256(kept.PublicKey()) != pasted {
			t.Errorf("the Secret holds another key than the one that was pasted: %v", err)
		}
	})
	t.Run("a flag", func(t *testing.T) {
		run := newSession()
		err := run.run(t.Context(), args("unchosen", "--yes", "--deploy-key", sealed)...)
		if !errors.Is(err, jr2.ErrPassphrase) || !strings.Contains(run.err.lastLine(), sealed+": it has a passphrase") {
			t.Errorf("got %v\n%s", err, run.err)
		}
		s.isAbsent(t, "unchosen")
	})
}
