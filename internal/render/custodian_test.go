package render

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/bootstrap/internal_listener/v3" // the kinds that a bootstrap may name
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dynamic_forward_proxy/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/dynamic_forward_proxy/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
)

// parsed reads a bootstrap by Envoy's own schema, strictly, and checks every rule that the schema states, also in the extensions. Envoy
// itself checks more when it starts; no Envoy runs here.
func parsed(t *testing.T, in Input) *bootstrapv3.Bootstrap {
	t.Helper()
	bootstrap := &bootstrapv3.Bootstrap{}
	if err := protojson.Unmarshal([]byte(custodianBootstrap(in)), bootstrap); err != nil {
		t.Fatal(err)
	}
	if err := bootstrap.ValidateAll(); err != nil {
		t.Fatal(err)
	}
	validateAny(t, bootstrap.ProtoReflect())
	return bootstrap
}

// validateAny validates what lies in the Any fields, to which a message's own validation does not descend.
func validateAny(t *testing.T, m protoreflect.Message) {
	t.Helper()
	if packed, ok := m.Interface().(*anypb.Any); ok {
		inner, err := packed.UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := inner.(interface{ ValidateAll() error }); ok {
			if err := v.ValidateAll(); err != nil {
				t.Errorf("%s: %v", packed.TypeUrl, err)
			}
		}
		validateAny(t, inner.ProtoReflect())
		return
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsMap():
			if field.MapValue().Message() != nil {
				value.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { validateAny(t, v.Message()); return true })
			}
		case field.IsList():
			for i := range value.List().Len() {
				validateAny(t, value.List().Get(i).Message())
			}
		default:
			validateAny(t, value.Message())
		}
		return true
	})
}

func unpacked[T proto.Message](t *testing.T, packed *anypb.Any) T {
	t.Helper()
	m, err := packed.UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	return m.(T)
}

// serves is one listener of a Custodian, as far as a client sees it.
type serves struct {
	at      string
	manager *hcmv3.HttpConnectionManager
	tls     *tlsv3.DownstreamTlsContext
}

func listeners(t *testing.T, bootstrap *bootstrapv3.Bootstrap) map[string]serves {
	t.Helper()
	all := map[string]serves{}
	for _, l := range bootstrap.StaticResources.Listeners {
		chain := l.FilterChains[0]
		s := serves{at: "inside", manager: unpacked[*hcmv3.HttpConnectionManager](t, chain.Filters[0].GetTypedConfig())}
		if l.Address != nil {
			s.at = fmt.Sprintf("%s:%d", l.Address.GetSocketAddress().Address, l.Address.GetSocketAddress().GetPortValue())
		}
		if chain.TransportSocket != nil {
			s.tls = unpacked[*tlsv3.DownstreamTlsContext](t, chain.TransportSocket.GetTypedConfig())
		}
		all[l.Name] = s
	}
	return all
}

// clustersOf are the clusters by name: their type, and of those that speak TLS, whom they expect.
func clustersOf(t *testing.T, bootstrap *bootstrapv3.Bootstrap) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, c := range bootstrap.StaticResources.Clusters {
		text := c.GetType().String()
		if c.GetClusterType() != nil {
			text = c.GetClusterType().Name
		}
		for _, endpoint := range c.GetLoadAssignment().GetEndpoints() {
			address := endpoint.LbEndpoints[0].GetEndpoint().Address
			if inside := address.GetEnvoyInternalAddress(); inside != nil {
				text += " " + inside.GetServerListenerName()
			} else {
				text += fmt.Sprintf(" %s %d", address.GetSocketAddress().Address, address.GetSocketAddress().GetPortValue())
			}
		}
		if c.TransportSocket != nil {
			tls := unpacked[*tlsv3.UpstreamTlsContext](t, c.TransportSocket.GetTypedConfig())
			validation := tls.CommonTlsContext.GetValidationContext()
			san := validation.MatchTypedSubjectAltNames[0]
			text += fmt.Sprintf(" sni %q san %s %s by %s", tls.Sni, san.SanType, san.Matcher.GetExact(), validation.TrustedCa.GetFilename())
		}
		all[c.Name] = text
	}
	return all
}

