package devcluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
)

// A Proxy stands in front of an API server and changes what passes, as an older, a busier or a broken one would.
type Proxy struct {
	config *rest.Config
	server *http.Server
	served chan error
}

// A Wrapper changes requests and responses. httputil and http.RoundTripper rules hold: it may answer by itself.
type Wrapper func(http.RoundTripper) http.RoundTripper

// StartProxy starts a proxy on loopback for the API server of config. A request that brings its own Authorization goes on
// with it; any other goes on as the user of config. The first wrapper is the closest to the client. ctx bounds the start.
func StartProxy(ctx context.Context, config *rest.Config, wrappers ...Wrapper) (*Proxy, error) {
	upstream, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("the API server's address: %w", err)
	}
	transport, err := upstreamTransport(config)
	if err != nil {
		return nil, err
	}
	for i := len(wrappers) - 1; i >= 0; i-- {
		transport = wrappers[i](transport)
	}
	authority, pair, err := newLoopbackServer("devcluster proxy")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.cert, pair.key)
	if err != nil {
		return nil, err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return nil, err
	}
	quiet := log.New(io.Discard, "", 0)
	p := &Proxy{
		config: &rest.Config{
			Host:            "https://" + listener.Addr().String(),
			TLSClientConfig: rest.TLSClientConfig{CAData: authority.cert},
			QPS:             config.QPS,
		},
		server: &http.Server{
			Handler: &httputil.ReverseProxy{
				Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
				// At once: a watch sends an event now and then, and the client waits for it.
				FlushInterval: -1,
				Transport:     transport,
				ErrorLog:      quiet,
			},
			TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
			ErrorLog:          quiet,
			ReadHeaderTimeout: time.Minute,
		},
		served: make(chan error, 1),
	}
	go served(p.served, func() error { return p.server.ServeTLS(listener, "", "") })
	return p, nil
}

// Config is for the proxy what the config given to StartProxy is for the API server. Each call returns a copy of its own.
func (p *Proxy) Config() *rest.Config { return rest.CopyConfig(p.config) }

// WriteKubeconfig adds a context for the proxy to the file, as Cluster.WriteKubeconfig does.
func (p *Proxy) WriteKubeconfig(path, contextName string) error {
	return WriteKubeconfig(path, contextName, p.config)
}

// Close ends the proxy and all that passes through it, watches too.
func (p *Proxy) Close() error {
	return errors.Join(p.server.Close(), <-p.served)
}

// served reports why a server has stopped, unless it was told to. The channel is closed, so that a second Close finds nil.
func served(result chan<- error, serve func() error) {
	defer close(result)
	if err := serve(); !errors.Is(err, http.ErrServerClosed) {
		result <- err
	}
}

// upstreamTransport sends a request with the credentials it brings, or else with those of config.
func upstreamTransport(config *rest.Config) (http.RoundTripper, error) {
	withConfig, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	// rest's own transport already keeps an Authorization that a request brings for tokens and passwords; a client
	// certificate would win over it.
	anonymous, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, err
	}
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("Authorization") != "" {
			return anonymous.RoundTrip(r)
		}
		return withConfig.RoundTrip(r)
	}), nil
}

// RoundTripper is a function as an http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
