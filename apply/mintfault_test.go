package apply_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/apply"
)

// isSecretWrite says that a request would change a Secret.
func isSecretWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/secrets") && r.URL.Query().Get("dryRun") == ""
}

// asWriter is the identity that may create Secrets and not read them.
func asWriter(t *testing.T) *rest.Config {
	t.Helper()
	cfg, err := shared.ConfigFor("writer")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// An identity that may create Secrets and not read them mints them, and makes no second value.
func TestA04AnIdentityThatMayOnlyCreate(t *testing.T) {
	t.Parallel()
	const ns = "t-writer"
	l := &listener{}
	opts := apply.Options{Prune: true, Events: l.hear}
	s := set(t, ns, join(vault("{KEY: 'hex:32', sign: ed25519}", "user: vault-user"), conf("c", "1", inWave(1)), conf("d", "1", inWave(2))))
	plan := func() apply.Step {
		t.Helper()
		p, err := apply.MakePlan(t.Context(), asWriter(t), s, opts)
		if err == nil {
			err = p.Err()
		}
		if err != nil {
			t.Fatal(err)
		}
		l.hearPlan(t, p)
		step, _ := p.Step(vaultRef(ns))
		return step
	}
	run := func(cfg *rest.Config) *apply.Outcome {
		t.Helper()
		out, err := apply.Apply(t.Context(), cfg, s, opts)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if step := plan(); step.Intent != apply.WillMint || step.Why != "KEY, sign, sign.pub" {
		t.Errorf("%+v", step)
	}
	wantMint(t, run(asWriter(t)), ns, apply.Minted, "KEY, sign, sign.pub")
	first := vaultNow(t, ns)
	if step := plan(); step.Intent != apply.WillLeave || !strings.Contains(step.Why, "may not be read") {
		t.Errorf("%+v", step)
	}
	for range 2 {
		out := run(asWriter(t))
		wantMint(t, out, ns, apply.Unchanged, "it exists and may not be read")
		if out.Changed() != 0 {
			t.Errorf("%+v", out.Objects)
		}
	}
	if now := vaultNow(t, ns); now.ResourceVersion != first.ResourceVersion {
		t.Error("the Secret changed")
	}
	l.hush(t, first)

	// Deleted by hand; and the answer to the create is lost.
	if err := typed(t).CoreV1().Secrets(ns).Delete(t.Context(), "vault", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if step := plan(); step.Intent != apply.WillMint || !strings.Contains(step.Why, "minted before") {
		t.Errorf("%+v", step)
	}
	cfg := asWriter(t)
	var lost atomic.Bool
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil && isSecretWrite(r) && lost.CompareAndSwap(false, true) {
				resp.Body.Close()
				return nil, io.ErrUnexpectedEOF
			}
			return resp, err
		})
	})
	wantMint(t, run(cfg), ns, apply.Minted, "the answer was lost")
	wantMint(t, run(asWriter(t)), ns, apply.Unchanged, "may not be read")

	// One that left the set can't be looked at, and stays.
	out, err := apply.Apply(t.Context(), asWriter(t), set(t, ns, conf("c", "1")), opts)
	if err != nil || out.Did(vaultRef(ns)) != apply.Kept {
		t.Errorf("%+v, %v", out.Objects, err)
	}
}

// Of many that converge at once, one makes the values, whether or not they may read them.
func TestA04RacersMakeOneValue(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	s := set(t, ns, vault("{KEY: 'hex:32', sign: ed25519}", ""))
	var wg sync.WaitGroup
	var makers atomic.Int64
	for i := range 8 {
		wg.Go(func() {
			out, err := apply.Apply(t.Context(), config(t), s, apply.Options{Shared: i > 1, Adopt: true}) // two of them keep an inventory
			if err != nil && !errors.Is(err, apply.ErrInventoryMoved) {
				t.Error(err)
			}
			makers.Add(int64(out.Count(apply.Minted)))
		})
	}
	wg.Wait()
	if makers.Load() != 1 {
		t.Errorf("%d made values", makers.Load())
	}
	now := vaultNow(t, ns)
	if out := mustApply(t, s, apply.Options{Adopt: true}); out.Did(vaultRef(ns)) == apply.Minted || len(now.Data) != 3 {
		t.Errorf("%+v, %d keys", out.Objects, len(now.Data))
	}
}