// Without held secrets a Custodian answers the kubelet on every address and the Harness on the loopback address alone; it leads to the
// Orchestrator of its namespace, and has neither an egress nor an admin listener.
func TestCustodianBootstrap(t *testing.T) {
	t.Parallel()
	in := hold(t)
	in.Namespace = "team-review"
	bootstrap := parsed(t, in)
	all := listeners(t, bootstrap)
	if all["health"].at != "0.0.0.0:15021" || all["control"].at != "127.0.0.1:8081" || len(all) != 2 || bootstrap.Admin != nil {
		t.Errorf("listeners %v", all)
	}
	if got := clustersOf(t, bootstrap); !reflect.DeepEqual(got, map[string]string{"orchestrator": "STRICT_DNS jr2-orchestrator.team-review.svc 4000"}) {
		t.Errorf("clusters %v", got)
	}
}

// bound holds secrets for hosts of all shapes.
func bound(t *testing.T) Input {
	in := review(t)
	in.Instance.Secrets = append(in.Instance.Secrets,
		config.HeldSecret{Name: "OPENAI_API_KEY", Value: config.NewSecret("v")},
		config.HeldSecret{Name: "NEAR", Value: config.NewSecret("v"), Hosts: []string{"192.0.2.7:6443", "2001:db8::1"}, Headers: []string{"x-near"}},
	)
	in.Certificates = StandInCertificates(in)
	return in
}

func TestCustodianOfHeldSecrets(t *testing.T) {
	t.Parallel()
	bootstrap := parsed(t, bound(t))
	trust := "by /etc/jr2/ca/upstream.crt"
	v6 := BoundHosts(bound(t))[slices.IndexFunc(boundHosts(bound(t)), func(b boundHost) bool { return b.Host == "2001:db8::1" })].Stem()
	want := map[string]string{
		"orchestrator":                  "STRICT_DNS jr2-orchestrator.team-review.svc 4000",
		"elsewhere":                     "envoy.clusters.dynamic_forward_proxy",
		"inside/192.0.2.7-6443":         "STATIC inside/192.0.2.7-6443",
		"host/192.0.2.7-6443":           `STATIC 192.0.2.7 6443 sni "" san IP_ADDRESS 192.0.2.7 ` + trust,
		"inside/" + v6:                  "STATIC inside/" + v6,
		"host/" + v6:                    `STATIC 2001:db8::1 443 sni "" san IP_ADDRESS 2001:db8::1 ` + trust,
		"inside/api.openai.com-443":     "STATIC inside/api.openai.com-443",
		"host/api.openai.com-443":       `LOGICAL_DNS api.openai.com 443 sni "api.openai.com" san DNS api.openai.com ` + trust,
		"inside/models.example.com-443": "STATIC inside/models.example.com-443",
		"host/models.example.com-443":   `LOGICAL_DNS models.example.com 443 sni "models.example.com" san DNS models.example.com ` + trust,
		"inside/search.example.com-443": "STATIC inside/search.example.com-443",
		"host/search.example.com-443":   `LOGICAL_DNS search.example.com 443 sni "search.example.com" san DNS search.example.com ` + trust,
		"inside/t.example.com-8443":     "STATIC inside/t.example.com-8443",
		"host/t.example.com-8443":       `LOGICAL_DNS t.example.com 8443 sni "t.example.com" san DNS t.example.com ` + trust,
	}
	if got := clustersOf(t, bootstrap); !reflect.DeepEqual(got, want) {
		t.Errorf("clusters\n%s", jsonText(got))
	}
	if len(bootstrap.BootstrapExtensions) != 1 {
		t.Error("nothing lets a listener be reached from inside")
	}
}

// TestEveryNameLeadsSomewhere: routes name clusters that are there, and inside addresses name listeners that are there.
func TestEveryNameLeadsSomewhere(t *testing.T) {
	t.Parallel()
	bootstrap := parsed(t, bound(t))
	clusters, all := clustersOf(t, bootstrap), listeners(t, bootstrap)
	if len(clusters) != len(bootstrap.StaticResources.Clusters) || len(all) != len(bootstrap.StaticResources.Listeners) {
		t.Error("two have one name")
	}
	for name, l := range all {
		for _, virtual := range l.manager.GetRouteConfig().VirtualHosts {
			for _, route := range virtual.Routes {
				if to := route.GetRoute(); to != nil && clusters[to.GetCluster()] == "" {
					t.Errorf("%s leads to %q, which is not there", name, to.GetCluster())
				}
			}
		}
	}
	for name, to := range clusters {
		if inside, ok := strings.CutPrefix(to, "STATIC inside/"); ok && all["inside/"+inside].at != "inside" {
			t.Errorf("%s leads to %s, which is not there", name, inside)
		}
	}
}

