package assembly

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/names"
)

// made is an Assembly whose one module has the given size; different seeds give different content.
func made(t *testing.T, seed string, size int) *Assembly {
	t.Helper()
	source := bytes.Repeat([]byte(seed+"-"), size/(len(seed)+1)+1)[:size]
	return build(t, &config.Instance{
		Name: "my-instance", KitVersion: "0.3.0", Workflows: []config.Workflow{{Name: "hold"}, {Name: "ping"}},
		Modules: []config.Module{{Name: "ping", Source: source}},
	}, nil)
}

func clientOf(t *testing.T, config *rest.Config, wrap func(http.RoundTripper) http.RoundTripper) kubernetes.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	if wrap != nil {
		config.Wrap(wrap)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// store is one namespace of the test cluster.
type store struct {
	client    kubernetes.Interface
	namespace string
}

func newStore(t *testing.T, client kubernetes.Interface) store {
	t.Helper()
	ns, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "assembly-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return store{client, ns.Name}
}

// publisher cuts small chunks, so that small archives have several.
func (s store) publisher(client kubernetes.Interface) *ClusterPublisher {
	p := Cluster(client, s.namespace, map[string]string{names.LabelInstance: "my-instance"})
	p.chunkSize = 1000
	return p
}

func (s store) publish(t *testing.T, assemblies ...*Assembly) {
	t.Helper()
	for _, a := range assemblies {
		if err := s.publisher(s.client).Publish(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
}

// current reads what is current; it fails the test when that is not whole.
func (s store) current(t *testing.T) string {
	t.Helper()
	a, err := Read(t.Context(), s.client, s.namespace)
	if err != nil {
		t.Fatal(err)
	}
	if a == nil {
		return ""
	}
	return a.Hash
}

// stored lists the hashes that have chunks.
func (s store) stored(t *testing.T) []string {
	t.Helper()
	list, err := s.client.CoreV1().ConfigMaps(s.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: names.LabelAssembly})
	if err != nil {
		t.Fatal(err)
	}
	var hashes []string
	for _, chunk := range list.Items {
		hashes = append(hashes, chunk.Labels[names.LabelAssembly])
	}
	slices.Sort(hashes)
	return slices.Compact(hashes)
}

func sorted(hashes ...string) []string { slices.Sort(hashes); return hashes }

func TestRealAPIServer(t *testing.T) {
	config := devcluster.ForTest(t, devcluster.Options{Nodes: []devcluster.Node{}}).Config()
	client := clientOf(t, config, nil)
	t.Run("life of a store", func(t *testing.T) { life(t, newStore(t, client)) })
	t.Run("three MiB", func(t *testing.T) { large(t, newStore(t, client)) })
	t.Run("damage is seen and repaired", func(t *testing.T) { damage(t, newStore(t, client)) })
	t.Run("a newer format is left alone", func(t *testing.T) { newerFormat(t, newStore(t, client)) })
	t.Run("strangers are left alone", func(t *testing.T) { strangersAreLeftAlone(t, newStore(t, client)) })
	t.Run("old rubbish goes", func(t *testing.T) { rubbish(t, newStore(t, client)) })
	t.Run("a pointer that an editor wrote", func(t *testing.T) { hostilePointers(t, config, newStore(t, client)) })
	t.Run("strangers with the label of chunks", func(t *testing.T) { labelledStrangers(t, newStore(t, client)) })
	t.Run("cut off at any request", func(t *testing.T) { cutOff(t, config, client) })
	t.Run("an answer is lost", func(t *testing.T) { lostAnswers(t, config, client) })
	t.Run("a sweep meets a publisher", func(t *testing.T) { sweepMeetsPublisher(t, config, newStore(t, client)) })
	t.Run("publishers at once", func(t *testing.T) { atOnce(t, newStore(t, client)) })
	t.Run("errors are not absence", func(t *testing.T) { forbidden(t, config, newStore(t, client)) })
}

func life(t *testing.T, s store) {
	a, b, c := made(t, "a", 2500), made(t, "b", 2500), made(t, "c", 100)
	p := s.publisher(s.client)
	if hash, found, err := p.Current(t.Context()); hash != "" || found || err != nil {
		t.Fatalf("before: %q, %v, %v", hash, found, err)
	}
	var superseded *SupersededError
	if _, err := p.WaitCurrent(t.Context(), a.Hash); !errors.As(err, &superseded) || superseded.Have != "" {
		t.Errorf("before: %v", err)
	}
	s.publish(t, a)
	if hash, found, err := p.Current(t.Context()); hash != a.Hash || !found || err != nil {
		t.Errorf("after: %q, %v, %v", hash, found, err)
	}
	if names, err := p.WaitCurrent(t.Context(), a.Hash); err != nil || !slices.Equal(names, []string{"hold", "ping"}) {
		t.Errorf("after: %v, %v", names, err)
	}
	read, err := Read(t.Context(), s.client, s.namespace)
	if err != nil || !reflect.DeepEqual(read, a) {
		t.Errorf("round trip: %v", err)
	}
	before := s.pointer(t).ResourceVersion
	s.publish(t, a)
	if after := s.pointer(t).ResourceVersion; after != before {
		t.Error("publishing what is current wrote the pointer")
	}
	s.publish(t, b)
	if got := s.stored(t); !slices.Equal(got, sorted(a.Hash, b.Hash)) {
		t.Errorf("the previous one is not kept: %v", got)
	}
	if _, err := p.WaitCurrent(t.Context(), a.Hash); !errors.As(err, &superseded) || superseded.Have != b.Hash {
		t.Errorf("waiting for the replaced one: %v", err)
	}
	s.publish(t, c)
	if got := s.stored(t); !slices.Equal(got, sorted(b.Hash, c.Hash)) {
		t.Errorf("after the third: %v", got)
	}
	s.publish(t, b) // back
	if got := s.stored(t); s.current(t) != b.Hash || !slices.Equal(got, sorted(b.Hash, c.Hash)) {
		t.Errorf("after going back: %v", got)
	}
	for _, o := range s.all(t) {
		if o.Labels[names.LabelInstance] != "my-instance" {
			t.Errorf("%s has the labels %v", o.Name, o.Labels)
		}
		if chunk := o.Labels[names.LabelAssembly] != ""; chunk != (o.Immutable != nil && *o.Immutable) {
			t.Errorf("%s: immutable is %v", o.Name, o.Immutable)
		}
	}
}

func (s store) pointer(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	pointer, err := s.client.CoreV1().ConfigMaps(s.namespace).Get(t.Context(), names.AssemblyPointer, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pointer
}

// all lists our ConfigMaps; the cluster puts one of its own into each namespace.
func (s store) all(t *testing.T) []corev1.ConfigMap {
	t.Helper()
	list, err := s.client.CoreV1().ConfigMaps(s.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(o corev1.ConfigMap) bool { return !strings.HasPrefix(o.Name, names.AssemblyPointer) })
}

func large(t *testing.T, s store) {
	a := made(t, "large", 3<<20)
	if err := Cluster(s.client, s.namespace, nil).Publish(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	read, err := Read(t.Context(), s.client, s.namespace)
	if err != nil || !reflect.DeepEqual(read, a) {
		t.Errorf("round trip: %v", err)
	}
	if n := len(s.all(t)); n != 6 {
		t.Errorf("%d ConfigMaps for 3 MiB, want 5 chunks and the pointer", n)
	}
}

// damage replaces or removes chunks and the pointer as a person with rights could.
func damage(t *testing.T, s store) {
	a := made(t, "a", 2500)
	s.publish(t, a)
	configMaps := s.client.CoreV1().ConfigMaps(s.namespace)
	replace := func(change func(*corev1.ConfigMap)) {
		t.Helper()
		chunk, err := configMaps.Get(t.Context(), chunkName(a.Hash, 1), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := configMaps.Delete(t.Context(), chunk.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		chunk.ObjectMeta = metav1.ObjectMeta{Name: chunk.Name, Labels: chunk.Labels}
		if change == nil {
			return
		}
		change(chunk)
		if _, err := configMaps.Create(t.Context(), chunk, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name   string
		change func(*corev1.ConfigMap)
	}{
		{"missing", nil},
		{"one bit", func(c *corev1.ConfigMap) { c.BinaryData[keyData][500] ^= 1 }},
		{"shorter", func(c *corev1.ConfigMap) { c.BinaryData[keyData] = c.BinaryData[keyData][1:] }},
		{"longer", func(c *corev1.ConfigMap) { c.BinaryData[keyData] = append(c.BinaryData[keyData], 0) }},
		{"empty", func(c *corev1.ConfigMap) { c.BinaryData = nil }},
	} {
		replace(test.change)
		var broken *BrokenError
		if _, err := s.publisher(s.client).WaitCurrent(t.Context(), a.Hash); !errors.As(err, &broken) || !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", test.name, err)
		}
		s.publish(t, a)
		if got := s.current(t); got != a.Hash {
			t.Errorf("%s: not repaired", test.name)
		}
	}
	for name, text := range map[string]string{"no JSON": "{", "numbers that cannot be": `{"hash":"0123456789ab","chunks":1000000000,"size":1}`} {
		pointer := s.pointer(t)
		pointer.Data[keyCurrent] = text
		if _, err := configMaps.Update(t.Context(), pointer, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(t.Context(), s.client, s.namespace); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := s.publisher(s.client).Current(t.Context()); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		s.publish(t, a)
		if got := s.current(t); got != a.Hash {
			t.Errorf("%s: not repaired", name)
		}
	}
}

func newerFormat(t *testing.T, s store) {
	a := made(t, "a", 100)
	s.publish(t, a)
	pointer := s.pointer(t)
	pointer.Data[keyFormat] = "2"
	if _, err := s.client.CoreV1().ConfigMaps(s.namespace).Update(t.Context(), pointer, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	var format *FormatError
	if err := s.publisher(s.client).Publish(t.Context(), made(t, "b", 100)); !errors.As(err, &format) {
		t.Errorf("publish: %v", err)
	}
	if _, err := Read(t.Context(), s.client, s.namespace); !errors.As(err, &format) {
		t.Errorf("read: %v", err)
	}
}

func rubbish(t *testing.T, s store) {
	left := made(t, "left", 2500)
	p := s.publisher(s.client)
	if err := p.ensureChunk(t.Context(), left.Hash, 0, left.Archive[:1000]); err != nil { // and then the publisher was cut off
		t.Fatal(err)
	}
	a, b := made(t, "a", 100), made(t, "b", 100)
	s.publish(t, a)
	if got := s.stored(t); !slices.Equal(got, sorted(a.Hash, left.Hash)) {
		t.Errorf("young chunks that nobody points to: %v", got)
	}
	p.now = func() time.Time { return time.Now().Add(2 * orphanAge) }
	if err := p.Publish(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if got := s.stored(t); !slices.Equal(got, sorted(a.Hash, b.Hash)) {
		t.Errorf("old chunks that nobody points to: %v", got)
	}
}

// cut is a transport that dies at the n-th request: before it is sent, or after it was and before the answer arrives.
type cut struct {
	next  http.RoundTripper
	left  atomic.Int64
	after bool
}

var errCut = errors.New("the process was killed")

func (c *cut) RoundTrip(r *http.Request) (*http.Response, error) {
	left := c.left.Add(-1)
	if left < 0 || left == 0 && !c.after {
		return nil, errCut
	}
	response, err := c.next.RoundTrip(r)
	if left == 0 {
		if err == nil {
			response.Body.Close()
		}
		return nil, errCut
	}
	return response, err
}

func cutOff(t *testing.T, config *rest.Config, client kubernetes.Interface) {
	a, b, c := made(t, "a", 2500), made(t, "b", 3500), made(t, "c", 2500)
	for _, start := range [][]*Assembly{nil, {a}, {a, b}} {
		for _, after := range []bool{false, true} {
			for n := int64(1); ; n++ {
				s := newStore(t, client)
				s.publish(t, start...)
				old := s.current(t)
				transport := &cut{after: after}
				transport.left.Store(n)
				dying := clientOf(t, config, func(next http.RoundTripper) http.RoundTripper { transport.next = next; return transport })
				err := s.publisher(dying).Publish(t.Context(), c)
				name := fmt.Sprintf("%d before, request %d, sent: %v", len(start), n, after)
				got := s.current(t) // fails when it is not whole
				if got != old && got != c.Hash || err == nil && got != c.Hash {
					t.Errorf("%s: current is %q, was %q (%v)", name, got, old, err)
				}
				s.publish(t, c)
				if got := s.current(t); got != c.Hash {
					t.Errorf("%s: the next publish leaves %q", name, got)
				}
				if transport.left.Load() > 0 { // it came to its end before it was cut off
					break
				}
				if n > 100 {
					t.Fatal("it takes more than 100 requests")
				}
			}
		}
	}
}

// lostAnswers lets the answer to one write after the other come to nothing: the write is done, and the publish comes to its end all the same.
func lostAnswers(t *testing.T, config *rest.Config, client kubernetes.Interface) {
	a, b := made(t, "a", 1500), made(t, "b", 1500)
	for _, start := range [][]*Assembly{nil, {a}} {
		for n := int64(1); ; n++ {
			s := newStore(t, client)
			s.publish(t, start...)
			var left atomic.Int64
			left.Store(n)
			deaf := clientOf(t, config, func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					response, err := next.RoundTrip(r)
					if err == nil && r.Method != http.MethodGet && left.Add(-1) == 0 {
						response.Body.Close() //nolint:errcheck // it is thrown away
						return nil, io.ErrUnexpectedEOF
					}
					return response, err
				})
			})
			if err := s.publisher(deaf).Publish(t.Context(), b); err != nil || s.current(t) != b.Hash {
				t.Errorf("%d before, write %d: %v, current is %q", len(start), n, err, s.current(t))
			}
			if left.Load() > 0 {
				if n < 4 {
					t.Errorf("only %d writes", n-1)
				}
				break
			}
		}
	}
}

// sweepMeetsPublisher lets one publisher go back to an Assembly in the moment in which another removes that Assembly's chunks.
func sweepMeetsPublisher(t *testing.T, config *rest.Config, s store) {
	a, b, c := made(t, "a", 2500), made(t, "b", 2500), made(t, "c", 2500)
	s.publish(t, a, b)
	var once sync.Once
	slow := clientOf(t, config, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodDelete { // c is current, b is previous, and a is about to go
				once.Do(func() { s.publish(t, a) })
			}
			return next.RoundTrip(r)
		})
	})
	if err := s.publisher(slow).Publish(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := s.current(t); got != a.Hash {
		t.Errorf("current is %q, want %q", got, a.Hash)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func atOnce(t *testing.T, s store) {
	assemblies := []*Assembly{made(t, "a", 2500), made(t, "b", 3500), made(t, "c", 1500)}
	s.publish(t, assemblies[0])
	ctx, cancel := context.WithCancel(t.Context())
	var publishers, readers sync.WaitGroup
	readers.Go(func() {
		for ctx.Err() == nil {
			if got, err := Read(ctx, s.client, s.namespace); ctx.Err() == nil && (err != nil || got == nil) {
				t.Errorf("a reader saw %v, %v", got, err)
			}
		}
	})
	for i := range assemblies {
		publishers.Go(func() {
			for round := range 15 {
				if err := s.publisher(s.client).Publish(ctx, assemblies[(i+round)%len(assemblies)]); err != nil {
					t.Errorf("publisher %d: %v", i, err)
				}
			}
		})
	}
	publishers.Wait()
	cancel()
	readers.Wait()
	s.current(t)
}

func forbidden(t *testing.T, config *rest.Config, s store) {
	s.publish(t, made(t, "a", 100))
	denied := clientOf(t, config, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("Impersonate-User", "nobody")
			return next.RoundTrip(r)
		})
	})
	if _, found, err := s.publisher(denied).Current(t.Context()); found || !apierrors.IsForbidden(err) {
		t.Errorf("current: %v, %v", found, err)
	}
	if _, err := Read(t.Context(), denied, s.namespace); !apierrors.IsForbidden(err) {
		t.Errorf("read: %v", err)
	}
	if err := s.publisher(denied).Publish(t.Context(), made(t, "b", 100)); !apierrors.IsForbidden(err) {
		t.Errorf("publish: %v", err)
	}
	warned := 0
	p := s.publisher(clientOf(t, config, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodDelete {
				return nil, errCut
			}
			return next.RoundTrip(r)
		})
	}))
	p.Warn = func(error) { warned++ }
	for _, seed := range []string{"c", "d"} {
		if err := p.Publish(t.Context(), made(t, seed, 100)); err != nil {
			t.Error(err)
		}
	}
	if warned == 0 {
		t.Error("a chunk that could not be removed is not told")
	}
}