// A Secret that somebody makes between the look and the create is left alone; adopted, it keeps what they put there, and gets what it lacks. Field
// case F28.
func TestMintYieldsToWhoIsFaster(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		theirs map[string][]byte
		why    string
	}{
		"by all keys":   {map[string][]byte{"KEY": []byte("theirs"), "more": []byte("theirs")}, ""},
		"by one key":    {map[string][]byte{"KEY": []byte("theirs")}, "more"},
		"by other keys": {map[string][]byte{"other": []byte("theirs")}, "KEY, more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			var once sync.Once
			cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				if isSecretWrite(r) && r.Method == http.MethodPost {
					once.Do(func() {
						if _, err := typed(t).CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "vault"}, Data: tt.theirs}, metav1.CreateOptions{}); err != nil {
							t.Error(err)
						}
					})
				}
				return next.RoundTrip(r)
			})
			s := set(t, ns, vault("{KEY: hex, more: hex}", ""))
			if _, err := apply.Apply(t.Context(), cfg, s, apply.Options{}); !errors.As(err, new(*apply.UnownedError)) {
				t.Fatalf("without adoption: %v", err)
			}
			if now := vaultNow(t, ns); len(now.Data) != len(tt.theirs) || len(now.Annotations) != 0 {
				t.Error("it was written though nobody asked for its adoption")
			}
			out := mustApply(t, s, apply.Options{Adopt: true})
			wantMint(t, out, ns, map[bool]apply.Action{true: apply.Configured, false: apply.Minted}[tt.why == ""], tt.why)
			now := vaultNow(t, ns)
			for k, v := range tt.theirs {
				if !bytes.Equal(now.Data[k], v) {
					t.Errorf("%s was written over", k)
				}
			}
			if len(now.Data["KEY"]) == 0 || len(now.Data["more"]) == 0 {
				t.Error("a key is missing")
			}
		})
	}
}

// A Secret that becomes another set's between the look and the read is left to that.
func TestMintLeavesAnotherSetsSecret(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	_, err := typed(t).CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "vault"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if path.Base(r.URL.Path) == "vault" && r.Method == http.MethodGet && !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
			patchVault(t, ns, `{"metadata":{"annotations":{"jr2.dev/set":"else/where"}}}`)
		}
		return next.RoundTrip(r)
	})
	_, err = apply.Apply(t.Context(), cfg, set(t, ns, vault("KEY: hex", "")), apply.Options{Adopt: true})
	var owned *apply.OwnedError
	if !errors.As(err, &owned) || owned.Owner != "else/where" || len(vaultNow(t, ns).Data) != 0 {
		t.Errorf("%v", err)
	}
}

// A run that is cut off before or after the create, or whose answer is lost, makes no second value.
func TestMintIsNotDoneTwiceAfterACrash(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name            string
		arrives, retry  bool
		again           apply.Action
		firstIsComplete bool
	}{
		{"cut off before the create", false, false, apply.Minted, false},
		{"cut off after the create", true, false, apply.Unchanged, false},
		{"answer lost", true, true, apply.Unchanged, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			s := set(t, ns, vault("KEY: hex:32", ""))
			var cut atomic.Bool
			cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				if cut.Load() && !tt.retry {
					return nil, errGone
				}
				if !isSecretWrite(r) || cut.Load() {
					return next.RoundTrip(r)
				}
				if tt.arrives {
					resp, err := next.RoundTrip(r)
					if err != nil {
						return nil, err
					}
					resp.Body.Close()
				}
				cut.Store(true)
				if tt.retry {
					return nil, io.ErrUnexpectedEOF
				}
				return nil, errGone
			})
			out, err := apply.Apply(t.Context(), cfg, s, apply.Options{})
			if tt.firstIsComplete {
				wantMint(t, out, ns, apply.Minted, "KEY")
			}
			if (err == nil) != tt.firstIsComplete {
				t.Errorf("%v", err)
			}
			was := vaultNow(t, ns)
			wantMint(t, mustApply(t, s, apply.Options{}), ns, tt.again, map[apply.Action]string{apply.Minted: "KEY"}[tt.again])
			if now := vaultNow(t, ns); tt.arrives && !bytes.Equal(now.Data["KEY"], was.Data["KEY"]) || len(now.Data["KEY"]) != 64 {
				t.Error("another value")
			}
			asked := &requests{}
			out, err = apply.Apply(t.Context(), asked.through(t), s, apply.Options{})
			if err != nil || out.Changed() != 0 || len(asked.of("vault")) != 1 {
				t.Errorf("%+v, %v, %q", out, err, asked.of("vault"))
			}
		})
	}
}

