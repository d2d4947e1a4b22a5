package config

import (
	"errors"
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

// CheckHeldSecrets applies the rules of held secrets that need nothing but the configuration: names, values, hosts, headers, paths,
// and that no value also reaches the Harness by another way. Each secret's first problem is a *FieldError, several are joined; a value is never part of it.
//
// A converge calls it before it writes anything. Load and Validate do not, because the Orchestrator loads the same file where
// neither the shell nor .env exists, so no value does.
func CheckHeldSecrets(inst *Instance) error {
	bound := map[string]string{} // "host:port header" → the secret that has it
	names := map[string]bool{}
	var errs []error
	for i, held := range inst.Secrets {
		errs = append(errs, checkHeld(inst, fmt.Sprintf("secrets[%d]", i), held, names, bound))
	}
	return errors.Join(append(errs, checkProviderKey(inst), checkHarnessReach(inst, names))...)
}

func checkHeld(inst *Instance, path string, held HeldSecret, names map[string]bool, bound map[string]string) error {
	for _, check := range []func(*Instance, string, HeldSecret) error{checkHeldName, checkHeldValue, checkHeldHeaders, checkHeldPaths} {
		if err := check(inst, path, held); err != nil {
			return err
		}
	}
	if names[held.Name] {
		return inst.problem(hintSecrets, path+".name", "%q is held twice", held.Name)
	}
	names[held.Name] = true
	return checkHeldHosts(inst, path, held, bound)
}

func checkHeldName(inst *Instance, path string, held HeldSecret) error {
	if strings.HasPrefix(held.Name, "JR2_") {
		return inst.problem(hintSecrets, path+".name", "%q starts with JR2_, which is the Kit's own", clip(held.Name))
	}
	if slices.Contains(trustVariables(), held.Name) {
		return inst.problem(hintSecrets, path+".name", "%q is a proxy or trust variable, which held secrets set themselves", held.Name)
	}
	return nil
}

func checkHeldValue(inst *Instance, path string, held HeldSecret) error {
	if held.Value.Present() == (held.ValueFrom != nil) {
		if held.ValueFrom != nil {
			return inst.problem(hintSecrets, path, "has both value and valueFrom")
		}
		return inst.problem(hintSecrets, path, "has neither value nor valueFrom — is the variable that the value comes from set?")
	}
	if held.ValueFrom != nil {
		return nil
	}
	if why := valueProblem(held.Value); why != "" {
		return inst.problem(hintSecrets, path+".value", "%s", why)
	}
	return nil
}

// valueProblem says what is wrong with a value that travels in a header, without showing it.
func valueProblem(secret Secret) string {
	value := secret.Reveal()
	switch {
	case value == "":
		return "is empty"
	case strings.TrimSpace(value) != value:
		return "starts or ends with a blank"
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
		return "holds a byte that is no printable ASCII"
	}
	return ""
}

func checkHeldHeaders(inst *Instance, path string, held HeldSecret) error {
	for n, header := range held.Headers {
		at := fmt.Sprintf("%s.headers[%d]", path, n)
		switch {
		case !headerName.MatchString(header):
			return inst.problem(hintSecrets, at, "%q is no header name in lower case", clip(header))
		case slices.Contains(routingHeaders(), header) || strings.HasPrefix(header, "proxy-"):
			return inst.problem(hintSecrets, at, "%q frames or routes the request", clip(header))
		case slices.Contains(held.Headers[:n], header):
			return inst.problem(hintSecrets, at, "%q is there twice", clip(header))
		}
	}
	return nil
}

func checkHeldPaths(inst *Instance, path string, held HeldSecret) error {
	for n, prefix := range held.Paths {
		at := fmt.Sprintf("%s.paths[%d]", path, n)
		if !strings.HasPrefix(prefix, "/") {
			return inst.problem(hintSecrets, at, "%q does not start with \"/\"", clip(prefix))
		}
		for _, trick := range []string{"..", ";", `\`, "%2e", "%2f", "%5c"} {
			if strings.Contains(strings.ToLower(prefix), trick) {
				return inst.problem(hintSecrets, at, "%q holds %q, which another program may read as another path", clip(prefix), trick)
			}
		}
	}
	return nil
}

func checkHeldHosts(inst *Instance, path string, held HeldSecret, bound map[string]string) error {
	for n, entry := range held.Hosts {
		if _, err := ParseHost(entry); err != nil {
			return inst.problem(hintSecrets, fmt.Sprintf("%s.hosts[%d]", path, n), "%v", err)
		}
	}
	hosts, headers, err := held.Bindings()
	if err != nil {
		return err
	}
	if len(hosts) == 0 {
		return inst.problem(hintSecrets, path+".hosts", "is missing, and %q has no host of its own", held.Name)
	}
	for _, host := range hosts {
		for _, header := range headers {
			key := host.String() + " " + header
			if other, taken := bound[key]; taken && other != held.Name {
				return inst.problem(hintSecrets, path+".hosts", "%s gets %q already in the header %q", host, other, header)
			}
			bound[key] = held.Name
		}
	}
	return nil
}

// checkProviderKey holds the key of a custom provider to the same rules as any held secret.
func checkProviderKey(inst *Instance) error {
	if p := inst.Harness.Provider; p != nil && p.APIKey.Present() {
		if why := valueProblem(p.APIKey); why != "" {
			return inst.problem(hintHarness, "harness.provider.apiKey", "%s", why)
		}
		switch _, err := ParseHost(p.BaseURL); {
		case hasUserinfo(p.BaseURL):
			return inst.problem(hintHarness, "harness.provider.baseUrl", "%s", userinfoProblem(p.BaseURL))
		case !isHTTPS(p.BaseURL):
			return inst.problem(hintHarness, "harness.provider.baseUrl", "%q is no https url, and apiKey would go there in the clear", clip(RedactURL(p.BaseURL)))
		case err != nil:
			return inst.problem(hintHarness, "harness.provider.baseUrl", "%v", err)
		}
	}
	for _, id := range sortedKeys(inst.Harness.Catalog) {
		path := joinPath("harness.catalog", id)
		base := inst.Harness.Catalog[id].BaseURL
		if hasUserinfo(base) {
			return inst.problem(hintCatalog, path+".baseUrl", "%s", userinfoProblem(base))
		}
		if !isHTTPS(base) {
			return inst.problem(hintCatalog, path+".baseUrl", "%q is no https url", clip(RedactURL(base)))
		}
		if p := inst.Harness.Provider; p != nil && p.ID == id {
			return inst.problem(hintCatalog, path, "is the id of harness.provider, which has a baseUrl of its own")
		}
	}
	return nil
}

func isHTTPS(text string) bool {
	_, ok := cutPrefixFold(text, "https://")
	return ok
}
