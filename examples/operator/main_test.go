package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/v1alpha1"
)

// TestOperator runs the command as its Deployment does, but for the ports, against a cluster that a kubeconfig names.
func TestOperator(t *testing.T) {
	t.Parallel()
	cluster := devcluster.ForTest(t, devcluster.Options{})
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := cluster.WriteKubeconfig(kubeconfig, "dev"); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	args := []string{"--leader-elect", "--leader-election-namespace=default", "--health-probe-bind-address=" + address, "--namespace=default", "--kubeconfig=" + kubeconfig, "--context=dev"}
	var out output
	if err := Run(t.Context(), args, &out); !errors.Is(err, controller.ErrNoKinds) {
		t.Fatalf("got %v", err)
	}
	c := install(t, cluster)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, args, &out) }()
	box := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: v1alpha1.SandboxSpec{Image: "example.com/image:1"}}
	if err := c.Create(t.Context(), box); err != nil {
		t.Fatal(err)
	}
	until(t, "the Sandbox is Ready", func(ctx context.Context) bool {
		return c.Get(ctx, client.ObjectKeyFromObject(box), box) == nil && box.Status.Phase == v1alpha1.SandboxReady
	})
	for _, path := range []string{"/healthz", "/readyz"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, %v", path, response.Status, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), `"msg":"Starting workers"`) {
		t.Errorf("the log is %s", out.String())
	}
}

// output is written by the command and by what still ends after it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func install(t *testing.T, cluster *devcluster.Cluster) client.Client {
	t.Helper()
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(all); err != nil {
			t.Fatal(err)
		}
	}
	crds, err := v1alpha1.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	var c client.Client
	renew := func() {
		if c, err = client.New(cluster.Config(), client.Options{Scheme: all, Log: logr.New(crlog.NullLogSink{})}); err != nil {
			t.Fatal(err)
		}
	}
	renew()
	for _, crd := range crds {
		if err := c.Create(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the kinds are served", func(ctx context.Context) bool {
		renew() // a client remembers what was not served
		return c.List(ctx, &v1alpha1.SandboxList{}) == nil && c.List(ctx, &v1alpha1.RepoList{}) == nil
	})
	return c
}

func until(t *testing.T, what string, done func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) { return done(ctx), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"repo-cache":             "repo-cache: this operator has no Repo cache",
		"up":                     "up: not known: only flags are",
		"--unheard":              "flag provided but not defined: -unheard",
		"--kubeconfig=/no/where": "/no/where: no such file",
	} {
		if err := Run(t.Context(), []string{args}, new(output)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}