var errGone = errors.New("the process is gone")

// What can't be read is never minted over: neither a refused nor a failing read means that nothing is there. Field case F28.
func TestMintStopsWhenItCannotRead(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	// KEY is not there, so that a wrong turn would show.
	_, err := typed(t).CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "vault"}, Data: map[string][]byte{"other": []byte("x")}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := set(t, ns, vault("KEY: hex:32", ""))
	status := func(code int, reason, message string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":%q}`, reason, code, message)
	}
	for _, tt := range []struct {
		name       string
		code       int
		body       string
		metaToo    bool
		wantAction apply.Action // "" for an error
	}{
		{"server error", 500, status(500, "InternalError", "etcdserver: request timed out"), false, ""},
		{"time-out", 504, status(504, "Timeout", "the request timed out"), false, ""},
		{"no such resource", 404, status(404, "NotFound", "the server could not find the requested resource"), false, ""},
		{"time-out of the look", 504, status(504, "Timeout", "the request timed out"), true, ""},
		{"forbidden", 403, status(403, "Forbidden", `secrets "vault" is forbidden: User "x" cannot get resource "secrets" in API group ""`), false, apply.Unchanged},
		{"all forbidden", 403, status(403, "Forbidden", `secrets is forbidden: User "x" cannot list resource "secrets" in API group ""`), true, apply.Unchanged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var wrote atomic.Int64
			cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				if isSecretWrite(r) {
					wrote.Add(1)
				}
				isMeta := strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata")
				if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/secrets") && (!isMeta || tt.metaToo) {
					return answer(r, tt.code, tt.body), nil
				}
				return next.RoundTrip(r)
			})
			out, err := apply.Apply(t.Context(), cfg, s, apply.Options{Shared: true, Retry: apply.Retry{Limit: 300 * time.Millisecond}})
			if tt.wantAction != "" {
				if err != nil {
					t.Fatal(err)
				}
				wantMint(t, out, ns, tt.wantAction, "may not be read")
			} else if object := (*apply.ObjectError)(nil); !errors.As(err, &object) || object.Ref != vaultRef(ns) || len(out.Objects) != 0 {
				t.Errorf("%+v, %v", out, err)
			}
			if wrote.Load() != 0 {
				t.Errorf("%d writes", wrote.Load())
			}
		})
	}
}

// A refusal that quotes the Secret is told without its words.
func TestMintErrorsQuoteNoValue(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	l := &listener{}
	var body []byte
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost && path.Base(r.URL.Path) == "secrets" {
			body, _ = io.ReadAll(r.Body)
			quoted, err := json.Marshal(string(body))
			return answer(r, 422, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":%s,"details":{"causes":[{"field":"data","reason":"FieldValueInvalid","message":%[1]s}]}}`, quoted)), err
		}
		return next.RoundTrip(r)
	})
	_, err := apply.Apply(t.Context(), cfg, set(t, ns, vault("KEY: password", "user: hush")), apply.Options{Events: l.hear})
	var object *apply.ObjectError
	if !errors.As(err, &object) || object.Class != apply.ClassInvalid || !bytes.Contains(body, []byte("KEY")) {
		t.Fatalf("%v", err)
	}
	if said := err.Error() + strings.Join(l.said, ""); strings.Contains(said, "KEY") || strings.Contains(said, "hush") || strings.Contains(said, "aHVzaA") {
		t.Errorf("it quotes: %v", err)
	}
}