// routes gives, for each domain of a listener, where a request goes.
func routes(l serves) map[string]string {
	all := map[string]string{}
	for _, virtual := range l.manager.GetRouteConfig().VirtualHosts {
		for _, domain := range virtual.Domains {
			var to []string
			for _, route := range virtual.Routes {
				to = append(to, target(route))
			}
			all[domain] = strings.Join(to, ", ")
		}
	}
	return all
}

func target(route *routev3.Route) string {
	if answer := route.GetDirectResponse(); answer != nil {
		return fmt.Sprint(answer.Status)
	}
	text := route.GetRoute().GetCluster()
	if route.Match.GetConnectMatcher() != nil {
		text = "tunnel to " + text
	}
	return text
}

func TestEgressOpensTunnelsAlone(t *testing.T) {
	t.Parallel()
	egress := listeners(t, parsed(t, bound(t)))["egress"]
	got := routes(egress)
	if egress.at != "127.0.0.1:15001" || got["*"] != "tunnel to elsewhere, 405" || got["search.example.com:443"] != "tunnel to inside/search.example.com-443" ||
		got["t.example.com:8443"] != "tunnel to inside/t.example.com-8443" || !strings.HasPrefix(got["[2001:db8::1]:443"], "tunnel to inside/host-") || len(got) != 7 {
		t.Errorf("%s: %v", egress.at, got)
	}
	if len(egress.manager.HttpFilters) != 2 {
		t.Error("something but the resolver and the router sees a tunnel")
	}
}

func TestABoundHostServesItselfAlone(t *testing.T) {
	t.Parallel()
	all := listeners(t, parsed(t, bound(t)))
	for name, want := range map[string]map[string]string{
		"inside/search.example.com-443": {"search.example.com": "host/search.example.com-443", "search.example.com:443": "host/search.example.com-443", "*": "421"},
		"inside/t.example.com-8443":     {"t.example.com:8443": "host/t.example.com-8443", "*": "421"},
	} {
		if got := routes(all[name]); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v", name, got)
		}
		stem := strings.TrimPrefix(name, "inside/")
		pair := all[name].tls.CommonTlsContext.TlsCertificates[0]
		if pair.CertificateChain.GetFilename() != "/etc/jr2/custodian/tls/"+stem+".crt" || pair.PrivateKey.GetFilename() != "/etc/jr2/custodian/tls/"+stem+".key" {
			t.Errorf("%s serves %v", name, pair)
		}
	}
}

// TestOnlyBoundHostsHaveSecrets: each host's route names its own secrets, and no other route names any but the pod's token.
func TestOnlyBoundHostsHaveSecrets(t *testing.T) {
	t.Parallel()
	in := bound(t)
	in.Instance.Secrets = append(in.Instance.Secrets, config.HeldSecret{Name: "SECOND", Value: config.NewSecret("v"), Hosts: []string{"search.example.com"}, Headers: []string{"x-second"}})
	in.Certificates = StandInCertificates(in)
	got := map[string][]string{}
	for name, l := range listeners(t, parsed(t, in)) {
		for _, virtual := range l.manager.GetRouteConfig().VirtualHosts {
			for _, route := range virtual.Routes {
				for _, secret := range heldOf(t, route.Metadata) {
					got[name] = append(got[name], secret.Name+" "+strings.Join(secret.Headers, ",")+" "+strings.Join(secret.Paths, ","))
				}
			}
		}
	}
	usual := " authorization,x-api-key,x-goog-api-key,api-key "
	want := map[string][]string{
		"control":                       {names.SandboxTokenName + " authorization "},
		"inside/search.example.com-443": {"SEARCH_KEY" + usual, "SECOND x-second "},
		"inside/t.example.com-8443":     {"TRACKER x-token /api/"},
		"inside/api.openai.com-443":     {"OPENAI_API_KEY" + usual},
		"inside/models.example.com-443": {config.ProviderKeyName + usual},
		"inside/192.0.2.7-6443":         {"NEAR x-near "},
	}
	for name, secrets := range got {
		if strings.HasPrefix(name, "inside/host-") {
			want[name] = []string{"NEAR x-near "}
		}
		_ = secrets
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s", jsonText(got))
	}
}

func heldOf(t *testing.T, metadata *corev3.Metadata) []boundSecret {
	t.Helper()
	fields := metadata.GetFilterMetadata()[luaFilter]
	if fields == nil {
		return nil
	}
	text, err := fields.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var held struct{ Held []boundSecret }
	if err := json.Unmarshal(text, &held); err != nil {
		t.Fatal(err)
	}
	return held.Held
}
