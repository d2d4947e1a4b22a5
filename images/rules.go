package images

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// RegistryRules say how registries are reached. The zero value has no rules: by TLS, with the authorities of the system.
type RegistryRules struct {
	// CAFiles are PEM files of authorities that are trusted beside the system's.
	CAFiles []string
	// Insecure lists hosts ("host:port") that are spoken to by plain http.
	Insecure []string
	// Mirrors are read in place of registries.
	Mirrors Mirrors
}

// tell gives the rules to a buildkitd that is to be started. dir holds the files for it. Its own configuration file of the machine is not
// read then.
func (r RegistryRules) tell(command *exec.Cmd, dir string) error {
	config, err := r.buildkitd()
	if err != nil {
		return err
	}
	if config != "" {
		file := filepath.Join(dir, "buildkitd.toml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			return err
		}
		command.Args = append(command.Args, "--config", file)
	}
	if len(r.CAFiles) == 0 {
		return nil
	}
	var bundle []byte
	files := r.CAFiles
	if own := os.Getenv(systemCAFile); own != "" {
		files = append(slices.Clone(files), own)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("certificate authority for registries: %w", err)
		}
		bundle = append(append(bundle, text...), '\n')
	}
	file := filepath.Join(dir, "registries.pem")
	if err := os.WriteFile(file, bundle, 0o600); err != nil {
		return err
	}
	// Instead of the system's file; the authorities of the system's folder, where that file lies too, count beside it.
	command.Env = append(os.Environ(), systemCAFile+"="+file)
	return nil
}

// systemCAFile names the variable by which Go finds the system's authorities.
const systemCAFile = "SSL_CERT_FILE"

// buildkitd is the configuration file that tells the rules to a buildkitd; empty when there is nothing to tell. The authorities are not in
// it, because it takes them only by registry.
//
// Source: BuildKit, docs/buildkitd.toml.md.
func (r RegistryRules) buildkitd() (string, error) {
	if err := r.Mirrors.Check(); err != nil {
		return "", err
	}
	plain, mirrors := map[string]bool{}, map[string][]string{}
	for _, host := range r.Insecure {
		plain[host] = true
	}
	for _, key := range slices.Sorted(maps.Keys(r.Mirrors)) {
		host, err := registryHost(key)
		if err != nil {
			return "", err
		}
		if host == name.DefaultRegistry {
			host = "docker.io" // its name there
		}
		if len(mirrors[host]) > 0 { // another spelling of the same host
			continue
		}
		for _, m := range r.Mirrors.of(host) {
			mirrors[host] = append(mirrors[host], m.prefix)
			if m.scheme != "" && !plain[m.host()] { // without one, it is what the builder takes it for
				plain[m.host()] = m.scheme == "http"
			}
		}
	}
	hosts := slices.Concat(slices.Collect(maps.Keys(plain)), slices.Collect(maps.Keys(mirrors)))
	slices.Sort(hosts)
	var b strings.Builder
	for _, host := range slices.Compact(hosts) {
		fmt.Fprintf(&b, "[registry.%s]\n", strconv.Quote(host))
		if http, said := plain[host]; said {
			fmt.Fprintf(&b, "  http = %t\n", http)
		}
		if len(mirrors[host]) > 0 {
			quoted := make([]string, len(mirrors[host]))
			for i, m := range mirrors[host] {
				quoted[i] = strconv.Quote(m)
			}
			fmt.Fprintf(&b, "  mirrors = [%s]\n", strings.Join(quoted, ", "))
		}
	}
	return b.String(), nil
}