func TestMintDeclarationsThatAreWrong(t *testing.T) {
	t.Parallel()
	at := `metadata.annotations["jr2.dev/mint"]`
	for _, tt := range []struct{ name, text, path, want string }{
		{"unknown", vault("KEY: hunter2", ""), at, "KEY: want one of bytes:N"},
		{"number", vault("KEY: hex:8", ""), at, "KEY: hex:N takes a whole number from 16 to 4096"},
		{"no text", vault("KEY: 32", ""), at, "KEY: want one of"},
		{"no mapping", vault("hunter2", ""), at, "want a YAML mapping"},
		{"empty", vault("{}", ""), at, "want a YAML mapping"},
		{"twice", vault("{KEY: hex, KEY: uuid}", ""), at, "each key once"},
		{"no key", vault("{a/b: hex}", ""), at, `"a/b" is no key of a Secret`},
		{"given too", vault("KEY: hex", "KEY: hush"), at, "KEY is in data too"},
		{"public given", vault("KEY: ed25519", "KEY.pub: hush"), at, "KEY.pub is in data too"},
		{"public made", vault("{KEY: ed25519, KEY.pub: hex}", ""), at, "KEY.pub is the public key of KEY"},
		{"no Secret", strings.ReplaceAll(vault("KEY: hex", ""), "kind: Secret", "kind: ConfigMap"), at, "only a Secret"},
		{"hook", strings.ReplaceAll(vault("KEY: hex", ""), "annotations: {", "annotations: {"+hooked("PreSync")+", "), at, "made once"},
		{"no base64", strings.ReplaceAll(vault("KEY: hex", ""), "stringData: {", "data: {a: hush!"), "", "base64"},
		{"unknown field", vault("KEY: hex", "") + "\ndat: {}", "", `unknown field "dat"`},
	} {
		_, err := apply.Read("app", "demo", apply.Stream("vault.yaml", strings.NewReader(strings.ReplaceAll(tt.text, "NS", "demo"))))
		var wrong *apply.SetError
		if !errors.As(err, &wrong) {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		p := wrong.Problems[0]
		if len(wrong.Problems) != 1 || p.Path != tt.path || p.Origin != "vault.yaml:1" || !strings.Contains(p.Text, tt.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	made := apply.MintSecret("demo", "vault", map[string]apply.Generator{"KEY": {}})
	if _, err := apply.NewSet("app", "demo", made); err == nil {
		t.Error("the zero Generator was taken")
	}
}

// A run that ends right after it announced its objects, for an identity that may not read Secrets: when the minted Secret then leaves the
// set, it is kept, as one that nobody may look at.
func TestA04AMintedSecretThatLeavesAfterACrash(t *testing.T) {
	const ns = "t-writer"
	cfg := asWriter(t)
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil && isSecretWrite(r) { // it was made, and the run ends before that is noted
				resp.Body.Close()
				kill()
				return nil, io.ErrUnexpectedEOF
			}
			return resp, err
		})
	})
	s := set(t, ns, join(strings.Replace(vault("{KEY: 'hex:32'}", ""), "name: vault", "name: cut-off", 1), conf("cut-off", "1")))
	s.Name = "cut-off"
	if _, err := apply.Apply(ctx, cfg, s, apply.Options{Prune: true, Concurrency: 1}); err == nil {
		t.Fatal("the run was not cut off")
	}
	next := set(t, ns, conf("cut-off", "1"))
	next.Name = "cut-off"
	out, err := apply.Apply(t.Context(), asWriter(t), next, apply.Options{Prune: true})
	ref := vaultRef(ns)
	ref.Name = "cut-off"
	if err != nil || out.Did(ref) != apply.Kept {
		t.Errorf("%+v, %v", out.Objects, err)
	}
}
