package devcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"jr2.dev/jr2/internal/devcluster/build"
)

// ErrNoBuildkit is the cause where a buildkitd can't run here: not Linux, not root, or nothing to build runc with.
var ErrNoBuildkit = errors.New("no buildkitd here")

// BuildkitOptions say what builder to start. The zero value works.
type BuildkitOptions struct {
	// Dir keeps the builder's cache. Default: a temporary directory, removed by Close.
	Dir string
	// HTTP are registries (host:port) that speak plain HTTP.
	HTTP []string
	// CAs are certificate authorities (PEM) by registry (host:port).
	CAs map[string][]byte
	// TLS makes it listen on a port of loopback, as a remote one, for clients that its own authority vouches for.
	TLS bool
	// CacheDir holds the executables. Default: see build.Cache.
	CacheDir string
	// Log takes progress of the executables' build. Default: silent.
	Log func(line string)
}

// A Buildkitd is a BuildKit daemon that is a child of this process. It can build for the platforms of this machine and for
// those that binfmt_misc knows an interpreter for; it looks again each time it is asked (see Emulated).
type Buildkitd struct {
	// Address is what BUILDKIT_HOST takes: unix://…, or tcp://… with TLS.
	Address string
	// CACert, Cert and Key are the files that a client needs with TLS.
	CACert, Cert, Key string

	dir     *workdir
	spawner *spawner
	process *process
	// socketDir is set where the socket can't be in dir.
	socketDir string
	closing   sync.Once
}

// TrustRegistry adds what the builder has to know to talk to the registry.
func (o *BuildkitOptions) TrustRegistry(r *Registry) {
	if r.CA == nil {
		o.HTTP = append(o.HTTP, r.Host)
		return
	}
	if o.CAs == nil {
		o.CAs = map[string][]byte{}
	}
	o.CAs[r.Host] = r.CA
}

// StartBuildkitd starts a builder and returns when it takes calls. ctx bounds the start, Close ends it.
func StartBuildkitd(ctx context.Context, options BuildkitOptions) (*Buildkitd, error) {
	if err := CanBuildkit(); err != nil {
		return nil, err
	}
	cache := &build.Cache{Dir: options.CacheDir, Log: options.Log}
	runc, err := cache.Ensure(ctx, build.Runc())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoBuildkit, err)
	}
	buildkit, err := cache.Ensure(ctx, build.Buildkit())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoBuildkit, err)
	}
	dir, err := openWorkdir(options.Dir)
	if err != nil {
		return nil, err
	}
	b := &Buildkitd{dir: dir, spawner: newSpawner()}
	if err := b.start(ctx, options, filepath.Join(buildkit, "buildkitd"), filepath.Join(runc, "runc")); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Buildkitd) start(ctx context.Context, options BuildkitOptions, buildkitd, runc string) error {
	config, err := b.config(options, runc)
	if err != nil {
		return err
	}
	configPath := b.dir.path("buildkitd.toml")
	if err := writeFile(configPath, config); err != nil {
		return err
	}
	flags, err := b.listen(options.TLS)
	if err != nil {
		return err
	}
	arguments := append([]string{"--config", configPath, "--addr", b.Address}, flags...)
	b.process, err = b.spawner.runContained(b.dir.dir, "buildkitd", buildkitd, arguments...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	network, address, _ := strings.Cut(b.Address, "://")
	return pollWhile(ctx, []*process{b.process}, func(ctx context.Context) error {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// listen decides where the builder listens, and gives the flags that go with it.
func (b *Buildkitd) listen(tls bool) ([]string, error) {
	if !tls {
		socket, err := b.socket()
		b.Address = "unix://" + socket
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	b.Address = "tcp://" + net.JoinHostPort(loopback, strconv.Itoa(port))
	authority, pair, err := newLoopbackServer("devcluster buildkitd")
	if err != nil {
		return nil, err
	}
	b.CACert, b.Cert, b.Key = b.dir.path("ca.pem"), b.dir.path("cert.pem"), b.dir.path("key.pem")
	for path, data := range map[string][]byte{b.CACert: authority.cert, b.Cert: pair.cert, b.Key: pair.key} {
		if err := writeFile(path, data); err != nil {
			return nil, err
		}
	}
	return []string{"--tlscacert", b.CACert, "--tlscert", b.Cert, "--tlskey", b.Key}, nil
}

// Close ends the builder with all builds, and removes its cache unless BuildkitOptions.Dir is set.
func (b *Buildkitd) Close() error {
	var err error
	b.closing.Do(func() {
		if b.process != nil {
			b.process.stop(10 * time.Second)
		}
		b.spawner.close()
		if b.socketDir != "" {
			err = os.RemoveAll(b.socketDir)
		}
		err = errors.Join(err, b.dir.close())
	})
	return err
}

// socket is where the builder listens. The address of a socket has room for about 100 bytes.
func (b *Buildkitd) socket() (string, error) {
	if socket := b.dir.path("buildkitd.sock"); len(socket) <= 100 {
		return socket, nil
	}
	var err error
	if b.socketDir, err = os.MkdirTemp("", "devcluster-"); err != nil {
		return "", err
	}
	return filepath.Join(b.socketDir, "buildkitd.sock"), nil
}

// config is buildkitd.toml. TOML's strings are close enough to Go's for paths and addresses.
func (b *Buildkitd) config(options BuildkitOptions, runc string) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "root = %q\n\n[grpc]\n", b.dir.path("root"))
	fmt.Fprintf(&out, "\n[worker.oci]\n  enabled = true\n  binary = %q\n", runc)
	fmt.Fprint(&out, "\n[worker.containerd]\n  enabled = false\n")
	// A test registers an interpreter and wants to see it.
	fmt.Fprint(&out, "\n[system]\n  platformsCacheMaxAge = \"1s\"\n")
	for _, host := range options.HTTP {
		fmt.Fprintf(&out, "\n[registry.%q]\n  http = true\n", host)
	}
	for host, ca := range options.CAs {
		path := b.dir.path(strings.ReplaceAll(host, ":", "_") + ".pem")
		if err := writeFile(path, ca); err != nil {
			return nil, err
		}
		// Loopback would be plain HTTP otherwise.
		fmt.Fprintf(&out, "\n[registry.%q]\n  http = false\n  ca = [%q]\n", host, path)
	}
	return out.Bytes(), nil
}
