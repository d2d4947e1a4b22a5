package images

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/name"
)

// Mirrors says from where the images of a registry are read in its place: the host of the registry ("docker.io", "registry.example.com:5000")
// to mirrors in the order in which they are tried. The registry itself comes last. nil means none.
//
// A mirror is a host with an optional port and an optional path, below which it keeps the registry's repositories:
// "mirror.example.com:5000/hub" answers for docker.io/library/busybox under mirror.example.com:5000/hub/library/busybox. A scheme may stand
// before it; "http://" lets that mirror be spoken to by plain http. Credentials are those of the mirror's host.
//
// A mirror is only believed where it has the image: that it has none, refuses or is away says nothing about the registry. What a converge
// builds is never looked for in a mirror and never pushed to one, because a mirror may be late.
type Mirrors map[string][]string

// A MirrorError says that Mirrors holds something that is no mirror.
type MirrorError struct {
	// Host is the registry; Mirror is empty when it is the one that is wrong.
	Host, Mirror string
	Reason       string
}

func (e *MirrorError) Error() string {
	if e.Mirror == "" {
		return fmt.Sprintf("registry mirrors of %q: %s", e.Host, e.Reason)
	}
	return fmt.Sprintf("registry mirror %q of %s: %s", e.Mirror, e.Host, e.Reason)
}

// Check says, by a *MirrorError, what is wrong first, in the order of the hosts.
func (m Mirrors) Check() error {
	for _, host := range slices.Sorted(maps.Keys(m)) {
		if _, err := registryHost(host); err != nil {
			return &MirrorError{Host: shown(host), Reason: err.Error()}
		}
		for _, text := range m[host] {
			if _, err := parseMirror(text); err != nil {
				return &MirrorError{Host: host, Mirror: shown(text), Reason: err.Error()}
			}
		}
	}
	return nil
}

// shown is text without what may be a password.
func shown(text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		scheme, rest = "", text
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		rest = "…" + rest[at:]
	}
	if found {
		return scheme + "://" + rest
	}
	return rest
}

// A mirror is one place from which images are read.
type mirror struct {
	prefix string // host[:port][/path]
	scheme string // "http", "https", or "" when nothing was said
}

func (m mirror) host() string {
	host, _, _ := strings.Cut(m.prefix, "/")
	return host
}

func parseMirror(text string) (mirror, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		scheme, rest = "", text
	}
	m := mirror{prefix: strings.TrimSuffix(rest, "/"), scheme: scheme}
	if found && scheme != "http" && scheme != "https" {
		return mirror{}, fmt.Errorf("%s is no scheme of a registry", scheme)
	}
	if _, err := registryHost(m.host()); err != nil {
		return mirror{}, err
	}
	if _, path, _ := strings.Cut(m.prefix, "/"); strings.Contains(path, ":") {
		return mirror{}, errors.New("it is a prefix of image names, which has no tag")
	}
	if _, err := reference.ParseNormalizedNamed(m.prefix + "/x"); err != nil {
		return mirror{}, err
	}
	return m, nil
}

// registryHost gives the host of a registry in the spelling that counts: Docker Hub has three names, and 443 is the port that nobody says.
func registryHost(text string) (string, error) {
	switch {
	case strings.ContainsAny(text, "/@ \t\r\n"):
		return "", errors.New("a registry is a host with an optional port, such as registry.example.com:5000")
	case text != "localhost" && !strings.ContainsAny(text, ".:"):
		return "", errors.New("it names no host: one without a dot has a port")
	}
	registry, err := name.NewRegistry(strings.ToLower(text))
	if err != nil {
		return "", err
	}
	host := registry.RegistryStr()
	if bare, port, err := net.SplitHostPort(host); err == nil && port == "443" {
		host = bare
	}
	if host == dockerHub || host == "docker.io" {
		host = name.DefaultRegistry
	}
	return host, nil
}

// of are the mirrors of a registry's host. Check has found what is none.
func (m Mirrors) of(host string) []mirror {
	want, err := registryHost(host)
	if err != nil {
		return nil
	}
	var out []mirror
	for _, key := range slices.Sorted(maps.Keys(m)) { // two keys may be spellings of one host
		if registry, err := registryHost(key); err != nil || registry != want {
			continue
		}
		for _, text := range m[key] {
			if parsed, err := parseMirror(text); err == nil {
				out = append(out, parsed)
			}
		}
	}
	return out
}

// mirrored asks the mirrors of ref's registry. ok is false when none of them has the image; failed is what they said.
func (r *Registry) mirrored(ctx context.Context, ref name.Reference) (target Target, ok bool, failed []error) {
	all := r.Mirrors.of(ref.Context().RegistryStr())
	for i, m := range all {
		target, err := r.lookAt(ctx, m, ref, len(all)-i+1)
		if err == nil {
			return target, true, nil
		}
		failed = append(failed, fmt.Errorf("mirror %s: %w", m.prefix, err))
		if ctx.Err() != nil {
			break
		}
	}
	return Target{}, false, failed
}

// lookAt asks one mirror. It gets its share of the time that is left for all places, so that a silent mirror does not keep the others from
// being asked.
func (r *Registry) lookAt(ctx context.Context, m mirror, ref name.Reference, places int) (Target, error) {
	if deadline, ok := ctx.Deadline(); ok {
		share := time.Until(deadline) / time.Duration(places)
		within, cancel := context.WithTimeoutCause(ctx, share, fmt.Errorf("no answer within %s", share.Round(time.Millisecond)))
		defer cancel()
		ctx = within
	}
	there := *r
	there.Mirrors = nil
	if m.scheme == "http" {
		there.Insecure = append(slices.Clone(r.Insecure), m.host())
	}
	separator := ":"
	if _, digested := ref.(name.Digest); digested {
		separator = "@"
	}
	target, err := there.Look(ctx, m.prefix+"/"+ref.Context().RepositoryStr()+separator+ref.Identifier())
	if err != nil && ctx.Err() != nil {
		return Target{}, context.Cause(ctx)
	}
	target.Mirror = m.prefix
	return target, err
}
