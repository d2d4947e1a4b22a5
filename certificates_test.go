package jr2_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/pki"
	"jr2.dev/jr2/preflight"
)

// holding is an Instance that holds a literal for each host.
func holding(hosts ...string) func(*jr2.Options) {
	instance := &config.Instance{Name: "holding", KitVersion: config.DefaultKitVersion, Workflows: []config.Workflow{{Name: "ping"}}}
	for i, host := range hosts {
		instance.Secrets = append(instance.Secrets, config.HeldSecret{
			Name: "KEY_" + string(rune('A'+i)), Value: config.NewSecret("hidden-value"), Hosts: []string{host},
		})
	}
	return func(o *jr2.Options) { o.Instance = instance }
}

func at(now time.Time) func(*jr2.Options) {
	return func(o *jr2.Options) { o.Now = func() time.Time { return now } }
}

// secretOf reads a Secret; nil when it is not there.
func (w *world) secretOf(t *testing.T, namespace, name string) *corev1.Secret {
	t.Helper()
	secret, err := w.client.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(t, err)
	return secret
}

// certified checks that exactly these hosts have certificates of the authority that is there, and that those whom it concerns trust it. It
// returns the authority's certificate and the hosts'.
func (w *world) certified(t *testing.T, namespace string, now time.Time, hosts ...pki.Host) (string, map[string]string) {
	t.Helper()
	kept, tls := w.secretOf(t, namespace, names.HeldCA), w.secretOf(t, namespace, names.HeldTLS)
	if kept == nil || tls == nil {
		t.Fatalf("%s lacks its authority or its certificates", namespace)
	}
	authority := pki.Pair{Cert: kept.Data[names.CAKey], Key: kept.Data[names.CAPrivateKey]}
	must(t, pki.CheckAuthority(authority, now))
	leaves := map[string]string{}
	for _, host := range hosts {
		cert, key := tls.Data[host.Stem()+".crt"], tls.Data[host.Stem()+".key"]
		if err := pki.CheckHost(authority, pki.Pair{Cert: cert, Key: key}, host, now); err != nil {
			t.Errorf("%s: %v", host.Name, err)
		}
		leaves[host.Stem()] = string(cert)
	}
	if len(tls.Data) != 2*len(hosts) {
		t.Errorf("%d files for %d hosts", len(tls.Data), len(hosts))
	}
	trust, err := w.client.CoreV1().ConfigMaps(namespace).Get(t.Context(), names.TrustConfig, metav1.GetOptions{})
	must(t, err)
	for key, want := range map[string]bool{names.ExtraKey: true, names.BundleKey: true, names.UpstreamKey: false} {
		if strings.Contains(trust.Data[key], string(authority.Cert)) != want || trust.Data[key] == "" {
			t.Errorf("%s holds the authority: %v", key, !want)
		}
	}
	return string(authority.Cert), leaves
}

// keyless checks that nothing which is told or kept in a result names a private key.
func (w *world) keyless(t *testing.T, namespace, lines string, values ...any) {
	t.Helper()
	raw, err := json.Marshal(values)
	must(t, err)
	texts := []byte(lines + string(raw))
	for _, name := range []string{names.HeldCA, names.HeldTLS} {
		secret := w.secretOf(t, namespace, name)
		if secret == nil {
			continue
		}
		for key, value := range secret.Data {
			block, _ := pem.Decode(value)
			if strings.HasSuffix(key, ".key") && (block == nil || bytes.Contains(texts, block.Bytes) || bytes.Contains(texts, value[40:80])) {
				t.Errorf("%s of %s is told", key, name)
			}
		}
	}
	if bytes.Contains(texts, []byte("PRIVATE KEY")) || bytes.Contains(texts, []byte("hidden-value")) {
		t.Error("a secret is told")
	}
}

func findingsOf(findings []preflight.Finding, code string) (all []string) {
	for _, f := range findings {
		if f.Code == code {
			all = append(all, string(f.Severity)+": "+f.Message)
		}
	}
	return all
}

