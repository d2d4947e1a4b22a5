package apply_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/devcluster"
)

// A cluster of its own, because a default class is everybody's, and without controllers, which would give a claim its
// class later, and a token.
func TestF42WithoutControllers(t *testing.T) {
	t.Parallel()
	cluster, err := devcluster.Start(t.Context(), devcluster.Options{Bare: true, Nodes: []devcluster.Node{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Close() })
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	const ns = "classes"
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), home, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Run("defaults", func(t *testing.T) { defaultsOfTheSet(t, cluster, client, ns) })
	t.Run("no token controller", func(t *testing.T) { noTokenController(t, cluster, ns) })
}

// What a class of the set gives by default, an object of the set has. Sibling of F42.
func defaultsOfTheSet(t *testing.T, cluster *devcluster.Cluster, client kubernetes.Interface, ns string) {
	s := set(t, ns, fixture(t, "f42/defaults.yaml"))
	var mu sync.Mutex
	var asked []string // what is dry-run, then what is written
	cfg := cluster.Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			switch what := strings.Split(r.URL.Path+"////////", "/"+ns+"/"); {
			case len(what) < 2:
			case r.Method == http.MethodPost && r.URL.Query().Get("dryRun") != "":
				asked = append(asked, "ask "+strings.Trim(what[1], "/"))
			case r.Method == http.MethodPatch:
				asked = append(asked, "write "+strings.Split(what[1], "/")[0])
			}
			return next.RoundTrip(r)
		})
	})
	if _, err := apply.Apply(t.Context(), cfg, s, apply.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"persistentvolumeclaims", "ingresses", "pods"} { // the server was seen to default before the write
		a, w := slices.Index(asked, "ask "+kind), slices.Index(asked, "write "+kind)
		if a < 0 || w < a {
			t.Errorf("%s: %v", kind, asked)
		}
	}
	claim, err := client.CoreV1().PersistentVolumeClaims(ns).Get(t.Context(), "data", metav1.GetOptions{})
	if err != nil || claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName != "zz-disk" {
		t.Errorf("the claim has the class %v: %v", claim.Spec.StorageClassName, err)
	}
	ingress, err := client.NetworkingV1().Ingresses(ns).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || ingress.Spec.IngressClassName == nil || *ingress.Spec.IngressClassName != "zz-edge" {
		t.Errorf("the ingress has the class %v: %v", ingress.Spec.IngressClassName, err)
	}
	pod, err := client.CoreV1().Pods(ns).Get(t.Context(), "once", metav1.GetOptions{})
	if err != nil || pod.Spec.PriorityClassName != "zz-usual" || pod.Spec.Priority == nil || *pod.Spec.Priority != 7 {
		t.Errorf("the pod has the class %q: %v", pod.Spec.PriorityClassName, err)
	}
	if out, err := apply.Apply(t.Context(), cluster.Config(), s, apply.Options{}); err != nil || out.Changed() != 0 {
		t.Errorf("an equal set: %v, %+v", err, out.Objects)
	}
}

// The wait for a token says what would end it, has the bound of other waits, and is not passed over by the next run.
// Sibling of F42.
func noTokenController(t *testing.T, cluster *devcluster.Cluster, ns string) {
	s := set(t, ns, join(account("robot"), tokenOf("robot")))
	s.Name = "robot"
	for range 2 {
		var mu sync.Mutex
		var waits []apply.Waiting
		opts := apply.Options{Ready: apply.WaitOptions{Timeout: time.Second}, Events: func(e apply.Event) {
			mu.Lock()
			defer mu.Unlock()
			if w, ok := e.(apply.Waiting); ok {
				waits = append(waits, w)
			}
		}}
		_, err := apply.Apply(t.Context(), cluster.Config(), s, opts)
		var late *apply.UnreadyError
		says := "timed out after 1s: the token of ServiceAccount " + ns + "/robot is not made yet: the token controller"
		if !errors.As(err, &late) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v", err)
		}
		if len(waits) != 1 || waits[0].Ref != secretRef(ns, "robot-token") || waits[0].Since.IsZero() {
			t.Errorf("told %+v", waits)
		}
	}
}
