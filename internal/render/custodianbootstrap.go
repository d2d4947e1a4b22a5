package render

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/pki"
)

// custodianScript swaps the stand-ins of held secrets.
//
//go:embed custodian.lua
var custodianScript string

type object = map[string]any

const (
	extensions = "type.googleapis.com/envoy.extensions."
	tunnel     = "CONNECT"
	elsewhere  = "elsewhere" // the cluster of every host that no secret is bound to
	// idleUpstream is shorter than what hosts commonly keep a silent connection for, so that none is used that they just closed.
	idleUpstream = "30s"
)

// typed is a configuration of one of Envoy's extensions.
func typed(name, kind string, more object) object {
	config := object{"@type": extensions + kind}
	for key, value := range more {
		config[key] = value
	}
	return object{"name": name, "typed_config": config}
}

// custodianBootstrap is the Envoy configuration of a Custodian. There is a health listener for the kubelet, and on the loopback address a
// control listener that leads to the Orchestrator and nowhere else. While secrets are held there is an egress listener too: the proxy that
// the Harness sends every https connection through. A connection to a bound host ends in a listener of that host inside the Custodian,
// with a certificate of the Instance's authority; there the stand-ins are swapped, and from there requests go to that host alone. Any other
// connection passes through as it is. There is no admin listener.
func custodianBootstrap(in Input) string {
	listeners, clusters := []object{healthListener(), controlListener()}, []object{orchestratorCluster(in.namespace())}
	bootstrap := object{"node": object{"id": "custodian", "cluster": "jr2"}}
	if bound := boundHosts(in); len(bound) > 0 {
		listeners, clusters = append(listeners, egressListener(bound)), append(clusters, elsewhereCluster())
		for _, b := range bound {
			listeners = append(listeners, boundListener(b))
			clusters = append(clusters, insideCluster(b), boundCluster(b))
		}
		bootstrap["bootstrap_extensions"] = []object{typed("envoy.bootstrap.internal_listener", "bootstrap.internal_listener.v3.InternalListener", nil)}
	}
	bootstrap["static_resources"] = object{"listeners": listeners, "clusters": clusters}
	return jsonText(bootstrap)
}

func healthListener() object {
	routes := []object{{"match": object{"path": "/healthz"}, "direct_response": object{"status": 200}}}
	return listener("health", "0.0.0.0", names.CustodianHealthPort, manager("health", hosts("health", "*", routes), router()))
}

// controlListener has no timeout: the Orchestrator answers some requests when a person has decided.
func controlListener() object {
	token := boundSecret{Name: names.SandboxTokenName, StandIn: config.StandIn(names.SandboxTokenName), Headers: []string{"authorization"}}
	routes := []object{{
		"match": object{"prefix": "/"}, "route": object{"cluster": "orchestrator", "timeout": "0s"},
		"metadata": heldMetadata([]boundSecret{token}),
	}}
	return listener("control", "127.0.0.1", names.CustodianControlPort, manager("control", hosts("control", "*", routes), swapFilter(), router()))
}

func orchestratorCluster(namespace string) object {
	address := socket(fmt.Sprintf("%s.%s.svc", names.Orchestrator, namespace), names.OrchestratorPort)
	return cluster("orchestrator", "STRICT_DNS", address)
}

// egressListener opens tunnels, and does nothing else.
func egressListener(bound []boundHost) object {
	var virtual []object
	for _, b := range bound {
		virtual = append(virtual, hosts(b.stem(), b.String(), []object{tunnelTo(insideName(b))})...)
	}
	refuse := object{"match": object{"prefix": "/"}, "direct_response": object{"status": 405, "body": object{"inline_string": "custodian: this proxy opens tunnels alone\n"}}}
	virtual = append(virtual, hosts(elsewhere, "*", []object{tunnelTo(elsewhere), refuse})...)
	resolve := typed("envoy.filters.http.dynamic_forward_proxy", "filters.http.dynamic_forward_proxy.v3.FilterConfig", object{"dns_cache_config": dnsCache()})
	m := manager("egress", virtual, resolve, router())
	m["codec_type"] = "HTTP1"
	m["upgrade_configs"] = []object{{"upgrade_type": tunnel}}
	m["strip_trailing_host_dot"] = true // "host." is bound as "host" is
	return listener("egress", "127.0.0.1", names.CustodianEgressPort, m)
}

