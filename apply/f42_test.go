package apply_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/apply"
)

// tokenOf is a Secret for the token of an account, with more annotations.
func tokenOf(account string, annotations ...string) string {
	notes := append([]string{"kubernetes.io/service-account.name: " + account}, annotations...)
	return fmt.Sprintf(`apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata: {name: %s-token, namespace: NS, annotations: {%s}}`, account, strings.Join(notes, ", "))
}

func secretRef(ns, name string) apply.Ref {
	return apply.Ref{Version: "v1", Kind: "Secret", Namespace: ns, Name: name}
}

// fixture is a file of testdata without its last line break.
func fixture(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

const strayUID = "5f1c0c53-8a0b-4b8e-9a39-0b1a9f0f5d3e"

// hasToken fails the test unless the token is there now.
func hasToken(t *testing.T, ns, account string) {
	t.Helper()
	got, err := typed(t).CoreV1().Secrets(ns).Get(t.Context(), account+"-token", metav1.GetOptions{})
	if err != nil || len(got.Data[corev1.ServiceAccountTokenKey]) == 0 {
		t.Errorf("the token in %s: %v, keys %d", ns, err, len(got.Data))
	}
}

// takenAway fails the test unless the error is about that object alone, and says why.
func takenAway(t *testing.T, err error, ref apply.Ref, why ...string) {
	t.Helper()
	var away *apply.TakenAwayError
	if !errors.As(err, &away) || away.Ref != ref {
		t.Fatalf("got %v, want one that %s does not stay", err, ref)
	}
	for _, w := range why {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one is told: %v", err)
	}
}

// Field case F42: the account comes before its token Secret, and the token is there when the run ends.
func TestF42ATokenIsThereWhenTheRunEnds(t *testing.T) {
	t.Parallel()
	var others []string
	for i := range 300 {
		others = append(others, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: s%03d, namespace: NS}\nstringData: {k: v}", i))
	}
	for name, docs := range map[string][]string{
		"alone":                      {account("robot"), tokenOf("robot")},
		"among 300":                  append([]string{account("robot"), tokenOf("robot")}, others...),
		"its wave is earlier":        {account("robot", inWave(5)), tokenOf("robot", inWave(-5)), conf("x", "1", inWave(9))},
		"a hook that comes first":    {account("robot", inWave(3)), tokenOf("robot", hooked("PreSync")), conf("x", "1")},
		"of a hook that comes later": {account("robot", hooked("PostSync")), tokenOf("robot", inWave(-1)), conf("x", "1")},
		"home":                       {"apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-b}", strings.ReplaceAll(tokenOf("default"), "NS", "NS-b")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 10 {
				ns := newNamespace(t, nil)
				s := set(t, ns, join(docs...))
				mustApply(t, s, apply.Options{})
				if name == "home" {
					hasToken(t, ns+"-b", "default")
				} else {
					hasToken(t, ns, "robot")
				}
				if out := mustApply(t, s, apply.Options{}); out.Changed() != 0 {
					t.Fatalf("an equal set: %+v", out.Objects)
				}
			}
		})
	}
}

