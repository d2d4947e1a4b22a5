package render

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/pki"
)

// This file walks a request from a Harness to a host and back, over everything that is rendered: the files that the pod's volumes lay out,
// the Harness's environment, the bootstrap, the script and the certificates. In the place of Envoy stands a reader of its bootstrap that
// does what the few fields say which are used here. It proves that the parts fit each other, and nothing of Envoy.

// aPod is the Instance Harness with its files on disk.
type aPod struct {
	root  string // its containers' mounts lie below, by the container's name
	spec  corev1.PodSpec
	in    Input
	hosts map[string]string // what DNS says, for a host and port
}

// laidOut renders an Input with real certificates and lays out the files of the pod's volumes, as a kubelet would.
func laidOut(t *testing.T, in Input, users ...*corev1.Secret) *aPod {
	t.Helper()
	now := time.Now()
	authority, err := pki.NewAuthority(in.Instance.Name, now)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := pki.Decide(pki.Kept{Authority: &authority}, BoundHosts(in), now).Make(authority, now)
	if err != nil {
		t.Fatal(err)
	}
	in.Certificates = &Certificates{Authority: authority.Cert, Hosts: certs}
	pod := &aPod{root: t.TempDir(), in: in, hosts: map[string]string{}}
	secrets, configMaps := map[string]map[string][]byte{}, map[string]map[string][]byte{}
	for _, secret := range users {
		secrets[secret.Name] = secret.Data
	}
	for _, object := range everything(t, in) {
		switch o := object.(type) {
		case *corev1.Secret:
			secrets[o.Name] = o.Data
		case *corev1.ConfigMap:
			configMaps[o.Name] = map[string][]byte{}
			for key, value := range o.Data {
				configMaps[o.Name][key] = []byte(value)
			}
		case *appsv1.StatefulSet:
			pod.spec = o.Spec.Template.Spec
		}
	}
	volumes := map[string]map[string][]byte{}
	for _, volume := range pod.spec.Volumes {
		switch {
		case volume.Secret != nil:
			volumes[volume.Name] = items(t, secrets[volume.Secret.SecretName], volume.Secret.Items)
		case volume.ConfigMap != nil:
			volumes[volume.Name] = items(t, configMaps[volume.ConfigMap.Name], volume.ConfigMap.Items)
		case volume.Projected != nil:
			volumes[volume.Name] = map[string][]byte{}
			for _, source := range volume.Projected.Sources {
				for path, value := range items(t, secrets[source.Secret.Name], source.Secret.Items) {
					volumes[volume.Name][path] = value
				}
			}
		}
	}
	for _, container := range append(pod.spec.InitContainers, pod.spec.Containers...) {
		for _, mount := range container.VolumeMounts {
			for path, value := range volumes[mount.Name] {
				file := pod.file(container.Name, filepath.Join(mount.MountPath, path))
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, value, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return pod
}

// items are the files of a volume: all keys, or those that are listed, each of which must be there.
func items(t *testing.T, data map[string][]byte, listed []corev1.KeyToPath) map[string][]byte {
	t.Helper()
	if len(listed) == 0 {
		return data
	}
	files := map[string][]byte{}
	for _, item := range listed {
		if data[item.Key] == nil {
			t.Errorf("the key %s is not there, so the pod would not start", item.Key)
		}
		files[item.Path] = data[item.Key]
	}
	return files
}

func (p *aPod) file(container, path string) string { return filepath.Join(p.root, container, path) }

func (p *aPod) read(t *testing.T, container, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(p.file(container, path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (p *aPod) authorities(t *testing.T, container, path string) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(p.read(t, container, path)) {
		t.Fatalf("%s holds no certificate", path)
	}
	return pool
}

// env is a variable of the Harness.
func (p *aPod) env(name string) string {
	for _, e := range p.spec.Containers[0].Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

// dial is the network of the test: DNS knows the hosts of the test.
func (p *aPod) dial(address string) (net.Conn, error) {
	real, known := p.hosts[address]
	if !known {
		return nil, fmt.Errorf("no such host: %s", address)
	}
	return net.Dial("tcp", real)
}

// custodian does what the bootstrap says. It returns the address of the egress listener.
type custodian struct {
	t        *testing.T
	pod      *aPod
	all      map[string]serves
	clusters map[string]*clusterv3.Cluster
	lua      sync.Mutex
}

func (p *aPod) startCustodian(t *testing.T) string {
	t.Helper()
	bootstrap := parsed(t, p.in)
	if string(p.read(t, names.CustodianContainer, p.spec.InitContainers[0].Args[1])) != custodianBootstrap(p.in) {
		t.Error("the Custodian is started with another bootstrap")
	}
	c := &custodian{t: t, pod: p, all: listeners(t, bootstrap), clusters: map[string]*clusterv3.Cluster{}}
	for _, cluster := range bootstrap.StaticResources.Clusters {
		c.clusters[cluster.Name] = cluster
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.egress(conn)
		}
	}()
	return l.Addr().String()
}

// route finds a request's route: an exact domain, else "*".
func route(l serves, host string, connect bool) *routev3.Route {
	for _, domain := range []string{strings.ToLower(host), "*"} {
		for _, virtual := range l.manager.GetRouteConfig().VirtualHosts {
			if virtual.Domains[0] != domain && (len(virtual.Domains) < 2 || virtual.Domains[1] != domain) {
				continue
			}
			for _, r := range virtual.Routes {
				if connect == (r.Match.GetConnectMatcher() != nil) {
					return r
				}
			}
		}
	}
	return nil
}

func (c *custodian) egress(conn net.Conn) {
	defer conn.Close()
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil || request.Method != http.MethodConnect {
		return
	}
	to := c.clusters[route(c.all["egress"], request.Host, true).GetRoute().GetCluster()]
	if to.GetClusterType() == nil {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n") //nolint:errcheck // the client tells
		c.inside(conn, c.all[to.LoadAssignment.Endpoints[0].LbEndpoints[0].GetEndpoint().Address.GetEnvoyInternalAddress().GetServerListenerName()])
		return
	}
	there, err := c.pod.dial(request.Host)
	if err != nil {
		io.WriteString(conn, "HTTP/1.1 503 Service Unavailable\r\n\r\n") //nolint:errcheck // the client tells
		return
	}
	defer there.Close()
	io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n") //nolint:errcheck // the client tells
	go io.Copy(there, conn)                         //nolint:errcheck // the client tells
	io.Copy(conn, there)                            //nolint:errcheck // the client tells
}

// inside speaks for a host on one connection.
func (c *custodian) inside(conn net.Conn, l serves) {
	files := l.tls.CommonTlsContext.TlsCertificates[0]
	pair, err := tls.LoadX509KeyPair(c.pod.file(names.CustodianContainer, files.CertificateChain.GetFilename()), c.pod.file(names.CustodianContainer, files.PrivateKey.GetFilename()))
	if err != nil {
		c.t.Error(err)
		return
	}
	secure := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: l.tls.CommonTlsContext.AlpnProtocols})
	if secure.Handshake() != nil {
		return
	}
	reader := bufio.NewReader(secure)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		answer := httptest.NewRecorder()
		c.answer(answer, request, route(l, request.Host, false))
		result := answer.Result()
		result.ContentLength = int64(answer.Body.Len())
		result.Write(secure) //nolint:errcheck // the client tells
	}
}

func (c *custodian) answer(w http.ResponseWriter, request *http.Request, to *routev3.Route) {
	if direct := to.GetDirectResponse(); direct != nil {
		w.WriteHeader(int(direct.Status))
		return
	}
	seen := swapping{path: request.RequestURI, headers: map[string][]string{}}
	for name, values := range request.Header {
		seen.headers[strings.ToLower(name)] = values
	}
	values := map[string]string{}
	for _, secret := range heldOf(c.t, to.Metadata) {
		values[secret.Name] = string(c.pod.read(c.t, names.CustodianContainer, custodianValuesDir+"/"+secret.Name))
	}
	c.lua.Lock()
	seen = swapped(c.t, values, heldOf(c.t, to.Metadata), seen)
	c.lua.Unlock()
	out := request.Clone(request.Context())
	out.RequestURI, out.URL.Scheme, out.URL.Host, out.Header = "", "https", request.Host, http.Header{}
	for name, values := range seen.headers {
		for _, value := range values {
			out.Header.Add(name, value)
		}
	}
	response, err := c.upstream(c.clusters[to.GetRoute().GetCluster()]).RoundTrip(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	w.WriteHeader(response.StatusCode)
	io.Copy(w, response.Body) //nolint:errcheck // the client tells
}

func (c *custodian) upstream(cluster *clusterv3.Cluster) http.RoundTripper {
	expected := unpacked[*tlsv3.UpstreamTlsContext](c.t, cluster.TransportSocket.GetTypedConfig())
	validation := expected.CommonTlsContext.GetValidationContext()
	address := cluster.LoadAssignment.Endpoints[0].LbEndpoints[0].GetEndpoint().Address.GetSocketAddress()
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := c.pod.dial(net.JoinHostPort(address.Address, strconv.Itoa(int(address.GetPortValue()))))
			if err != nil {
				return nil, err
			}
			roots := c.pod.authorities(c.t, names.CustodianContainer, validation.TrustedCa.GetFilename())
			secure := tls.Client(conn, &tls.Config{ServerName: validation.MatchTypedSubjectAltNames[0].Matcher.GetExact(), RootCAs: roots})
			return secure, secure.HandshakeContext(ctx)
		},
	}
}

// site is a host of the outer world, with a certificate of its own authority, that tells what it was sent.
func site(t *testing.T, authority pki.Pair, name string) string {
	t.Helper()
	pair, err := pki.NewHost(authority, pki.Host{Name: name}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s got %s %s", name, r.Header.Get("Authorization"), r.Header.Get("X-Token"))
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestARequestThroughTheCustodian(t *testing.T) {
	t.Parallel()
	world, err := pki.NewAuthority("the outer world", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	in := review(t)
	in.CABundle = world.Cert // the user's bundle knows the world of this test
	in.Instance.Secrets[0].Hosts = append(in.Instance.Secrets[0].Hosts, "impostor.example.com")
	pod := laidOut(t, in, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tracker"}, Data: map[string][]byte{"token": []byte("value-of-tracker\n")}})
	stranger, err := pki.NewAuthority("a stranger", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pod.hosts = map[string]string{
		"search.example.com:443": site(t, world, "search.example.com"), "t.example.com:8443": site(t, world, "t.example.com"),
		"other.example.com:443": site(t, world, "other.example.com"), "impostor.example.com:443": site(t, stranger, "impostor.example.com"),
	}
	proxy := pod.startCustodian(t)
	if pod.env("HTTPS_PROXY") != "http://127.0.0.1:15001" || pod.env("SEARCH_KEY") != config.StandIn("SEARCH_KEY") {
		t.Errorf("the Harness is told %q and %q", pod.env("HTTPS_PROXY"), pod.env("SEARCH_KEY"))
	}
	bearer, token := "Bearer "+pod.env("SEARCH_KEY"), pod.env("TRACKER")
	for _, c := range []struct{ url, host, want string }{
		{"https://search.example.com/v1", "", "200 search.example.com got Bearer literal-of-search " + token},
		{"https://SEARCH.example.com/v1", "", "200 search.example.com got Bearer literal-of-search " + token},
		{"https://t.example.com:8443/api/issues", "", "200 t.example.com got " + bearer + " value-of-tracker"},
		{"https://t.example.com:8443/admin", "", "200 t.example.com got " + bearer + " " + token},
		{"https://other.example.com/", "", "200 other.example.com got " + bearer + " " + token},
		{"https://search.example.com/", "other.example.com", "421 "},
		{"https://impostor.example.com/", "", "502 tls: failed to verify certificate"},
	} {
		for _, trust := range []string{pod.env("SSL_CERT_FILE"), pod.env("NODE_EXTRA_CA_CERTS")} {
			got := pod.ask(t, proxy, trust, c.url, c.host, map[string]string{"Authorization": bearer, "X-Token": token})
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("%s as %q: got %q, want %q", c.url, c.host, got, c.want)
			}
		}
	}
	if got := pod.ask(t, proxy, trustDir+"/"+names.UpstreamKey, "https://search.example.com/", "", nil); !strings.Contains(got, "unknown authority") {
		t.Errorf("whom the Custodian trusts is trusted as the Custodian: %s", got)
	}
}

// ask is what a program in the Harness does: it sends a request by the proxy, and trusts the authorities of a file. It gives the status and
// the body, or the error.
func (p *aPod) ask(t *testing.T, proxy, trust, address, host string, headers map[string]string) string {
	t.Helper()
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: proxy}),
		TLSClientConfig: &tls.Config{RootCAs: p.authorities(t, names.HarnessContainer, trust)}, DisableKeepAlives: true,
	}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return fmt.Sprint(response.StatusCode, " ", string(body))
}
