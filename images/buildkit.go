package images

import "context"

// ConnectOptions say where BuildKit is. The zero value tries BuildKit's default sockets.
type ConnectOptions struct {
	// Address as BUILDKIT_HOST gives it: unix://, tcp://, docker-container://, podman-container://, kube-pod:// or ssh://.
	Address string
	// ServerName, CACert, Cert and Key are for TLS to a tcp:// address; the last three are file paths. Empty means no TLS.
	ServerName, CACert, Cert, Key string
}

// BuildKit is a Builder over BuildKit's own protocol.
type BuildKit struct{}

// Connect finds a BuildKit that answers. A *NoBuilderError lists what was tried.
func Connect(ctx context.Context, opts ConnectOptions) (*BuildKit, error) { return nil, nil }
