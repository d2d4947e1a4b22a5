package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/internal/devcluster"
)

// A site is a cluster and the files that go with it. It lives for one round, so that no round finds what others left.
type site struct {
	cluster *devcluster.Cluster
	client  kubernetes.Interface
	dir     string
	direct  way
	counted way // the same through a proxy that counts requests
	proxy   *devcluster.Proxy
	count   atomic.Int64
}

// A way is how an engine gets to the API server.
type way struct {
	config     *rest.Config
	kubeconfig string
}

func openSite(ctx context.Context, logf func(string, ...any)) (*site, error) {
	s := &site{}
	if err := s.open(ctx, logf); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *site) open(ctx context.Context, logf func(string, ...any)) (err error) {
	if s.dir, err = os.MkdirTemp("", "jr2-benchmark-"); err != nil {
		return err
	}
	s.cluster, err = devcluster.Start(ctx, devcluster.Options{
		Nodes: []devcluster.Node{}, // no pod is to run
		Log:   func(line string) { logf("%s", line) },
	})
	if err != nil {
		return err
	}
	s.direct = way{s.cluster.Config(), filepath.Join(s.dir, "direct.kubeconfig")}
	if err := s.cluster.WriteKubeconfig(s.direct.kubeconfig, "direct"); err != nil {
		return err
	}
	s.proxy, err = devcluster.StartProxy(ctx, s.cluster.Config(), func(next http.RoundTripper) http.RoundTripper {
		return devcluster.RoundTripper(func(r *http.Request) (*http.Response, error) {
			s.count.Add(1)
			return next.RoundTrip(r)
		})
	})
	if err != nil {
		return err
	}
	s.counted = way{s.proxy.Config(), filepath.Join(s.dir, "counted.kubeconfig")}
	s.counted.config.BearerToken = s.direct.config.BearerToken // kubectl would ask for a name
	if err := devcluster.WriteKubeconfig(s.counted.kubeconfig, "counted", s.counted.config); err != nil {
		return err
	}
	quiet := s.cluster.Config()
	quiet.WarningHandler = rest.NoWarnings{} // Endpoints are deprecated
	s.client, err = kubernetes.NewForConfig(quiet)
	return err
}

func (s *site) close() error {
	var errs []error
	if s.proxy != nil {
		errs = append(errs, s.proxy.Close())
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// job makes the inputs of one application.
func (s *site) job(w way, namespace string, n int, changed bool) (job, error) {
	j := job{
		config: w.config, kubeconfig: w.kubeconfig, home: filepath.Join(s.dir, "home"), namespace: namespace,
		dir:     filepath.Join(s.dir, fmt.Sprintf("%s-%t", namespace, changed)),
		objects: mixture(n, namespace, changed),
	}
	return j, errors.Join(os.MkdirAll(j.home, 0o755), writeInputs(j.dir, j.objects))
}

// newNamespace returns when the controllers have put into the namespace what they put into each.
func (s *site) newNamespace(ctx context.Context, name string) error {
	_, err := s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) (bool, error) {
		_, err := s.client.CoreV1().ConfigMaps(name).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		if err == nil {
			_, err = s.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		}
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// settle waits until the controllers have done what the Deployments and Services of the namespace make them do, so that they do not
// work while the next engine is timed.
func (s *site) settle(ctx context.Context, namespace string) error {
	return poll(ctx, func(ctx context.Context) (bool, error) {
		deployments, err := s.client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, d := range deployments.Items {
			if d.Status.ObservedGeneration < d.Generation || len(d.Status.Conditions) == 0 {
				return false, nil
			}
		}
		services, err := s.client.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		slices, err := s.client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		endpoints, err := s.client.CoreV1().Endpoints(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		return len(slices.Items) >= len(services.Items) && len(endpoints.Items) >= len(services.Items), nil
	})
}

func poll(ctx context.Context, done func(context.Context) (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, 5*time.Minute, true, done)
}
