package devcluster

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// RegistryOptions say what registry to start. The zero value is open, speaks HTTP and keeps everything in memory.
type RegistryOptions struct {
	// User and Password, when set, are asked for with basic authentication.
	User, Password string
	// TLS serves HTTPS with a certificate that only Registry.CA vouches for.
	TLS bool
	// Dir keeps images and port for the next start. Default: in memory, a free port.
	Dir string
	// OnRequest sees each request before it is served; from several goroutines.
	OnRequest func(*http.Request)
	// Wrap, when set, stands before the registry: a test makes it fail or slow here.
	Wrap func(http.Handler) http.Handler
}

// A Registry is a container registry on loopback, in this process.
type Registry struct {
	// Host is its address as an image reference names it: 127.0.0.1:PORT.
	Host string
	// CA is the PEM of the certificate authority; empty without TLS.
	CA []byte

	options RegistryOptions
	server  *http.Server
	served  chan error
	mu      sync.Mutex
	counts  map[string]int
}

// StartRegistry starts a registry. ctx bounds the start, Close ends it.
func StartRegistry(ctx context.Context, options RegistryOptions) (*Registry, error) {
	r := &Registry{options: options, counts: map[string]int{}, served: make(chan error, 1)}
	handler, err := r.handler()
	if err != nil {
		return nil, fmt.Errorf("start a registry: %w", err)
	}
	listener, err := r.listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("start a registry: %w", err)
	}
	r.Host = listener.Addr().String()
	r.server = &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	if !options.TLS {
		go served(r.served, func() error { return r.server.Serve(listener) })
		return r, nil
	}
	authority, pair, err := newLoopbackServer("devcluster registry")
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	certificate, err := tls.X509KeyPair(pair.cert, pair.key)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	r.CA = authority.cert
	r.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	// HTTP/1 only: the registry's handler reads bodies under a lock, so that two uploads on one HTTP/2 connection wait for each other.
	r.server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	go served(r.served, func() error { return r.server.ServeTLS(listener, "", "") })
	return r, nil
}

// Close ends the registry.
func (r *Registry) Close() error {
	return errors.Join(r.server.Close(), <-r.served)
}

// Requests is the number of requests of that method so far; of all when method is empty.
func (r *Registry) Requests(method string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[method]
}

// Reference names an image in this registry: repository:tag or repository@digest.
func (r *Registry) Reference(image string) (name.Reference, error) {
	var options []name.Option
	if !r.options.TLS {
		options = append(options, name.Insecure)
	}
	return name.ParseReference(r.Host+"/"+image, options...)
}

// RemoteOptions let go-containerregistry's remote package in: credentials, certificate authority.
func (r *Registry) RemoteOptions(ctx context.Context) []remote.Option {
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(r.Transport())}
	if r.options.User != "" {
		options = append(options, remote.WithAuth(&authn.Basic{Username: r.options.User, Password: r.options.Password}))
	}
	return options
}

// Transport trusts the registry's certificate.
func (r *Registry) Transport() http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if r.CA != nil {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(r.CA)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return transport
}

// WriteDockerConfig writes a config.json with the credentials into dir, which is what DOCKER_CONFIG points to.
func (r *Registry) WriteDockerConfig(dir string) error {
	auths := map[string]any{}
	if r.options.User != "" {
		auth := base64.StdEncoding.EncodeToString([]byte(r.options.User + ":" + r.options.Password))
		auths[r.Host] = map[string]string{"auth": auth}
	}
	data, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "config.json"), data)
}

// handler is the registry below authentication below what a test puts before it.
func (r *Registry) handler() (http.Handler, error) {
	options := []registry.Option{registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)}
	if r.options.Dir != "" {
		blobs := filepath.Join(r.options.Dir, "blobs")
		if err := os.MkdirAll(blobs, 0o700); err != nil {
			return nil, err
		}
		options = append(options, registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)))
	}
	handler := registry.New(options...)
	if r.options.Dir != "" {
		var err error
		if handler, err = keepManifests(handler, filepath.Join(r.options.Dir, "manifests")); err != nil {
			return nil, err
		}
	}
	handler = r.authenticate(handler)
	if r.options.Wrap != nil {
		handler = r.options.Wrap(handler)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		r.counts[""]++
		r.counts[request.Method]++
		r.mu.Unlock()
		if r.options.OnRequest != nil {
			r.options.OnRequest(request)
		}
		handler.ServeHTTP(w, request)
	}), nil
}

func (r *Registry) authenticate(next http.Handler) http.Handler {
	if r.options.User == "" {
		return next
	}
	same := func(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		user, password, _ := request.BasicAuth()
		if !same(user, r.options.User) || !same(password, r.options.Password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="devcluster"`)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`)
			return
		}
		next.ServeHTTP(w, request)
	})
}

// listen takes the port of the last start, if there was one: image references name it.
func (r *Registry) listen(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	if r.options.Dir == "" {
		return config.Listen(ctx, "tcp", net.JoinHostPort(loopback, "0"))
	}
	path := filepath.Join(r.options.Dir, "port")
	port := "0"
	if data, err := os.ReadFile(path); err == nil {
		port = strings.TrimSpace(string(data))
	}
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(loopback, port))
	if err != nil {
		return nil, err
	}
	err = writeFile(path, []byte(strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)))
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}
