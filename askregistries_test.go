package jr2_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"

	"jr2.dev/jr2"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
)

// TestAskRegistriesAs: with the credentials that a kubelet would show, by the name that nodes have for the registry, and never more sure than the
// registry is.
func TestAskRegistriesAs(t *testing.T) {
	t.Parallel()
	registry, err := devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{User: yardUser, Password: yardPassword})
	must(t, err)
	t.Cleanup(func() { registry.Close() }) //nolint:errcheck // the test is over
	pushed, err := registry.PushBusybox(t.Context(), "team/app:1", "amd64")
	must(t, err)
	_, name, _ := strings.Cut(pushed, "/")
	right := &authn.Basic{Username: yardUser, Password: yardPassword}
	own := images.Registry{Keychain: keychain{host: registry.Host, auth: right}}
	local := images.LocalRegistry{Host: registry.Host, FromRuntime: "nodes-registry:5000"}
	ask := jr2.AskRegistries(own, local)
	for what, as := range map[string]authn.Authenticator{"the caller's": nil, "the right ones": right} {
		for _, ref := range []string{pushed, "nodes-registry:5000/" + name} {
			if found, err := ask(t.Context(), ref, as); err != nil || found.Denied != nil || found.Missing || found.Digest == "" {
				t.Errorf("%s, %s: %+v, %v", what, ref, found, err)
			}
		}
	}
	for what, as := range map[string]authn.Authenticator{"none": authn.Anonymous, "wrong ones": &authn.Basic{Username: yardUser, Password: "guess"}} {
		found, err := ask(t.Context(), "nodes-registry:5000/"+name, as)
		if err != nil || found.Denied == nil || found.Missing || found.Denied.Error() != "401 Unauthorized: authentication required" {
			t.Errorf("%s: %+v, %v", what, found, err)
		}
		// Without the cluster's word that this is its registry, localhost is each node itself.
		found, err = jr2.AskRegistries(own, images.LocalRegistry{})(t.Context(), pushed, as)
		if err == nil || found.Denied != nil || !strings.Contains(err.Error(), "the node itself") {
			t.Errorf("%s, unknown: %+v, %v", what, found, err)
		}
	}
	if found, err := ask(t.Context(), "nodes-registry:5000/team/none:1", right); err != nil || !found.Missing {
		t.Errorf("missing: %+v, %v", found, err)
	}
	lost := images.Registry{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "a.example", Server: "192.0.2.1:53"}}
	})}
	if found, err := jr2.AskRegistries(lost, local)(t.Context(), "a.example/app:1", nil); err == nil || err.Error() != "no such host" || found.Missing {
		t.Errorf("a host that is not known: %+v, %v", found, err)
	}
}
