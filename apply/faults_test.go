package apply_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	"jr2.dev/jr2/apply"
)

// forty has 40 objects of four kinds; of a later release some are changed, some are new, and some are gone.
func forty(release int) string {
	var docs []string
	add := func(n int, changes bool, doc string) {
		for i := range n {
			if i%5 == 4 { // these come and go
				i += 100 * release
			}
			value := 1
			if changes && i%2 == 0 {
				value = release
			}
			docs = append(docs, strings.NewReplacer("NAME", fmt.Sprintf("o-%d", i), "VALUE", fmt.Sprint(value)).Replace(doc))
		}
	}
	add(16, true, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, namespace: NS}\ndata: {a: \"VALUE\"}")
	add(8, true, "apiVersion: v1\nkind: Secret\nmetadata: {name: NAME, namespace: NS}\nstringData: {a: hush-VALUE}")
	add(8, true, "apiVersion: v1\nkind: Service\nmetadata: {name: NAME, namespace: NS}\nspec: {selector: {app: x}, ports: [{name: http, port: 8VALUE}]}")
	add(8, true, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: NAME, namespace: NS}\nspec: {replicas: 0, minReadySeconds: VALUE, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {"+plainContainer+"}}}")
	return strings.Join(docs, "\n---\n")
}

// A faulty way to the server lets one request in ten fail, in one of several ways, before or after the server did what it was asked.
type faulty struct {
	mu     sync.Mutex
	random *rand.Rand
	faults int
}

func (f *faulty) draw() (which int, answered bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.random.IntN(10) > 0 {
		return -1, false
	}
	f.faults++
	return f.random.IntN(6), f.random.IntN(2) == 0
}

func (f *faulty) roundTrip(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	which, answered := f.draw()
	if which < 0 {
		return next.RoundTrip(r)
	}
	if answered && which != 4 && which != 5 { // a conflict and too many requests mean that nothing was done
		resp, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return nil, err
		}
		_ = resp.Body.Close()
	}
	switch which {
	case 0:
		return nil, syscall.ECONNRESET
	case 1:
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	case 2:
		return nil, io.ErrUnexpectedEOF
	case 3:
		return answer(r, 500, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"etcdserver: request timed out"}`), nil
	case 4:
		return answer(r, 409, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again"}`), nil
	}
	resp := answer(r, 429, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"message":"later","details":{"retryAfterSeconds":1}}`)
	resp.Header.Set("Retry-After", "1")
	return resp, nil
}

// With one request in ten failing, a run converges or ends with an error that names each object that it could not do; it never says
// "unchanged" of an object that was not as asked, nor the other way round, and what it says it did is done.
func TestFaultsAtTenPerCent(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			f := &faulty{random: rand.New(rand.NewPCG(seed, 1))}
			cfg := through(t, f.roundTrip)
			for release := 1; release <= 3; release++ {
				s := set(t, ns, forty(release))
				for try := 1; ; try++ {
					before := mustPlan(t, s, apply.Options{Prune: true})
					out, err := apply.Apply(t.Context(), cfg, s, apply.Options{Prune: true})
					wantNamed(t, err)
					wantHonest(t, before, out)
					after := mustPlan(t, s, apply.Options{Prune: true})
					for _, o := range out.Objects {
						if step, ok := after.Step(o.Ref); ok && step.Intent != apply.WillLeave && step.Intent != apply.WillKeep {
							t.Errorf("%s was %s, and is still to %s", o.Ref, o.Action, step.Intent)
						}
					}
					if err == nil {
						if after.Changes() != 0 {
							t.Errorf("not converged:\n%s", after)
						}
						break
					}
					if try == 5 {
						t.Fatalf("release %d: %v", release, err)
					}
				}
			}
			if f.faults < 5 {
				t.Errorf("only %d faults", f.faults)
			}
		})
	}
}

// wantNamed wants every part of an error to be an *ObjectError with a name.
func wantNamed(t *testing.T, err error) {
	t.Helper()
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			wantNamed(t, e)
		}
		return
	}
	var object *apply.ObjectError
	if err != nil && (!errors.As(err, &object) || object.Ref.Name == "" || !strings.Contains(err.Error(), object.Ref.String())) {
		t.Errorf("an error that names no object: %v", err)
	}
}

// wantHonest compares what a run said with what was to be done before it.
func wantHonest(t *testing.T, before *apply.Plan, out *apply.Outcome) {
	t.Helper()
	for _, o := range out.Objects {
		step, ok := before.Step(o.Ref)
		if !ok || (o.Action == apply.Unchanged) != (step.Intent == apply.WillLeave) {
			t.Errorf("%s was to be %s, and was %s", o.Ref, step.Intent, o.Action)
		}
	}
}

// The API server restarts in the middle of a run: connections break, and new ones are refused for a while.
func TestARestartOfTheServerIsRiddenOut(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	s := set(t, ns, forty(1))
	cfg := config(t)
	front := openDoor(t, strings.TrimPrefix(cfg.Host, "https://"))
	var once sync.Once
	cfg.ServerName = serverName(t, cfg)
	cfg.Host = "https://" + front.addr
	retried := 0
	out, err := apply.Apply(t.Context(), cfg, s, apply.Options{Prune: true, Events: func(e apply.Event) {
		switch e.(type) {
		case apply.Applied:
			once.Do(front.shut)
		case apply.Retrying:
			if retried++; retried == 40 { // refused connections, so that time has passed
				front.open(t)
			}
		}
	}})
	if err != nil || out.Count(apply.Created) != len(s.Objects) || retried < 40 {
		t.Errorf("%d retries, %v, %+v", retried, err, out.Objects)
	}
	if p := mustPlan(t, s, apply.Options{Prune: true}); p.Changes() != 0 {
		t.Errorf("%s", p)
	}
}

func serverName(t *testing.T, cfg *rest.Config) string {
	t.Helper()
	host, _, err := net.SplitHostPort(strings.TrimPrefix(cfg.Host, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// A door passes connections on to an address, until it is shut.
type door struct {
	addr, to string

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
}

func openDoor(t *testing.T, to string) *door {
	g := &door{addr: "127.0.0.1:0", to: to}
	g.open(t)
	t.Cleanup(g.shut)
	return g
}

func (g *door) open(t *testing.T) {
	l, err := net.Listen("tcp", g.addr)
	if err != nil {
		t.Error(err)
		return
	}
	g.mu.Lock()
	g.addr, g.listener = l.Addr().String(), l
	g.mu.Unlock()
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", g.to)
			if err != nil {
				_ = in.Close()
				continue
			}
			g.mu.Lock()
			g.conns = append(g.conns, in, out)
			g.mu.Unlock()
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
}

// shut breaks the connections that there are and refuses new ones.
func (g *door) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.listener.Close()
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.conns = nil
}