// Field case F42: a token Secret without its account is made and taken away by the token controller, each time, and
// each run says so. A plan knows.
func TestF42ATokenWithoutItsAccountIsTakenAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		docs []string
		why  string
	}{
		"the uid of one that is gone":        {[]string{account("robot"), tokenOf("robot", "kubernetes.io/service-account.uid: "+strayUID)}, "kubernetes.io/service-account.uid"},
		"the uid of one that nobody has":     {[]string{conf("x", "1"), tokenOf("robot", "kubernetes.io/service-account.uid: "+strayUID)}, "with the uid " + strayUID},
		"an account that nobody has":         {[]string{conf("x", "1"), tokenOf("robot")}, "/robot is not there"},
		"in a wave that others come after":   {[]string{conf("x", "1", inWave(1)), tokenOf("robot")}, "/robot is not there"},
		"a hook, and it is no success of it": {[]string{conf("x", "1"), tokenOf("robot", hooked("PreSync"))}, "/robot is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			s := set(t, ns, join(c.docs...))
			token := secretRef(ns, "robot-token")
			for range 2 {
				p := mustPlan(t, s, apply.Options{})
				if step, _ := p.Step(token); step.Intent != apply.WillFail || !strings.Contains(step.Why, c.why) {
					t.Errorf("the plan says %+v", step)
				}
				_, err := p.Apply(t.Context(), config(t))
				takenAway(t, err, token, c.why)
				_, err = apply.Apply(t.Context(), config(t), s, apply.Options{})
				takenAway(t, err, token, c.why)
				_, err = typed(t).CoreV1().Secrets(ns).Get(t.Context(), token.Name, metav1.GetOptions{})
				if apply.Classify(err) != apply.ClassNotFound {
					t.Errorf("the Secret: %v", err)
				}
			}
		})
	}
}

// A token Secret does not outlive the account that this very run takes away. Sibling of F42.
func TestATokenWhoseAccountTheRunRemoves(t *testing.T) {
	t.Parallel()
	t.Run("a hook that goes", func(t *testing.T) {
		t.Parallel()
		ns := newNamespace(t, nil)
		s := set(t, ns, join(account("robot", hooked("PreSync"), deleted("HookSucceeded")), tokenOf("robot")))
		_, err := apply.Apply(t.Context(), config(t), s, apply.Options{})
		takenAway(t, err, secretRef(ns, "robot-token"), "ServiceAccount "+ns+"/robot")
	})
	t.Run("one that left the set", func(t *testing.T) {
		t.Parallel()
		ns := newNamespace(t, nil)
		mustApply(t, set(t, ns, join(account("robot"), tokenOf("robot"))), apply.Options{Prune: true})
		_, err := apply.Apply(t.Context(), config(t), set(t, ns, tokenOf("robot")), apply.Options{Prune: true})
		takenAway(t, err, secretRef(ns, "robot-token"), "ServiceAccount "+ns+"/robot")
	})
}

// owned is a ConfigMap with an owner.
func owned(apiVersion, kind, name, uid string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: x
  namespace: NS
  ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %s}]
data: {k: v}`, apiVersion, kind, name, uid)
}

// What an exported manifest says of its owner has the garbage collector take the object, before or after the run ends;
// each run says it. Sibling of F42.
func TestWhatTheGarbageCollectorTakesIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ doc, why string }{
		"an owner that is not there":      {owned("apps/v1", "Deployment", "web", strayUID), "Deployment.apps NS/web with the uid " + strayUID + " is not there"},
		"another one of its name":         {owned("v1", "ConfigMap", "owner", strayUID), "the one of its name has "},
		"an owner without a namespace":    {owned("scheduling.k8s.io/v1", "PriorityClass", "no-such", strayUID), "PriorityClass.scheduling.k8s.io no-such"},
		"a kind that is not there at all": {owned("example.com/v1", "Thing", "web", strayUID), ""},
		"an owner that is there":          {owned("v1", "ConfigMap", "owner", "OWNER"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}
			owner, err := typed(t).CoreV1().ConfigMaps(ns).Create(t.Context(), owner, metav1.CreateOptions{FieldManager: "hand"})
			if err != nil {
				t.Fatal(err)
			}
			s := set(t, ns, strings.ReplaceAll(c.doc, "OWNER", string(owner.UID)))
			for range 3 {
				p := mustPlan(t, s, apply.Options{})
				_, err := apply.Apply(t.Context(), config(t), s, apply.Options{})
				if c.why == "" {
					if err != nil || p.Err() != nil {
						t.Errorf("got %v, and the plan says %v", err, p.Err())
					}
					continue
				}
				takenAway(t, err, configMap(ns, "x"), strings.ReplaceAll(c.why, "NS", ns), "garbage collector")
				takenAway(t, p.Err(), configMap(ns, "x"))
			}
		})
	}
}

// A bootstrap token that is over is no "created". Sibling of F42.
func TestABootstrapTokenThatIsOver(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]bool{"abcde1": true, "abcde2": false} {
		ns := newNamespace(t, nil)
		end := time.Now().Add(time.Hour)
		if over {
			end = end.Add(-2 * time.Hour)
		}
		token := secretRef("kube-system", "bootstrap-token-"+name)
		s := set(t, ns, fmt.Sprintf(`apiVersion: v1
