package devcluster_test

import (
	"net/http"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"jr2.dev/jr2/internal/devcluster"
)

func startProxy(t *testing.T, config *rest.Config, wrappers ...devcluster.Wrapper) *devcluster.Proxy {
	t.Helper()
	proxy, err := devcluster.StartProxy(t.Context(), config, wrappers...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	return proxy
}

func testProxy(t *testing.T, cluster *devcluster.Cluster) {
	t.Run("version", func(t *testing.T) {
		proxy := startProxy(t, cluster.Config(), devcluster.ServerVersion("v1.31.4-gke.1183000"))
		path := filepath.Join(t.TempDir(), "config")
		if err := proxy.WriteKubeconfig(path, "old one"); err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		version, err := clientFor(t, config).Discovery().ServerVersion()
		if err != nil {
			t.Fatal(err)
		}
		if version.GitVersion != "v1.31.4-gke.1183000" || version.Major != "1" || version.Minor != "31" || version.Platform == "" {
			t.Errorf("version is %+v", version)
		}
	})
	t.Run("pod resources", func(t *testing.T) {
		if pod := dryRunPod(t, cluster.Config()); pod.Spec.Resources == nil {
			t.Error("the API server itself drops them")
		}
		if pod := dryRunPod(t, startProxy(t, cluster.Config(), devcluster.DropPodResources()).Config()); pod.Spec.Resources != nil {
			t.Errorf("the proxy kept %v", pod.Spec.Resources)
		}
	})
	t.Run("credentials", func(t *testing.T) {
		config := startProxy(t, cluster.Config()).Config()
		user, err := cluster.ConfigFor("dev")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := clientFor(t, config).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("the proxy's own: %v", err)
		}
		config.BearerToken = user.BearerToken
		if _, err := clientFor(t, config).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("a user's, passed on: %v", err)
		}
	})
	t.Run("watch", func(t *testing.T) {
		client := clientFor(t, startProxy(t, cluster.Config()).Config())
		watch, err := client.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=watched"})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Stop()
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "watched"}}
		if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		select {
		case event := <-watch.ResultChan():
			if event.Object == nil {
				t.Error("the watch ended")
			}
		case <-t.Context().Done():
			t.Error("no event")
		}
	})
	t.Run("failure", func(t *testing.T) {
		failing := func(next http.RoundTripper) http.RoundTripper {
			return devcluster.RoundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPost {
					return nil, http.ErrServerClosed
				}
				return next.RoundTrip(r)
			})
		}
		client := clientFor(t, startProxy(t, cluster.Config(), failing).Config())
		_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
		if err == nil {
			t.Error("the request went through")
		}
	})
}