// tunnelTo ends the CONNECT here and sends what it carries to a cluster as it is.
func tunnelTo(cluster string) object {
	return object{"match": object{"connect_matcher": object{}}, "route": object{"cluster": cluster, "timeout": "0s",
		"upgrade_configs": []object{{"upgrade_type": tunnel, "connect_config": object{}}}}}
}

// elsewhereCluster resolves the host that a tunnel asks for.
func elsewhereCluster() object {
	kind := typed("envoy.clusters.dynamic_forward_proxy", "clusters.dynamic_forward_proxy.v3.ClusterConfig", object{"dns_cache_config": dnsCache()})
	return object{"name": elsewhere, "connect_timeout": "10s", "lb_policy": "CLUSTER_PROVIDED", "cluster_type": kind}
}

// dnsCache is shared by name. Both families are asked, because the default would take an IPv6 address where no route leads to it.
func dnsCache() object { return object{"name": elsewhere, "dns_lookup_family": "ALL"} }

// A boundHost is an endpoint that secrets are bound to, and which.
type boundHost struct {
	config.HostPort
	Secrets []boundSecret
}

// A boundSecret is what the script knows of a secret: never its value.
type boundSecret struct {
	Name    string   `json:"name"`
	StandIn string   `json:"standIn"`
	Headers []string `json:"headers"`
	// Paths absent means every path.
	Paths []string `json:"paths,omitempty"`
}

func (b boundHost) pki() pki.Host { return pki.Host{Name: b.Host, Port: b.Port} }
func (b boundHost) stem() string  { return b.pki().Stem() }

// Names of clusters and listeners: no stem holds a slash, so none meets another or one of the fixed names.
func insideName(b boundHost) string { return "inside/" + b.stem() }
func hostName(b boundHost) string   { return "host/" + b.stem() }

// boundHosts are the endpoints of all held secrets, in the order of their names, each with its secrets in the order of the configuration.
func boundHosts(in Input) []boundHost {
	var bound []boundHost
	for _, held := range heldSecrets(in) {
		endpoints, headers, _ := held.Bindings() // that they read is checked before
		for _, endpoint := range endpoints {
			at := slices.IndexFunc(bound, func(b boundHost) bool { return b.HostPort == endpoint })
			if at < 0 {
				at, bound = len(bound), append(bound, boundHost{HostPort: endpoint})
			}
			secret := boundSecret{Name: held.Name, StandIn: config.StandIn(held.Name), Headers: headers, Paths: held.Paths}
			if !slices.ContainsFunc(bound[at].Secrets, func(s boundSecret) bool { return s.Name == secret.Name }) {
				bound[at].Secrets = append(bound[at].Secrets, secret)
			}
		}
	}
	slices.SortFunc(bound, func(a, b boundHost) int { return strings.Compare(a.stem(), b.stem()) })
	return bound
}

// insideCluster leads from a tunnel to the listener of the host, without leaving the process.
func insideCluster(b boundHost) object {
	return cluster(insideName(b), "STATIC", object{"envoy_internal_address": object{"server_listener_name": insideName(b)}})
}

