package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ProviderKeyName is the held secret that harness.provider.apiKey becomes.
const ProviderKeyName = "JR2_PROVIDER_API_KEY"

// StandInPrefix starts every stand-in.
const StandInPrefix = "jr2-held-"

// StandIn is what the Harness sees in the variable of a held secret: public and the same every time. The Custodian swaps it for the
// value on the way to the secret's hosts.
func StandIn(name string) string { return StandInPrefix + name }

var (
	heldName   = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)
	headerName = regexp.MustCompile("^[a-z0-9!#$%&'*+.^_`|~-]+$")
)

// trustVariables are set by the mechanism of held secrets itself.
func trustVariables() []string {
	return strings.Fields(`HTTPS_PROXY https_proxy HTTP_PROXY http_proxy NO_PROXY no_proxy ALL_PROXY NODE_USE_ENV_PROXY NODE_EXTRA_CA_CERTS
		SSL_CERT_FILE REQUESTS_CA_BUNDLE GIT_SSL_CAINFO`)
}

// kitSecrets are the Secrets of the Kit, which no Harness may read.
func kitSecrets() []string {
	return []string{"jr2-instance", "jr2-held-secrets", "jr2-held-tls", "jr2-held-ca"}
}

// ownSecrets are all Secrets that a converge makes by fixed names.
func ownSecrets() []string { return append(kitSecrets(), "jr2-harness-env") }

// defaultHeaders are the request headers in which a stand-in is swapped when a secret names none.
func defaultHeaders() []string {
	return []string{"authorization", "x-api-key", "x-goog-api-key", "api-key"}
}

// routingHeaders frame or route a request; a value in one of them would change where it goes.
func routingHeaders() []string {
	return []string{"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive", "cookie"}
}

// Bindings resolves where a held secret may be sent and in which headers: its own hosts, else the host of a known model key; its own
// headers, else the usual four.
func (s HeldSecret) Bindings() (hosts []HostPort, headers []string, err error) {
	for _, entry := range s.Hosts {
		host, err := ParseHost(entry)
		if err != nil {
			return nil, nil, err
		}
		hosts = append(hosts, host)
	}
	if len(s.Hosts) == 0 {
		if key, ok := LookupModelKey(s.Name); ok && key.Host != "" {
			hosts = []HostPort{{key.Host, 443}}
		}
	}
	if headers = s.Headers; len(headers) == 0 {
		headers = defaultHeaders()
	}
	return hosts, headers, nil
}

// CheckHeldSecrets applies the rules of held secrets that need nothing but the configuration and the Workflows: names, values, hosts, headers, paths,
// that no value also reaches the Harness by another way, and that a model's key may go where its Agents call. All problems come at once, one a
// line, as *FieldErrors with the name of their rule (source: reference, 4.5); a value is never part of one. Where the rest of a rule needs the
// cluster, package preflight has it: R1 and R13 of what stands in a Secret or ConfigMap, and R10.
//
// A converge calls it before it writes anything. Load and Validate do not, because the Orchestrator loads the same file where
// neither the shell nor .env exists, so no value does.
func CheckHeldSecrets(inst *Instance) error {
	p := &problems{inst: inst}
	bound := binding{}
	names := map[string]bool{}
	for i, held := range inst.Secrets {
		path := fmt.Sprintf("secrets[%d]", i)
		checkHeldName(p, path, held, names)
		checkHeldValue(p, path, held)
		checkHeldHosts(p, path, held, bound)
		checkHeldHeaders(p, path, held)
		checkHeldPaths(p, path, held)
	}
	checkModelHosts(p)
	checkProviderKey(p, bound)
	checkCatalogReach(p)
	checkHarnessReach(p, names)
	return together(inFieldOrder(p.errs)...)
}

func checkHeldName(p *problems, path string, held HeldSecret, names map[string]bool) {
	switch {
	case strings.HasPrefix(held.Name, kitPrefix):
		p.rule("R2", "give it a name that does not start with JR2_ (ADR-0059)", path+".name", "%q starts with JR2_, which is the Kit's own", clip(held.Name))
	case slices.Contains(trustVariables(), held.Name):
		p.rule("R2", "give it another name (ADR-0059)", path+".name", "%q is a proxy or trust variable, which held secrets set themselves", held.Name)
	case names[held.Name]:
		p.rule("R3", "remove one of the two, or give it another name (ADR-0059)", path+".name", "%q is held twice", clip(held.Name))
	}
	names[held.Name] = true
}

