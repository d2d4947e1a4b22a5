package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"jr2.dev/jr2"
)

// sshKey is a new private key, sealed by a passphrase where one is given, and its fingerprint.
func sshKey(t *testing.T, passphrase string) (text, fingerprint string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	must(t, err)
	seen, err := ssh.NewPublicKey(public)
	must(t, err)
	return string(pem.EncodeToMemory(block)), ssh.FingerprintSHA256(seen)
}

// sshHome fills ~/.ssh as people have it, and returns the path and the fingerprint of the one key in it that fits.
func sshHome(t *testing.T) (fits, fingerprint string) {
	t.Helper()
	home, err := os.UserHomeDir()
	must(t, err)
	dir := filepath.Join(home, ".ssh")
	must(t, os.MkdirAll(filepath.Join(dir, "sockets"), 0o700))
	sealed, _ := sshKey(t, "word")
	open, fingerprint := sshKey(t, "")
	for name, text := range map[string]string{
		"id_open": open, "id_sealed": sealed, "id_open.pub": "ssh-ed25519 AAAA me@desk\n", "known_hosts": "h.test ssh-ed25519 AAAA\n", "config": "Host *\n",
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return filepath.Join(dir, "id_open"), fingerprint
}

func TestDeployKeyFlag(t *testing.T) {
	isolated(t)
	fits, fingerprint := sshHome(t)
	for name, test := range map[string]struct {
		up     up
		source jr2.DeployKeySource
	}{
		"generate":                   {up{deployKey: "generate"}, jr2.DeployKeySource{Generate: true}},
		"a path":                     {up{deployKey: fits}, jr2.DeployKeySource{File: fits}},
		"a home that no shell put":   {up{deployKey: "~/.ssh/id_open"}, jr2.DeployKeySource{File: fits}},
		"a path, and --yes":          {up{deployKey: fits, options: jr2.Options{Yes: true}}, jr2.DeployKeySource{File: fits}},
		"a file called generate":     {up{deployKey: "./generate"}, jr2.DeployKeySource{File: "./generate"}},
		"nobody to ask, and no flag": {up{}, jr2.DeployKeySource{}},
	} {
		test.up.streams.In = strings.NewReader("")
		test.up.askForKeys(t.Context())
		ask := test.up.options.DeployKey
		if test.source == (jr2.DeployKeySource{}) {
			if ask != nil {
				t.Errorf("%s: somebody is asked", name)
			}
			continue
		}
		if source, err := ask(t.Context(), jr2.DeployKeyRequest{}); err != nil || source != test.source {
			t.Errorf("%s: got %+v, %v", name, source, err)
		}
	}
	if got, err := (jr2.DeployKeySource{File: fits}).Fingerprint(t.Context()); err != nil || got != fingerprint {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestReadKey: a key ends with its last line, whatever the line ends are, and takes nothing of what follows.
func TestReadKey(t *testing.T) {
	t.Parallel()
	key, _ := sshKey(t, "")
	for name, test := range map[string]struct{ typed, want, left string }{
		"pasted":                 {strings.ReplaceAll(key, "\n", "\r") + "2\r", key, "2\r"},
		"from Windows":           {strings.ReplaceAll(key, "\n", "\r\n"), strings.TrimSuffix(key, "\n") + "\n", "\n"},
		"plain lines":            {key + "x", key, "x"},
		"within marks":           {"\x1b[200~" + strings.ReplaceAll(key, "\n", "\r") + "\x1b[201~", key, "\x1b[201~"},
		"no key, and ended":      {"hunter2\r\x04y", "hunter2\n", "y"},
		"lines that are empty":   {"\r\r\x04", "\n\n", ""},
		"no key, and no end":     {"hunter2", "hunter2", ""},
		"thought better of":      {key[:70] + "\x03y", "", "y"},
		"a certificate before":   {"-----END CERTIFICATE-----\r" + key, "-----END CERTIFICATE-----\n" + key, ""},
		"more than any key can":  {strings.Repeat("x", longestKey+5), strings.Repeat("x", longestKey+1), "xxxx"},
		"nothing, and that ends": {"", "", ""},
	} {
		in := strings.NewReader(test.typed)
		got, err := readKey(t.Context(), in)
		left, _ := io.ReadAll(in)
		if err != nil || got != test.want || string(left) != test.left {
			t.Errorf("%s: got %q and left %q, %v", name, got, left, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	never, writer := io.Pipe()
	defer writer.Close() //nolint:errcheck // the test is over
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := readKey(ctx, never); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
