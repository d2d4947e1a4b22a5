package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// ConnectOptions say where BuildKit is. The zero value tries BuildKit's default sockets.
type ConnectOptions struct {
	// Address as BUILDKIT_HOST gives it: unix://, tcp://, docker-container://, podman-container://, kube-pod:// or ssh://. Empty
	// means the default sockets: the system's (unix:///run/buildkit/buildkitd.sock on Linux), then the user's below XDG_RUNTIME_DIR.
	Address string
	// ServerName, CACert, Cert and Key are for TLS to a tcp:// address; the last three are file paths. Empty means no TLS.
	ServerName, CACert, Cert, Key string
	// Timeout bounds the wait for an answer per address; 0 means 10 seconds.
	Timeout time.Duration
}

const connectTimeout = 10 * time.Second

// BuildKit is a Builder over BuildKit's own protocol. Close it.
type BuildKit struct {
	client  *client.Client
	address string
}

// Connect finds a BuildKit that answers. When Address is given, nothing else is tried. A *NoBuilderError lists what was tried.
func Connect(ctx context.Context, opts ConnectOptions) (*BuildKit, error) {
	addresses := []string{opts.Address}
	if opts.Address == "" {
		addresses = defaultAddresses()
	}
	failed := &NoBuilderError{}
	for _, address := range addresses {
		c, err := connectTo(ctx, address, opts)
		if err == nil {
			return &BuildKit{client: c, address: address}, nil
		}
		failed.Tried = append(failed.Tried, Attempt{Address: address, Err: err})
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

func defaultAddresses() []string {
	addresses := []string{appdefaults.Address}
	if user := appdefaults.UserAddress(); user != appdefaults.Address {
		addresses = append(addresses, user)
	}
	return addresses
}

func connectTo(ctx context.Context, address string, opts ConnectOptions) (*client.Client, error) {
	if path, ok := socketPath(address); ok {
		if _, err := os.Stat(path); err != nil {
			return nil, err // clearer than what gRPC makes of it
		}
	}
	timeout := opts.Timeout
	if timeout == 0 {
		timeout = connectTimeout
	}
	c, err := client.New(quiet(ctx), address, tlsOptions(opts)...)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	// An old BuildKit does not know the call; that is an answer too.
	if _, err := c.Info(within); err != nil && grpcerrors.Code(err) != codes.Unimplemented {
		c.Close() //nolint:errcheck // the first error counts
		if within.Err() != nil {
			return nil, context.Cause(within)
		}
		return nil, err
	}
	return c, nil
}

func socketPath(address string) (string, bool) {
	const scheme = "unix://"
	if len(address) <= len(scheme) || address[:len(scheme)] != scheme {
		return "", false
	}
	return filepath.Clean(address[len(scheme):]), true
}

func tlsOptions(opts ConnectOptions) []client.ClientOpt {
	var out []client.ClientOpt
	if opts.CACert != "" {
		out = append(out, client.WithServerConfig(opts.ServerName, opts.CACert))
	} else if opts.ServerName != "" || opts.Cert != "" {
		out = append(out, client.WithServerConfigSystem(opts.ServerName))
	}
	if opts.Cert != "" || opts.Key != "" {
		out = append(out, client.WithCredentials(opts.Cert, opts.Key))
	}
	return out
}

// Address is where this BuildKit was found.
func (b *BuildKit) Address() string { return b.address }

// Close ends the connection.
func (b *BuildKit) Close() error { return b.client.Close() }
