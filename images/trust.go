package images

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Transport carries requests to registries whose certificates are signed by an authority of these PEM files, or by one that the system
// trusts. Without files it is go-containerregistry's default. The error names the file that can't be used.
func Transport(caFiles ...string) (http.RoundTripper, error) {
	if len(caFiles) == 0 {
		return remote.DefaultTransport, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a system without authorities
	}
	for _, file := range caFiles {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("certificate authority for registries: %w", err)
		}
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("certificate authority for registries: %s holds no certificate in PEM form", file)
		}
	}
	transport, ok := remote.DefaultTransport.(*http.Transport)
	if !ok { // somebody replaced the library's
		transport = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	transport = transport.Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return transport, nil
}
