package apply_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/apply"
)

// minter makes values that differ, and counts how often it was asked.
func minter(keys ...string) (map[string]func() ([]byte, error), *atomic.Int64) {
	var count atomic.Int64
	all := map[string]func() ([]byte, error){}
	for _, k := range keys {
		all[k] = func() ([]byte, error) { return fmt.Appendf(nil, "hush-%s-%d", k, count.Add(1)), nil }
	}
	return all, &count
}

// Field case F28.
func TestEnsureSecretMintsOnce(t *testing.T) {
	ns := newNamespace(t, nil)
	client := typed(t)
	read := func() map[string][]byte {
		s, err := client.CoreV1().Secrets(ns).Get(t.Context(), "jr2-instance", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s.Data
	}
	two, _ := minter("admin", "salt")
	minted, err := apply.EnsureSecret(t.Context(), client, ns, "jr2-instance", two, apply.SecretOptions{Labels: map[string]string{"jr2.dev/instance": "hold"}})
	if err != nil || !slices.Equal(minted, []string{"admin", "salt"}) {
		t.Fatalf("%v, %v", minted, err)
	}
	first := read()
	three, count := minter("admin", "salt", "third")
	minted, err = apply.EnsureSecret(t.Context(), client, ns, "jr2-instance", three, apply.SecretOptions{})
	if err != nil || !slices.Equal(minted, []string{"third"}) || count.Load() != 1 {
		t.Fatalf("%v, %v, %d values made", minted, err, count.Load())
	}
	if now := read(); string(now["admin"]) != string(first["admin"]) || string(now["salt"]) != string(first["salt"]) || len(now["third"]) == 0 {
		t.Error("a key that was there changed, or the third is missing")
	}
	if minted, err = apply.EnsureSecret(t.Context(), client, ns, "jr2-instance", three, apply.SecretOptions{}); err != nil || len(minted) != 0 || count.Load() != 1 {
		t.Errorf("again: %v, %v", minted, err)
	}
	if _, err := client.CoreV1().Secrets(ns).Patch(t.Context(), "jr2-instance", types.MergePatchType, []byte(`{"data":{"salt":""}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = apply.EnsureSecret(t.Context(), client, ns, "jr2-instance", three, apply.SecretOptions{})
	var empty *apply.EmptyKeyError
	if !errors.As(err, &empty) || !slices.Equal(empty.Keys, []string{"salt"}) || strings.Contains(err.Error(), "hush") {
		t.Errorf("an empty key: %v", err)
	}
}

func TestEnsureSecretStopsWhenItCannotRead(t *testing.T) {
	ns := newNamespace(t, nil)
	for code, reason := range map[int]string{403: "Forbidden", 500: "InternalError", 504: "Timeout", 404: "Gone missing"} {
		cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/secrets/") {
				message := "no"
				if code == 404 {
					message = "the server could not find the requested resource" // not that the Secret is not there
				}
				return answer(r, code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":%q}`, reason, code, message)), nil
			}
			return next.RoundTrip(r)
		})
		client, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		keys, count := minter("a")
		if _, err := apply.EnsureSecret(t.Context(), client, ns, "s", keys, apply.SecretOptions{}); err == nil || count.Load() != 0 {
			t.Errorf("%d: %v, %d values made", code, err, count.Load())
		}
	}
}

func TestEnsureSecretOfManyAtOnceMakesOneValue(t *testing.T) {
	ns := newNamespace(t, nil)
	client := typed(t)
	var wg sync.WaitGroup
	var makers atomic.Int64
	for i := range 8 {
		wg.Go(func() {
			keys, _ := minter("a", fmt.Sprint("own-", i))
			minted, err := apply.EnsureSecret(t.Context(), client, ns, "s", keys, apply.SecretOptions{})
			if err != nil {
				t.Error(err)
			}
			if slices.Contains(minted, "a") {
				makers.Add(1)
			}
		})
	}
	wg.Wait()
	s, err := client.CoreV1().Secrets(ns).Get(t.Context(), "s", metav1.GetOptions{})
	if err != nil || len(s.Data) != 9 || makers.Load() != 1 {
		t.Errorf("%d keys, %d made the common one, %v", len(s.Data), makers.Load(), err)
	}
}
