package apply_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/apply"
)

// vault is a Secret with values to be made: keys is the mapping, given are values.
func vault(keys, given string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: vault, namespace: NS, labels: {app: api}, annotations: {jr2.dev/mint: %q}}
stringData: {%s}`, keys, given)
}

func vaultRef(ns string) apply.Ref {
	return apply.Ref{Version: "v1", Kind: "Secret", Namespace: ns, Name: "vault"}
}

// vaultNow reads the Secret; the zero Secret when there is none.
func vaultNow(t *testing.T, ns string) *corev1.Secret {
	t.Helper()
	s, err := typed(t).CoreV1().Secrets(ns).Get(t.Context(), "vault", metav1.GetOptions{})
	if err != nil && apply.Classify(err) != apply.ClassNotFound {
		t.Fatal(err)
	}
	return s
}

func patchVault(t *testing.T, ns, patch string) {
	t.Helper()
	_, err := typed(t).CoreV1().Secrets(ns).Patch(t.Context(), "vault", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "hand"})
	if err != nil {
		t.Fatal(err)
	}
}

// A listener keeps what a run said, to look for values in it.
type listener struct {
	mu     sync.Mutex
	said   []string
	events []apply.Event
}

func (l *listener) hear(e apply.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	l.said = append(l.said, fmt.Sprintf("%+v %#v", e, e))
}

// hearPlan keeps all forms of a plan.
func (l *listener) hearPlan(t *testing.T, p *apply.Plan) {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	l.said = append(l.said, string(raw), p.String(), fmt.Sprintf("%+v %#v", p, p))
}

func (l *listener) warnings() (texts []string) {
	for _, e := range l.events {
		if w, ok := e.(apply.Warned); ok {
			texts = append(texts, w.Text)
		}
	}
	return texts
}

// hush fails the test when a value was said, as it is or in base64.
func (l *listener) hush(t *testing.T, s *corev1.Secret) {
	t.Helper()
	for k, v := range s.Data {
		for _, said := range l.said {
			if strings.Contains(said, string(v)) || strings.Contains(said, base64.StdEncoding.EncodeToString(v)) {
				t.Errorf("the value of %s was said: %s", k, said)
			}
		}
	}
}

// wantMint compares what a run did with the Secret.
func wantMint(t *testing.T, out *apply.Outcome, ns string, action apply.Action, why string) {
	t.Helper()
	for _, x := range out.Objects {
		if x.Ref == vaultRef(ns) {
			if x.Action != action || !strings.Contains(x.Why, why) || why == "" && x.Why != "" {
				t.Errorf("got %s %q, want %s %q", x.Action, x.Why, action, why)
			}
			return
		}
	}
	t.Errorf("no result: %+v", out.Objects)
}

// The values of a minted Secret are made once: later runs add what is missing and touch nothing else. Field case F28.
func TestA04SecretsAreMintedOnce(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	l := &listener{}
	opts := apply.Options{Prune: true, Events: l.hear}
	stack := func(keys, given string) *apply.Set { return set(t, ns, join(vault(keys, given), conf("c", "1"))) }
	two := stack("{KEY: 'hex:32', sign: ed25519}", "user: admin-of-vault")

	p := mustPlan(t, two, opts)
	l.hearPlan(t, p)
	wantText(t, p, ns, "create      ConfigMap NS/c\nmint        Secret NS/vault: KEY, sign, sign.pub\n1 to create, 1 to mint\n")
	wantMint(t, mustApply(t, two, apply.Options{DryRun: true}), ns, apply.Minted, "KEY, sign, sign.pub")
	if s := vaultNow(t, ns); s.UID != "" {
		t.Error("a dry run made it")
	}
	out, err := p.Apply(t.Context(), config(t))
	if err != nil {
		t.Fatal(err)
	}
	wantMint(t, out, ns, apply.Minted, "KEY, sign, sign.pub")
	first := vaultNow(t, ns)
	if len(first.Data["KEY"]) != 64 || pemKey(string(first.Data["sign"])) != nil || string(first.Data["user"]) != "admin-of-vault" ||
		!bytes.HasPrefix(first.Data["sign.pub"], []byte("-----BEGIN PUBLIC KEY")) || len(first.Data) != 4 {
		t.Errorf("the Secret has other values than it should")
	}
	if first.Labels["app"] != "api" || first.Annotations[apply.SetAnnotation] != two.ID() || first.Type != corev1.SecretTypeOpaque {
		t.Errorf("%+v, type %s", first.ObjectMeta, first.Type)
	}

	wantText(t, mustPlan(t, two, opts), ns, "2 unchanged\n")
	asked := &requests{}
	out, err = apply.Apply(t.Context(), asked.through(t), two, opts)
	if err != nil || out.Changed() != 0 {
		t.Errorf("again: %+v, %v", out, err)
	}
	if slices.ContainsFunc(asked.of("vault"), func(s string) bool { return !strings.HasPrefix(s, "metadata ") }) {
		t.Errorf("a run that changes nothing asked for values: %q", asked.of("vault"))
	}

	// Another generator, another given value and another label change nothing; a third key and a new given value are added.
	three := stack("{KEY: 'password:16', sign: ed25519, third: uuid}", "user: root-of-vault, host: vault.example")
	p = mustPlan(t, three, opts)
	l.hearPlan(t, p)
	wantText(t, p, ns, "mint        Secret NS/vault: third\n            data.host: (absent) -> ****\n            data.third: (absent) -> ****\n1 to mint, 1 unchanged\n")
	wantMint(t, mustApply(t, three, opts), ns, apply.Minted, "third")
	now := vaultNow(t, ns)
	for _, k := range []string{"KEY", "sign", "sign.pub", "user"} {
		if !bytes.Equal(now.Data[k], first.Data[k]) {
			t.Errorf("%s changed", k)
		}
	}
	if len(now.Data["third"]) != 36 || string(now.Data["host"]) != "vault.example" {
		t.Error("a key was not added")
	}
	if out := mustApply(t, three, opts); out.Changed() != 0 {
		t.Errorf("again: %+v", out.Objects)
	}

	// A value changed by hand stays; a key removed by hand is made again.
	patchVault(t, ns, `{"data":{"KEY":"aGFuZA==","third":null}}`)
	wantMint(t, mustApply(t, three, opts), ns, apply.Minted, "third")
	if got := vaultNow(t, ns); string(got.Data["KEY"]) != "hand" || bytes.Equal(got.Data["third"], now.Data["third"]) || len(got.Data["third"]) != 36 {
		t.Error("the value of a hand was not kept, or the key that it removed was not made again")
	}
	patchVault(t, ns, `{"data":{"host":null}}`)
	wantMint(t, mustApply(t, three, opts), ns, apply.Configured, "host")
	l.hush(t, vaultNow(t, ns))
	l.hush(t, now)
}

// A Secret that was deleted by hand is made again, with a warning; one that left the set stays, because it holds data.
func TestA04LostSecretIsTold(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	l := &listener{}
	opts := apply.Options{Prune: true, Events: l.hear}
	s := set(t, ns, vault("KEY: hex:32", ""))
	mustApply(t, s, opts)
	if len(l.warnings()) != 0 {
		t.Errorf("%q", l.warnings())
	}
	was := vaultNow(t, ns)
	if err := typed(t).CoreV1().Secrets(ns).Delete(t.Context(), "vault", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	step, _ := mustPlan(t, s, opts).Step(vaultRef(ns))
	if step.Intent != apply.WillMint || !strings.Contains(step.Why, "KEY; it was minted before and is gone") {
		t.Errorf("%+v", step)
	}
	wantMint(t, mustApply(t, s, opts), ns, apply.Minted, "KEY; it was minted before and is gone")
	if w := l.warnings(); len(w) != 1 || !strings.Contains(w[0], "minted before") {
		t.Errorf("%q", w)
	}
	now := vaultNow(t, ns)
	if bytes.Equal(now.Data["KEY"], was.Data["KEY"]) || len(now.Data["KEY"]) != 64 {
		t.Error("no new value")
	}
	wantMint(t, mustApply(t, s, opts), ns, apply.Unchanged, "")

	// Declared without the annotation, it is applied: what was minted is not dropped.
	mustApply(t, set(t, ns, strings.Replace(vault("", ""), "jr2.dev/mint", "example.com/note", 1)), opts)
	if got := vaultNow(t, ns); !bytes.Equal(got.Data["KEY"], now.Data["KEY"]) {
		t.Error("a server-side apply dropped the minted value")
	}
	mustApply(t, s, opts)
	out := mustApply(t, set(t, ns, conf("c", "1")), opts)
	if out.Did(vaultRef(ns)) != apply.Kept || len(vaultNow(t, ns).Data) == 0 {
		t.Errorf("%+v", out.Objects)
	}
	out = mustApply(t, set(t, ns, conf("c", "1")), apply.Options{Prune: true, PruneData: []apply.Ref{vaultRef(ns)}})
	if out.Did(vaultRef(ns)) != apply.Pruned {
		t.Errorf("%+v", out.Objects)
	}
}

// requests keeps what was asked of the server: "metadata GET …", "GET …", "POST …".
type requests struct {
	mu   sync.Mutex
	list []string
}

func (q *requests) through(t *testing.T) *rest.Config {
	return through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		text := r.Method + " " + r.URL.Path
		if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
			text = "metadata " + text
		}
		q.mu.Lock()
		q.list = append(q.list, text)
		q.mu.Unlock()
		return next.RoundTrip(r)
	})
}

// of lists the requests about Secrets, and those about one of that name.
func (q *requests) of(name string) (texts []string) {
	for _, s := range q.list {
		if base := path.Base(s); base == name || base == "secrets" {
			texts = append(texts, s)
		}
	}
	return texts
}

// A Secret that exists is adopted: it gets the mark of the set and the keys that it lacks; another set's is refused.
func TestMintIntoASecretThatExists(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	make := func(annotations map[string]string, immutable bool, data map[string][]byte) {
		t.Helper()
		secrets := typed(t).CoreV1().Secrets(ns)
		if err := secrets.Delete(t.Context(), "vault", metav1.DeleteOptions{}); err != nil && apply.Classify(err) != apply.ClassNotFound {
			t.Fatal(err)
		}
		_, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "vault", Annotations: annotations}, Immutable: &immutable, Data: data}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	s := set(t, ns, vault("{KEY: 'hex:32', sign: ed25519}", ""))
	kept := map[string][]byte{"KEY": []byte("hush-of-a-hand")}
	fails := func(name string, want any) {
		t.Helper()
		was := vaultNow(t, ns)
		adopt := apply.Options{Adopt: true}
		_, err := apply.Apply(t.Context(), config(t), s, adopt)
		p := mustPlan(t, s, adopt)
		if !errors.As(err, want) || !errors.As(p.Err(), want) || strings.Contains(err.Error()+p.String(), "hush") {
			t.Errorf("%s: %v; the plan: %v", name, err, p.Err())
		}
		if vaultNow(t, ns).ResourceVersion != was.ResourceVersion {
			t.Errorf("%s: it was written", name)
		}
	}
	var owned *apply.OwnedError
	make(map[string]string{apply.SetAnnotation: "else/where"}, false, kept)
	fails("another set's", &owned)
	var mint *apply.MintError
	make(nil, true, kept)
	fails("immutable", &mint)
	make(nil, false, map[string][]byte{"KEY": []byte("hush"), "sign.pub": []byte("hush")})
	fails("a public key without its private one", &mint)
	make(nil, false, map[string][]byte{"KEY": []byte("hush"), "sign": []byte("hush")})
	fails("a private key that is none", &mint)
	var empty *apply.EmptyKeyError
	make(nil, false, map[string][]byte{"KEY": {}, "sign": []byte("hush")})
	fails("an empty key", &empty)

	make(nil, false, kept)
	if _, err := apply.Apply(t.Context(), config(t), s, apply.Options{}); !errors.As(err, new(*apply.UnownedError)) || len(vaultNow(t, ns).Data) != 1 {
		t.Errorf("without adoption: %v", err)
	}
	wantMint(t, mustApply(t, s, apply.Options{Adopt: true}), ns, apply.Minted, "sign, sign.pub")
	now := vaultNow(t, ns)
	if now.Annotations[apply.SetAnnotation] != s.ID() || string(now.Data["KEY"]) != "hush-of-a-hand" {
		t.Error("it did not get the mark, or lost its value")
	}
	patchVault(t, ns, `{"data":{"sign.pub":null}}`)
	wantMint(t, mustApply(t, s, apply.Options{}), ns, apply.Minted, "sign.pub")
	if !bytes.Equal(vaultNow(t, ns).Data["sign.pub"], now.Data["sign.pub"]) {
		t.Error("the public key is not that of the private one")
	}

	make(nil, false, now.Data)
	if step, _ := mustPlan(t, s, apply.Options{Adopt: true}).Step(vaultRef(ns)); step.Intent != apply.WillAdopt {
		t.Errorf("%+v", step)
	}
	wantMint(t, mustApply(t, s, apply.Options{Adopt: true}), ns, apply.Configured, "")
	wantMint(t, mustApply(t, s, apply.Options{Verify: apply.VerifyFull}), ns, apply.Unchanged, "")
}

// A plan that adds a key is carried out on exactly the Secret that it saw.
func TestMintPlanHoldsForWhatItSaw(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, set(t, ns, vault("KEY: hex", "")), apply.Options{})
	s := set(t, ns, vault("{KEY: hex, more: hex}", ""))
	p := mustPlan(t, s, apply.Options{})
	patchVault(t, ns, `{"data":{"more":"aGFuZA=="}}`)
	var moved *apply.MovedError
	if _, err := p.Apply(t.Context(), config(t)); !errors.As(err, &moved) || !slices.Equal(moved.Moved, []apply.Ref{vaultRef(ns)}) {
		t.Errorf("%v", err)
	}
	patchVault(t, ns, `{"data":{"more":null}}`)
	p = mustPlan(t, s, apply.Options{})
	// Between the look of the apply and its write, a hand removes one more key.
	removed := false
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if strings.HasPrefix(path.Base(r.URL.Path), apply.InventoryName("app")) && r.Method != http.MethodGet && !removed {
			removed = true
			patchVault(t, ns, `{"data":{"KEY":null}}`)
		}
		if r.Method == http.MethodGet && path.Base(r.URL.Path) == "vault" && !strings.Contains(r.Header.Get("Accept"), "Partial") && !removed {
			resp, err := next.RoundTrip(r)
			removed = true
			patchVault(t, ns, `{"data":{"KEY":null}}`)
			return resp, err
		}
		return next.RoundTrip(r)
	})
	if _, err := p.Apply(t.Context(), cfg); !errors.As(err, &moved) || !removed {
		t.Errorf("moved under the apply: %v", err)
	}
	if len(vaultNow(t, ns).Data) != 0 {
		t.Error("a key was minted that the plan did not say")
	}
}