// boundListener speaks for the host. A request for any other host is misdirected: one address may serve many hosts, and the value is for
// this one. HTTP/1.1 is all it speaks, so that what a client upgrades, such as a web socket, goes on as it came.
func boundListener(b boundHost) object {
	domains := []string{b.String()}
	if b.Port == 443 {
		domains = append(domains, strings.TrimSuffix(b.String(), ":443"))
	}
	forward := object{
		"match": object{"prefix": "/"}, "metadata": heldMetadata(b.Secrets),
		"route": object{"cluster": hostName(b), "timeout": "0s", "retry_policy": object{"retry_on": "connect-failure,reset-before-request", "num_retries": 1}},
		// What Envoy adds of itself is nobody's business there.
		"request_headers_to_remove": []string{"x-forwarded-proto"},
	}
	misdirected := object{"match": object{"prefix": "/"}, "direct_response": object{"status": 421, "body": object{"inline_string": "custodian: this connection is for " + b.String() + "\n"}}}
	virtual := append([]object{{"name": b.stem(), "domains": domains, "routes": []object{forward}}}, hosts("misdirected", "*", []object{misdirected})...)
	m := manager(insideName(b), virtual, swapFilter(), typed("envoy.filters.http.router", "filters.http.router.v3.Router", object{"suppress_envoy_headers": true}))
	m["codec_type"], m["strip_trailing_host_dot"], m["skip_xff_append"], m["generate_request_id"] = "HTTP1", true, true, false
	m["server_header_transformation"] = "PASS_THROUGH"
	m["upgrade_configs"] = []object{{"upgrade_type": "websocket"}}
	chain := filterChain(m)
	chain["transport_socket"] = typed("envoy.transport_sockets.tls", "transport_sockets.tls.v3.DownstreamTlsContext", object{"common_tls_context": object{
		"alpn_protocols": []string{"http/1.1"},
		"tls_certificates": []object{{
			"certificate_chain": object{"filename": custodianTLSDir + "/" + b.stem() + certSuffix},
			"private_key":       object{"filename": custodianTLSDir + "/" + b.stem() + keySuffix},
		}},
	}})
	return object{"name": insideName(b), "internal_listener": object{}, "filter_chains": []object{chain}}
}

// boundCluster is the host itself, by TLS, known by its certificate. The authority of the Instance is not among those that are trusted.
func boundCluster(b boundHost) object {
	kind, name := "LOGICAL_DNS", "DNS"
	tls := object{"sni": b.Host}
	if _, isAddress := b.pki().Address(); isAddress {
		kind, name, tls = "STATIC", "IP_ADDRESS", object{}
	}
	tls["common_tls_context"] = object{
		"alpn_protocols": []string{"http/1.1"},
		"validation_context": object{
			"trusted_ca":                    object{"filename": trustDir + "/" + names.UpstreamKey},
			"match_typed_subject_alt_names": []object{{"san_type": name, "matcher": object{"exact": b.Host}}},
		},
	}
	c := cluster(hostName(b), kind, socket(b.Host, b.Port))
	if kind == "LOGICAL_DNS" {
		c["dns_lookup_family"] = "ALL"
	}
	c["transport_socket"] = typed("envoy.transport_sockets.tls", "transport_sockets.tls.v3.UpstreamTlsContext", tls)
	c["typed_extension_protocol_options"] = object{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": object{
		"@type":                        extensions + "upstreams.http.v3.HttpProtocolOptions",
		"common_http_protocol_options": object{"idle_timeout": idleUpstream},
		"explicit_http_config":         object{"http_protocol_options": object{}},
	}}
	return c
}

// heldMetadata is how the script learns which secrets count on a route.
func heldMetadata(secrets []boundSecret) object {
	return object{"filter_metadata": object{luaFilter: object{"held": secrets}}}
}

const luaFilter = "envoy.filters.http.lua"

func swapFilter() object {
	return typed(luaFilter, "filters.http.lua.v3.Lua", object{"default_source_code": object{"filename": custodianConfigDir + "/" + names.ScriptKey}})
}

func router() object { return typed("envoy.filters.http.router", "filters.http.router.v3.Router", nil) }

func hosts(name, domain string, routes []object) []object {
	return []object{{"name": name, "domains": []string{domain}, "routes": routes}}
}

// manager serves HTTP. Streams may be silent for as long as an agent thinks.
func manager(name string, virtual []object, filters ...object) object {
	return object{
		"@type":               extensions + "filters.network.http_connection_manager.v3.HttpConnectionManager",
		"stat_prefix":         name,
		"route_config":        object{"name": name, "virtual_hosts": virtual},
		"http_filters":        filters,
		"stream_idle_timeout": "0s",
	}
}

func filterChain(manager object) object {
	return object{"filters": []object{{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}}}
}

func listener(name, address string, port int, manager object) object {
	return object{"name": name, "address": socket(address, port), "filter_chains": []object{filterChain(manager)}}
}

func cluster(name, kind string, address object) object {
	return object{"name": name, "type": kind, "connect_timeout": "5s", "load_assignment": object{"cluster_name": name,
		"endpoints": []object{{"lb_endpoints": []object{{"endpoint": object{"address": address}}}}}}}
}

func socket(address string, port int) object {
	return object{"socket_address": object{"address": address, "port_value": port}}
}
