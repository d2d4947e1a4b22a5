package assembly

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/internal/names"
)

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// hostilePointers: what an editor of the namespace may write into the pointer is damage, costs a reader a bounded number of requests, is shown in a
// bounded text, and the next publish mends it.
func hostilePointers(t *testing.T, config *rest.Config, s store) {
	a := made(t, "hostile", 2500)
	s.publish(t, a)
	ok := s.pointer(t).Data[keyCurrent]
	sum := strings.Repeat("ab", 32)
	many := make([]string, maxWorkflows+1)
	for i := range many {
		many[i] = fmt.Sprintf("%q", fmt.Sprint("w", i))
	}
	record := func(hash string, chunks, size int, sum, workflows string) string {
		return fmt.Sprintf(`{"hash":%q,"chunks":%d,"size":%d,"sha256":%q,"workflows":[%s]}`, hash, chunks, size, sum, workflows)
	}
	for name, text := range map[string]string{
		"control characters for a hash": record("\x1b[2J\r\n012345", 1, 10, sum, ""),
		"another object's name":         record("../secrets/x", 1, 10, sum, ""),
		"upper case":                    record("0123456789AB", 1, 10, sum, ""),
		"a long hash":                   record(strings.Repeat("a", 500_000), 1, 10, sum, ""),
		"a chunk for each byte":         record("0123456789ab", 32<<20, 32<<20, sum, ""),
		"just too many chunks":          record("0123456789ab", maxChunks+1, 1<<20, sum, ""),
		"more than fits":                record("0123456789ab", 1, MaxSize+1, sum, ""),
		"below zero":                    record("0123456789ab", -1, -1, sum, ""),
		"no sum":                        record("0123456789ab", 1, 10, "x", ""),
		"too many Workflows":            record(a.Hash, 1, 10, sum, strings.Join(many, ",")),
		"a Workflow of control bytes":   record(a.Hash, 1, 10, sum, `"a\u001b[2Jb"`),
		"a long Workflow":               record(a.Hash, 1, 10, sum, `"`+strings.Repeat("w", 400_000)+`"`),
		"a number that is none":         `{"hash":"0123456789ab","chunks":1e999}`,
		"very deep":                     strings.Repeat("[", 200_000),
		"another kind of value":         `["0123456789ab"]`,
	} {
		for _, key := range []string{keyCurrent, keyPrevious} {
			pointer := s.pointer(t)
			pointer.Data[keyCurrent] = ok
			pointer.Data[key] = text
			if _, err := s.client.CoreV1().ConfigMaps(s.namespace).Update(t.Context(), pointer, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
				t.Fatal(err)
			}
			var requests atomic.Int64
			counting := clientOf(t, config, func(next http.RoundTripper) http.RoundTripper {
				return tripper(func(r *http.Request) (*http.Response, error) { requests.Add(1); return next.RoundTrip(r) })
			})
			_, err := Read(t.Context(), counting, s.namespace)
			if !errors.Is(err, ErrInvalid) || len(err.Error()) > 1000 || requests.Load() > maxChunks+4 {
				t.Errorf("%s, %s: %d requests, %.300v", name, key, requests.Load(), err)
			}
			s.publish(t, a)
			if got := s.current(t); got != a.Hash {
				t.Errorf("%s, %s: not repaired", name, key)
			}
		}
	}
	pointer := s.pointer(t)
	pointer.Data["others"] = strings.Repeat("x", 1<<20-len(pointer.Data[keyCurrent])-1000)
	delete(pointer.Data, keyPrevious)
	if _, err := s.client.CoreV1().ConfigMaps(s.namespace).Update(t.Context(), pointer, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.publish(t, made(t, "after", 2500), a)
	if got := s.current(t); got != a.Hash {
		t.Error("a pointer without room for its keys is not repaired")
	}
	pointer.Data = map[string]string{keyFormat: strings.Repeat("\x1b", 100_000)}
	pointer.ResourceVersion = ""
	if _, err := s.client.CoreV1().ConfigMaps(s.namespace).Update(t.Context(), pointer, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	var format *FormatError
	if err := s.publisher(s.client).Publish(t.Context(), a); !errors.As(err, &format) || len(err.Error()) > 2000 || !strings.Contains(err.Error(), "delete the ConfigMap") {
		t.Errorf("a format that nobody wrote: %.300v", err)
	}
}

// labelledStrangers: the label of a chunk makes nobody's ConfigMap one.
func labelledStrangers(t *testing.T, s store) {
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	make := func(name, hash, manager string, labels map[string]string) {
		t.Helper()
		all := map[string]string{names.LabelAssembly: hash}
		for k, v := range labels {
			all[k] = v
		}
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}, Data: map[string]string{"theirs": "x"}}
		if _, err := maps.Create(t.Context(), o, metav1.CreateOptions{FieldManager: manager}); err != nil {
			t.Fatal(err)
		}
	}
	ours := map[string]string{names.LabelInstance: "my-instance"}
	make("theirs", "0123456789ab", "kubectl-create", nil)
	make("with-our-labels", "0123456789ab", "kubectl-create", ours)
	make(chunkName("0123456789ab", 0), "0123456789ab", "kubectl-create", nil)
	make(names.AssemblyPointer+"-0123456789ab-x", "0123456789ab", fieldManager, ours)
	make(names.AssemblyPointer+"-nohex-0", "nohex", fieldManager, ours)
	make(chunkName("0123456789ab", 7), "0123456789ab", fieldManager, ours) // this one is a chunk
	p := s.publisher(s.client)
	p.now = func() time.Time { return time.Now().Add(100 * orphanAge) }
	if err := p.Publish(t.Context(), made(t, "a", 2500)); err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{
		"theirs": true, "with-our-labels": true, chunkName("0123456789ab", 0): true,
		names.AssemblyPointer + "-0123456789ab-x": true, names.AssemblyPointer + "-nohex-0": true, chunkName("0123456789ab", 7): false,
	} {
		if _, err := maps.Get(t.Context(), name, metav1.GetOptions{}); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}