func checkHeldValue(p *problems, path string, held HeldSecret) {
	switch {
	case held.Value.Present() && held.ValueFrom != nil:
		p.rule("R4", hintSecrets, path, bothValues)
	case !held.Value.Present() && held.ValueFrom == nil:
		if !slices.Contains(p.inst.unread, path+".value") {
			p.rule("R4", "set it in the shell or in .env, or name a Secret: valueFrom: { secretKeyRef: { name, key } } (ADR-0059)", path,
				"has neither value nor valueFrom — is the variable that the value comes from set?")
		}
	case held.ValueFrom == nil:
		checkValue(p, path+".value", held.Value)
	}
}

// checkValue says what is wrong with a value that travels in a header, without showing it.
func checkValue(p *problems, path string, secret Secret) {
	value := secret.Reveal()
	switch {
	case value == "":
		p.rule("R4", "give the variable that it comes from a value (ADR-0059)", path, "is empty")
	case strings.TrimSpace(value) != value:
		p.rule("R4", "take the blanks and line breaks off its ends (ADR-0059)", path, "starts or ends with a blank")
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
		p.rule("R4", "a value travels in a header of a request, so it is printable ASCII (ADR-0059)", path, "holds a byte that is no printable ASCII")
	}
}

func checkHeldHeaders(p *problems, path string, held HeldSecret) {
	const hint = "headers: names of request headers in lower case, each once, or none for the usual four: authorization, x-api-key, x-goog-api-key, api-key (ADR-0059)"
	for n, header := range held.Headers {
		at := fmt.Sprintf("%s.headers[%d]", path, n)
		switch {
		case !headerName.MatchString(header):
			p.rule("R6", hint, at, "%q is no header name in lower case", clip(header))
		case slices.Contains(routingHeaders(), header) || strings.HasPrefix(header, "proxy-"):
			p.rule("R6", hint, at, "%q frames or routes the request", clip(header))
		case slices.Contains(held.Headers[:n], header):
			p.rule("R6", hint, at, "%q is there twice", clip(header))
		}
	}
}

func checkHeldPaths(p *problems, path string, held HeldSecret) {
	const hint = "paths: plain prefixes such as \"/v1/\", or none for every path (ADR-0059)"
	for n, prefix := range held.Paths {
		at := fmt.Sprintf("%s.paths[%d]", path, n)
		if !strings.HasPrefix(prefix, "/") {
			p.rule("R12", hint, at, "%q does not start with \"/\"", clip(prefix))
			continue
		}
		for _, trick := range []string{"..", ";", `\`, "%2e", "%2f", "%5c"} {
			if strings.Contains(strings.ToLower(prefix), trick) {
				p.rule("R12", hint, at, "%q holds %q, which another program may read as another path", clip(prefix), trick)
				break
			}
		}
	}
}

const hintHosts = "hosts: [\"host\", \"host:port\", \"[v6]:port\" or \"https://…\"], without wildcards (ADR-0059)"

func checkHeldHosts(p *problems, path string, held HeldSecret, bound binding) {
	sound := true
	for n, entry := range held.Hosts {
		if _, err := ParseHost(entry); err != nil {
			sound = false
			p.rule("R5", hintHosts, fmt.Sprintf("%s.hosts[%d]", path, n), "%v", err)
		}
	}
	hosts, headers, err := held.Bindings()
	switch {
	case !sound || err != nil:
	case len(hosts) == 0:
		p.rule("R5", hintHosts, path+".hosts", "is missing, and %q has no host of its own", clip(held.Name))
	default:
		bound.take(p, path+".hosts", held.Name, hosts, headers)
	}
}

// A binding is which secret has which header toward which endpoint: "host:port header" → the name of the secret.
type binding map[string]string

// take refuses the first endpoint and header that another secret has: which of the two a request is to carry is nobody's guess.
func (b binding) take(p *problems, path, name string, hosts []HostPort, headers []string) {
	told := false
	for _, host := range hosts {
		for _, header := range headers {
			key := host.String() + " " + header
			other, taken := b[key]
			if !taken {
				b[key] = name
				continue
			}
			if other != name && !told {
				told = true
				p.rule("R5", fmt.Sprintf("give %q or %q other hosts, or headers of its own (ADR-0059)", clip(other), clip(name)), path,
					"%s gets %q already in the header %q", host, clip(other), header)
			}
		}
	}
}
