package images_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
)

// remoteBuilder starts a buildkitd over TLS and connects to it.
func remoteBuilder(t *testing.T, reg *devcluster.Registry) (*images.BuildKit, images.ConnectOptions) {
	t.Helper()
	options := devcluster.BuildkitOptions{TLS: true}
	options.TrustRegistry(reg)
	daemon, err := devcluster.StartBuildkitd(t.Context(), options)
	skipWithout(t, err, devcluster.ErrNoBuildkit)
	t.Cleanup(func() { must(t, daemon.Close()) })
	connect := images.ConnectOptions{Address: daemon.Address, CACert: daemon.CACert, Cert: daemon.Cert, Key: daemon.Key}
	far, err := images.Connect(t.Context(), connect)
	must(t, err)
	t.Cleanup(func() { must(t, far.Close()) })
	return far, connect
}

// testWrongTLS: each way to be wrong about certificates is one clear error; the ways to be right are those of buildctl.
func testWrongTLS(t *testing.T, right images.ConnectOptions) {
	dir := filepath.Dir(right.CACert) // it holds ca.pem, cert.pem and key.pem
	other := t.TempDir()
	for name, from := range map[string]string{"ca.crt": right.CACert, "tls.crt": right.Cert, "tls.key": right.Key} {
		must(t, os.Symlink(from, filepath.Join(other, name)))
	}
	half := t.TempDir()
	must(t, os.Symlink(right.CACert, filepath.Join(half, "ca.pem")))
	for what, c := range map[string]struct {
		opts images.ConnectOptions
		word string // empty when it is right
	}{
		"a folder":               {images.ConnectOptions{TLSDir: dir}, ""},
		"a folder, other names":  {images.ConnectOptions{TLSDir: other}, ""},
		"the name in it":         {images.ConnectOptions{TLSDir: dir, ServerName: "localhost"}, ""},
		"another name":           {images.ConnectOptions{TLSDir: dir, ServerName: "builder.test"}, "builder.test"},
		"half a folder":          {images.ConnectOptions{TLSDir: half}, "holds neither cert.pem nor tls.crt"},
		"a folder and a file":    {images.ConnectOptions{TLSDir: dir, Key: right.Key}, "exclude each other"},
		"no certificate of ours": {images.ConnectOptions{CACert: right.CACert}, "certificate required"},
		"no authority":           {images.ConnectOptions{Cert: right.Cert, Key: right.Key}, "unknown authority"},
		"no TLS":                 {images.ConnectOptions{}, ""},
		"a file that is missing": {images.ConnectOptions{CACert: "/nowhere/ca.pem"}, "no such file"},
	} {
		c.opts.Address, c.opts.Timeout = right.Address, 2*time.Second
		b, err := images.Connect(t.Context(), c.opts)
		if c.word == "" && what != "no TLS" {
			must(t, err)
			must(t, b.Close())
			continue
		}
		var none *images.NoBuilderError
		told := err != nil && strings.Contains(err.Error(), c.word)
		// Who asks for a certificate of ours says so by an alert and closes; a write on the closed connection may come before the alert is read.
		closed := err != nil && c.word == "certificate required" && (strings.Contains(err.Error(), "broken pipe") || strings.Contains(err.Error(), "connection reset"))
		if !errors.As(err, &none) || len(none.Tried) != 1 || !told && !closed {
			t.Errorf("%s: %v", what, err)
		}
	}
}