kind: Secret
type: bootstrap.kubernetes.io/token
metadata: {name: %s, namespace: kube-system}
stringData: {token-id: %s, token-secret: 0123456789abcdef, expiration: %q}`, token.Name, name, end.Format(time.RFC3339)))
		t.Cleanup(func() {
			_ = typed(t).CoreV1().Secrets(token.Namespace).Delete(context.Background(), token.Name, metav1.DeleteOptions{})
		})
		for range 2 {
			_, err := apply.Apply(t.Context(), config(t), s, apply.Options{})
			p := mustPlan(t, s, apply.Options{})
			if !over {
				if err != nil || p.Err() != nil {
					t.Errorf("got %v, and the plan says %v", err, p.Err())
				}
				continue
			}
			takenAway(t, err, token, "the bootstrap token expired at ")
			takenAway(t, p.Err(), token)
		}
	}
}

// What a stranger takes away, or puts in its place, before the run ends is no success. Sibling of F42.
func TestWhatAStrangerTakesDuringTheRunIsTold(t *testing.T) {
	t.Parallel()
	made := func(e apply.Event) bool { a, ok := e.(apply.Applied); return ok && a.Ref.Name == "x" }
	waits := func(e apply.Event) bool { _, ok := e.(apply.Unready); return ok }
	const nobody = "by whom nobody can tell"
	for name, c := range map[string]struct {
		when         func(apply.Event) bool
		changed, put bool
		why          string
	}{
		"at once":                   {when: made, why: nobody},
		"during the wait":           {when: waits, why: nobody},
		"another in its place":      {when: waits, put: true, why: "another object has its name now"},
		"one that was only changed": {when: waits, changed: true, why: nobody},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			maps := typed(t).CoreV1().ConfigMaps(ns)
			if c.changed {
				mustApply(t, set(t, ns, join(conf("x", "0"), conf("other", "0"))), apply.Options{})
			}
			done := false
			stranger := func(e apply.Event) {
				if done || !c.when(e) {
					return
				}
				done = true
				err := maps.Delete(t.Context(), "x", metav1.DeleteOptions{})
				if err == nil && c.put {
					theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
					_, err = maps.Create(t.Context(), theirs, metav1.CreateOptions{FieldManager: "hand"})
				}
				if err != nil {
					t.Error(err)
				}
			}
			s := set(t, ns, join(conf("x", "1"), conf("other", "0"), onePod))
			_, err := apply.Apply(t.Context(), config(t), s, apply.Options{Wait: true, Events: stranger})
			takenAway(t, err, configMap(ns, "x"), c.why)
		})
	}
}

// What an object gets, or is refused or deleted for, at its create is written in an earlier tier. Sibling of F42.
func TestNothingIsWrittenBesideWhatItNeeds(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	s := set(t, ns, fixture(t, "f42/needs.yaml"))
	var written []string
	mustApply(t, s, apply.Options{Events: func(e apply.Event) {
		if a, ok := e.(apply.Applied); ok {
			written = append(written, a.Ref.Kind)
		}
	}})
	for _, pair := range [][2]string{
		{"ServiceAccount", "Secret"},
		{"StorageClass", "PersistentVolumeClaim"},
		{"PersistentVolume", "PersistentVolumeClaim"},
		{"LimitRange", "Deployment"},
		{"IngressClass", "Ingress"},
		{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
	} {
		if a, b := slices.Index(written, pair[0]), slices.Index(written, pair[1]); a < 0 || b < a {
			t.Errorf("%s is not written before %s: %v", pair[0], pair[1], written)
		}
	}
}
