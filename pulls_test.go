package jr2_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

// TestX04AConvergeLooksWhetherNodesCanPull: an image of a Workspace that only the caller can read is told before the apply, and is no more once the
// service account has the Secret. What nobody could ask is kept and not told.
func TestX04AConvergeLooksWhetherNodesCanPull(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	registry, err := devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{User: yardUser, Password: yardPassword})
	must(t, err)
	t.Cleanup(func() { registry.Close() }) //nolint:errcheck // the test is over
	_, err = registry.PushBusybox(t.Context(), "team/tools:1", "amd64")
	must(t, err)
	const host, image, namespace = "registry.example.com", "registry.example.com/team/tools:1", "pulls"
	private := func(o *jr2.Options) {
		o.Keychain = keychain{host: host, auth: &authn.Basic{Username: yardUser, Password: yardPassword}}
		o.RegistryTransport = roundTripper(func(r *http.Request) (*http.Response, error) {
			there := r.Clone(r.Context())
			if r.URL.Host == host {
				there.URL.Scheme, there.URL.Host = "http", registry.Host
			}
			response, err := loopbackOnly{http.DefaultTransport}.RoundTrip(there)
			if err == nil {
				response.Request = r
			}
			return response, err
		})
	}
	dir := folder(t, map[string]string{
		"jr2.config.ts":     plainConfig,
		"workflows/hold.ts": strings.Replace(hold("1Gi", "500m"), "  resources:", fmt.Sprintf("  image: %q,\n  resources:", image), 1),
	})
	const fix = `kubectl -n pulls create secret docker-registry registry-pull --docker-server=registry.example.com --docker-username=... --docker-password=... && ` +
		`kubectl -n pulls patch serviceaccount default -p '{"imagePullSecrets": [{"name": "registry-pull"}]}'`
	defer func() { // what runs there takes room on the nodes of later tests
		must(t, w.client.CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{}))
	}()
	plan, err := jr2.MakePlan(t.Context(), optionsOf(w, dir, namespace, private))
	must(t, err)
	first := w.up(t, dir, into(namespace), private)
	must(t, first.err)
	for what, findings := range map[string][]preflight.Finding{
		"plan": plan.Findings, "converge": first.result.Findings, "check": w.check(t, dir, preflight.Choice{}, into(namespace), private).Findings,
	} {
		denied, unasked := find(findings, preflight.CodeImageCredentials), find(findings, preflight.CodeNotLookedAt)
		if denied.Severity != preflight.Warn || denied.Object != "Instance my-instance" || denied.Fix != fix ||
			!strings.HasPrefix(denied.Message, "Sandboxes of my-instance: the registry does not show "+image) || !strings.Contains(denied.Message, "(your own credentials can read it)") {
			t.Errorf("%s: %+v in %+v", what, denied, findings)
		}
		if what == "check" { // after the converge: what runs was pulled
			continue
		}
		if unasked.Severity != preflight.Note || !strings.Contains(unasked.Message, "ghcr.io/snapwich/jr2-harness:") {
			t.Errorf("%s: %+v", what, unasked)
		}
	}
	first.tells(t, []string{"…", "warning: Sandboxes of my-instance: the registry does not show …", "…"})
	if strings.Contains(first.lines, "nobody could say whether") {
		t.Errorf("what nobody could see is told:\n%s", first.lines)
	}

	auth := base64.StdEncoding.EncodeToString([]byte(yardUser + ":" + yardPassword))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "registry-pull"}, Type: corev1.SecretTypeDockerConfigJson, StringData: map[string]string{
		corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, host, auth),
	}}
	_, err = w.client.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{})
	must(t, err)
	patch := []byte(`{"imagePullSecrets": [{"name": "registry-pull"}]}`)
	_, err = w.client.CoreV1().ServiceAccounts(namespace).Patch(t.Context(), "default", "application/strategic-merge-patch+json", patch, metav1.PatchOptions{})
	must(t, err)
	before := registry.Requests("")
	second := w.up(t, dir, into(namespace), private)
	must(t, second.err)
	if denied := find(second.result.Findings, preflight.CodeImageCredentials); denied.Code != "" || registry.Requests("") == before || second.result.Changed != 0 {
		t.Errorf("%d requests, %+v", registry.Requests("")-before, second.result)
	}
	if unasked := find(second.result.Findings, preflight.CodeNotLookedAt); unasked.Code != "" {
		t.Errorf("what runs was asked about again: %+v", unasked)
	}
}

func optionsOf(w *world, dir, namespace string, change func(*jr2.Options)) jr2.Options {
	o := jr2.Options{Dir: dir, Config: w.Config(), Context: contextName, Yes: true, Namespace: namespace, Env: map[string]string{}}
	change(&o)
	return o
}

// find is the first finding with this code, or none.
func find(findings []preflight.Finding, code string) preflight.Finding {
	for _, f := range findings {
		if f.Code == code {
			return f
		}
	}
	return preflight.Finding{}
}
