package jr2_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/devcluster"
)

// contextName stands in messages for the seed's <context>. It is no kind context.
const contextName = "shared"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

// A told converge: its lines as the command line tool prints them, the last one telling the error.
type told struct {
	lines  string
	result *jr2.Result
	err    error
}

// up converges a folder into a namespace of its own.
func (w *world) up(t *testing.T, dir string, change ...func(*jr2.Options)) told {
	t.Helper()
	var lines bytes.Buffer
	options := jr2.Options{
		Dir: dir, Config: w.Config(), Context: contextName, Yes: true,
		Env: map[string]string{}, RegistryTransport: loopbackOnly{http.DefaultTransport},
	}
	narrate := jr2.Narrate(&lines)
	options.Events = func(e jr2.Event) {
		if text, ok := e.(typed); ok {
			fmt.Fprintln(&lines, string(text))
			return
		}
		narrate(e)
	}
	for _, c := range change {
		c(&options)
	}
	result, err := jr2.Converge(t.Context(), options)
	if err != nil {
		fmt.Fprintln(&lines, jr2.NarrateError(err))
	}
	return told{lines: lines.String(), result: result, err: err}
}

// into names the namespace, so that tests do not meet in one.
func into(namespace string) func(*jr2.Options) {
	return func(o *jr2.Options) { o.Namespace = namespace }
}

// folder writes an Instance folder called my-instance.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "my-instance")
	for name, content := range files {
		path := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return root
}

func node(name string, change ...func(*devcluster.Node)) devcluster.Node {
	n := devcluster.Node{Name: name, Allocatable: corev1.ResourceList{ // room for what all tests of the package leave there
		corev1.ResourceCPU: quantity("64"), corev1.ResourceMemory: quantity("256Gi"), corev1.ResourcePods: quantity("500"),
		corev1.ResourceEphemeralStorage: quantity("4Ti"),
	}}
	for _, c := range change {
		c(&n)
	}
	return n
}

func arch(name string) func(*devcluster.Node) { return func(n *devcluster.Node) { n.Arch = name } }

func labeled(key, value string) func(*devcluster.Node) {
	return func(n *devcluster.Node) { n.Labels = map[string]string{key: value} }
}

func tainted(key, value string, effect corev1.TaintEffect) func(*devcluster.Node) {
	return func(n *devcluster.Node) {
		n.Taints = append(n.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	}
}

func cordoned(n *devcluster.Node) { n.Unschedulable = true }

// Sources of Instances.
const (
	plainConfig = `import { defineConfig } from "@jr2/orchestrator";
export default defineConfig({});
`
	ping = `import { setup } from "xstate";
export const machine = setup({}).createMachine({ id: "ping", initial: "ended", states: { ended: { type: "final" } } });
`
)

// hold is a Workflow with one Workspace of a Size.
func hold(memory, cpu string) string {
	return fmt.Sprintf(`import { jr2Setup, workspace } from "@jr2/orchestrator";
const body = jr2Setup({ events: [] }).createMachine({ id: "body", initial: "holding", states: { holding: { invoke: { src: "gate" } } } });
export const machine = workspace(body, {
  resources: { limits: { memory: %q, cpu: %q } },
  repos: { app: "https://git.example.test/team/app.git" },
  spec: () => ({ branch: "main" }),
});
`, memory, cpu)
}

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

// served puts a proxy in front of the API server that changes what passes.
func (w *world) served(t *testing.T, wrappers ...devcluster.Wrapper) func(*jr2.Options) {
	t.Helper()
	proxy, err := devcluster.StartProxy(t.Context(), w.Config(), wrappers...)
	must(t, err)
	t.Cleanup(func() { proxy.Close() }) //nolint:errcheck // the test is over
	return func(o *jr2.Options) { o.Config = proxy.Config() }
}

// refusing answers one kind of request with an error that names it.
func (w *world) refusing(t *testing.T, method, path string) *rest.Config {
	t.Helper()
	options := jr2.Options{}
	w.served(t, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == method && r.URL.Path == path {
				return nil, fmt.Errorf("%s %s was not to be asked", method, path)
			}
			return next.RoundTrip(r)
		})
	})(&options)
	return options.Config
}

// loopbackOnly keeps the tests from public registries, as if there were no network.
type loopbackOnly struct{ http.RoundTripper }

func (l loopbackOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	if ip := net.ParseIP(r.URL.Hostname()); ip == nil || !ip.IsLoopback() {
		return nil, &net.DNSError{Err: "no such host", Name: r.URL.Hostname(), IsNotFound: true}
	}
	return l.RoundTripper.RoundTrip(r)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// classes makes PriorityClasses that the owner of the cluster would have made.
func (w *world) classes(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 500}
		_, err := w.client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// terminal answers a first contact with yes, and leaves question and answer among the lines, as a terminal does.
func (w *world) terminal(o *jr2.Options) func(context.Context, jr2.FirstContact) (bool, error) {
	tell := o.Events
	return func(_ context.Context, first jr2.FirstContact) (bool, error) {
		tell(typed(first.Question() + "y"))
		return jr2.Accepts("y"), nil
	}
}

// typed is what stands on the terminal beside the events.
type typed string

func (typed) Type() string { return "typed" }
