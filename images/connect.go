package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/buildkit/client"

	// The schemes of BUILDKIT_HOST beside unix:// and tcp://.
	_ "github.com/moby/buildkit/client/connhelper/dockercontainer"
	_ "github.com/moby/buildkit/client/connhelper/kubepod"
	_ "github.com/moby/buildkit/client/connhelper/podmancontainer"
	_ "github.com/moby/buildkit/client/connhelper/ssh"
	"github.com/moby/buildkit/util/appdefaults"
	"github.com/moby/buildkit/util/grpcerrors"
	"google.golang.org/grpc/codes"
)

// ConnectOptions say where BuildKit is. The zero value looks in all places that Connect names.
type ConnectOptions struct {
	// Address as BUILDKIT_HOST gives it: unix://, tcp://, docker-container://, podman-container://, kube-pod:// or ssh://. When it is
	// given nothing else is tried.
	Address string
	// ServerName, CACert, Cert and Key are for TLS to a tcp:// address; the last three are file paths. Empty means no TLS.
	ServerName, CACert, Cert, Key string
	// TLSDir is a folder with the three files, as ca.pem, cert.pem and key.pem or as ca.crt, tls.crt and tls.key; empty means none. It
	// excludes CACert, Cert and Key.
	TLSDir string
	// Timeout bounds the wait for an answer per place; 0 means 10 seconds.
	Timeout time.Duration
	// Env is where Docker's variables are looked up (DOCKER_HOST, DOCKER_CONTEXT, DOCKER_CONFIG, DOCKER_TLS, DOCKER_TLS_VERIFY,
	// DOCKER_CERT_PATH, HOME), and those of places (XDG_RUNTIME_DIR); nil means the environment of the process.
	Env map[string]string
	// Buildkitd is the executable that is started when nothing else answers; empty means buildkitd of PATH.
	Buildkitd string
	// BuildkitdRoot is where that keeps its cache; empty means jr2/buildkit in the user's cache folder.
	BuildkitdRoot string
	// Registries are told to that buildkitd. Every other builder has a configuration of its own.
	Registries RegistryRules

	find bool // start nothing: that a buildkitd could be started is errStartable
}

const connectTimeout = 10 * time.Second

// A Place is where a builder was found, or looked for.
type Place struct {
	// What it is in words, such as "Docker Engine 29.1.2".
	What    string
	Address string
	// Why it was looked for there.
	Why string
}

func (p Place) String() string {
	text := p.What
	if p.Address != "" {
		text += " at " + p.Address
	}
	if p.Why != "" {
		text += " (" + p.Why + ")"
	}
	return text
}

// BuildKit is a Builder over BuildKit's own protocol. Close it.
type BuildKit struct {
	client *client.Client
	place  Place
	engine *engine // nil unless it is a Docker Engine's
	closes []func() error
	drain  time.Duration // what a cancelled build gets to end; 0 means drainTimeout
}

// Connect finds a BuildKit that answers, in this order:
//
//  1. Address, and nothing else when it is given;
//  2. a buildkitd at BuildKit's default sockets: the system's (unix:///run/buildkit/buildkitd.sock on Linux), then the user's below
//     XDG_RUNTIME_DIR;
//  3. the BuildKit in the Docker Engine that the docker command would use: DOCKER_HOST, else DOCKER_CONTEXT, else the current docker
//     context, else the default socket;
//  4. a buildkitd of our own, started as a child process until Close; Linux, as root.
//
// A *NoBuilderError lists what was tried.
func Connect(ctx context.Context, opts ConnectOptions) (*BuildKit, error) {
	failed := &NoBuilderError{}
	for _, try := range opts.places() {
		b, place, err := try(ctx)
		if err == nil {
			b.place = place
			return b, nil
		}
		failed.Tried = append(failed.Tried, Attempt{Place: place, Err: err})
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// A finder looks at one place.
type finder func(context.Context) (*BuildKit, Place, error)

func (o ConnectOptions) places() []finder {
	if o.Address != "" {
		return []finder{o.daemon(Place{What: "BuildKit", Address: o.Address, Why: "named by BUILDKIT_HOST or the options"})}
	}
	var all []finder
	for i, address := range o.defaultSockets() {
		why := "the system's socket"
		if i > 0 {
			why = "the user's socket"
		}
		all = append(all, o.daemon(Place{What: "BuildKit", Address: address, Why: why}))
	}
	return append(all, o.dockerEngine, o.child)
}

func (o ConnectOptions) defaultSockets() []string {
	addresses := []string{appdefaults.Address}
	user := appdefaults.UserAddress()
	if o.Env != nil {
		user = appdefaults.Address
		if dir := o.Env["XDG_RUNTIME_DIR"]; dir != "" {
			user = "unix://" + filepath.Join(dir, "buildkit", "buildkitd.sock")
		}
	}
	if user != appdefaults.Address {
		addresses = append(addresses, user)
	}
	return addresses
}

func (o ConnectOptions) env(key string) string {
	if o.Env == nil {
		return os.Getenv(key)
	}
	return o.Env[key]
}

func (o ConnectOptions) timeout() time.Duration {
	if o.Timeout == 0 {
		return connectTimeout
	}
	return o.Timeout
}

// daemon looks for a buildkitd at an address.
func (o ConnectOptions) daemon(place Place) finder {
	return func(ctx context.Context) (*BuildKit, Place, error) {
		if path, ok := socketPath(place.Address); ok {
			if _, err := os.Stat(path); err != nil {
				return nil, place, err // clearer than what gRPC makes of it
			}
		}
		options, err := o.tls()
		if err != nil {
			return nil, place, err
		}
		c, err := client.New(quiet(ctx), place.Address, options...)
		if err != nil {
			return nil, place, err
		}
		if err := o.answers(ctx, c); err != nil {
			return nil, place, errors.Join(err, c.Close())
		}
		return &BuildKit{client: c, closes: []func() error{c.Close}}, place, nil
	}
}

// answers asks for a sign of life.
func (o ConnectOptions) answers(ctx context.Context, c *client.Client) error {
	within, cancel := context.WithTimeoutCause(ctx, o.timeout(), fmt.Errorf("no answer within %s", o.timeout()))
	defer cancel()
	_, err := c.Info(within)
	switch {
	case err == nil, grpcerrors.Code(err) == codes.Unimplemented: // an old BuildKit does not know the call; that is an answer too
		return nil
	case within.Err() != nil:
		return context.Cause(within)
	}
	return err
}

func socketPath(address string) (string, bool) {
	path, ok := strings.CutPrefix(address, "unix://")
	if !ok || path == "" {
		return "", false
	}
	return filepath.Clean(path), true
}

// Place says which builder this is, where it was found and why it was looked for there.
func (b *BuildKit) Place() Place { return b.place }

// Address is where this BuildKit was found.
func (b *BuildKit) Address() string { return b.place.Address }

// Close ends the connection, and the builder when it is our child.
func (b *BuildKit) Close() error {
	var errs []error
	for _, c := range b.closes {
		errs = append(errs, c())
	}
	b.closes = nil
	return errors.Join(errs...)
}