// TestCertificatesOfHeldSecrets follows one Instance: made once, kept, added to, renewed by the clock, lost, cut off, and no longer needed.
func TestCertificatesOfHeldSecrets(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	const home = "holding"
	search, tracker := pki.Host{Name: "search.example.com", Port: 443}, pki.Host{Name: "t.example.com", Port: 8443}
	one, two := holding(search.Name), holding(search.Name, "t.example.com:8443")
	now := time.Now()

	planned := w.plan(t, "", into(home), one)
	must(t, planned.err)
	if c := planned.plan.Certificates; c == nil || c.Authority != "there is none" || !reflect.DeepEqual(c.Hosts, []jr2.PlannedCertificate{{Host: search.Name, Port: 443, Why: "a new authority"}}) {
		t.Errorf("planned %+v", c)
	}
	first := w.up(t, "", into(home), one, func(o *jr2.Options) { o.Plan = planned.plan })
	must(t, first.err)
	ca, leaves := w.certified(t, home, now, search)
	w.keyless(t, home, first.lines+planned.lines, first.result, planned.plan)
	first.tells(t, []string{"…", "held secret KEY_A: for search.example.com:443, from the configuration", "certificates: made the authority of held secrets (there is none)",
		"certificates: made that of search.example.com:443 (there is none)", "…"})
	if found := findingsOf(first.result.Findings, preflight.CodeHeldAuthority); found != nil {
		t.Errorf("the first authority is news: %s", found)
	}

	before := w.versions(t, home)
	if second := w.up(t, "", into(home), one); second.err != nil || second.result.Changed != 0 || !reflect.DeepEqual(w.versions(t, home), before) {
		t.Errorf("the second converge: %v\n%s", second.err, second.lines)
	}

	must(t, w.up(t, "", into(home), two).err)
	ca2, leaves2 := w.certified(t, home, now, search, tracker)
	if ca2 != ca || leaves2[search.Stem()] != leaves[search.Stem()] {
		t.Error("a host more, and what was there was made again")
	}

	late := now.Add(340 * 24 * time.Hour)
	must(t, w.up(t, "", into(home), two, at(late)).err)
	ca3, leaves3 := w.certified(t, home, late, search, tracker)
	if ca3 != ca || leaves3[search.Stem()] == leaves2[search.Stem()] {
		t.Error("what was about to end was not renewed by the same authority")
	}

	must(t, w.client.CoreV1().Secrets(home).Delete(t.Context(), names.HeldCA, metav1.DeleteOptions{}))
	lost := w.plan(t, "", into(home), two)
	must(t, lost.err)
	if text := lost.plan.String(); len(text) > 20_000 || !strings.Contains(text, "certificates: make the authority of held secrets in Secret jr2-held-ca (there is none)\n"+
		"certificates: make that of search.example.com:443 (a new authority)\n") {
		t.Errorf("the plan says\n%.20000s", text)
	}
	w.keyless(t, home, lost.lines, lost.plan)
	w.cutBefore(t, home, two)
	told := w.up(t, "", into(home), two)
	must(t, told.err)
	if ca4, _ := w.certified(t, home, now, search, tracker); ca4 == ca {
		t.Error("the lost authority is there again")
	}

	gone := w.up(t, "", into(home), holding())
	must(t, gone.err)
	if w.secretOf(t, home, names.HeldTLS) != nil || w.secretOf(t, home, names.HeldSecrets) != nil || w.secretOf(t, home, names.HeldCA) == nil {
		t.Errorf("nothing is held, and of its Secrets another than the authority is there:\n%s", gone.lines)
	}
}

// cutBefore ends a converge when the authority is made and the hosts' certificates are not: the loss is told already then.
func (w *world) cutBefore(t *testing.T, home string, instance func(*jr2.Options)) {
	t.Helper()
	away := func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPatch || r.URL.Path != "/api/v1/namespaces/"+home+"/secrets/"+names.HeldTLS {
				return next.RoundTrip(r)
			}
			body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
			header := http.Header{"Content-Type": {"application/json"}}
			return &http.Response{StatusCode: http.StatusForbidden, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		})
	}
	cut := w.up(t, "", into(home), instance, func(o *jr2.Options) { o.Config.Wrap(away) })
	if cut.err == nil {
		t.Fatal("it was not cut off")
	}
	found := findingsOf(cut.result.Findings, preflight.CodeHeldAuthority)
	if len(found) != 1 || !strings.Contains(found[0], "warn: the authority of held secrets in Secret jr2-held-ca can't go on (there is none) and a new one was made") {
		t.Errorf("the loss is told as %q", found)
	}
	if w.secretOf(t, home, names.HeldCA) == nil {
		t.Error("it was cut off before the authority")
	}
}

// TestAnAuthorityIsMadeByOne: of two who make it at once, whoever comes second takes the other's.
func TestAnAuthorityIsMadeByOne(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	const home = "racing"
	other, err := pki.NewAuthority("holding", time.Now())
	must(t, err)
	meddle := func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && r.URL.Path == "/api/v1/namespaces/"+home+"/secrets" && w.secretOf(t, home, names.HeldCA) == nil && w.secretOf(t, home, names.InstanceSecret) != nil {
				_, err := w.client.CoreV1().Secrets(home).Create(r.Context(), &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Name: names.HeldCA}, Data: map[string][]byte{names.CAKey: other.Cert, names.CAPrivateKey: other.Key},
				}, metav1.CreateOptions{FieldManager: "jr2-mint"})
				if err != nil {
					return nil, err
				}
			}
			return next.RoundTrip(r)
		})
	}
	told := w.up(t, "", into(home), holding("search.example.com"), func(o *jr2.Options) { o.Config.Wrap(meddle) })
	must(t, told.err)
	if ca, _ := w.certified(t, home, time.Now(), pki.Host{Name: "search.example.com", Port: 443}); ca != string(other.Cert) {
		t.Error("the second one replaced the authority of the first")
	}
}

// TestHeldSecretsAreChecked: what the rules need the cluster and the CA bundle for refuses before anything is applied.
func TestHeldSecretsAreChecked(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	const home = "held-refused"
	w.home(t, home, "holding")
	_, err := w.client.CoreV1().ConfigMaps(home).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "flags"}, Data: map[string]string{"OPENAI_API_KEY": "x"}}, metav1.CreateOptions{})
	must(t, err)
	var options jr2.Options
	holding("search.example.com")(&options)
	options.Instance.Harness.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "flags"}}}}
	options.Instance.Root = folder(t, map[string]string{"ca.pem": strings.Repeat(string(pki.PublicRoots()), 2)})
	options.Instance.Harness.CABundle = "ca.pem"
	told := w.up(t, "", into(home), func(o *jr2.Options) { o.Instance = options.Instance })
	var refusal *preflight.Refusal
	if !errors.As(told.err, &refusal) {
		t.Fatalf("got %v", told.err)
	}
	var codes []string
	for _, f := range refusal.Findings {
		codes = append(codes, f.Code)
	}
	if !slices.Equal(codes, []string{preflight.CodeModelKeyReaches, preflight.CodeTrustTooLarge}) || w.secretOf(t, home, names.InstanceSecret) != nil {
		t.Errorf("refused for %s", codes)
	}
}
