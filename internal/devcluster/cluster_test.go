package devcluster_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"jr2.dev/jr2/internal/devcluster"
)

// eventually waits until condition returns nil; the test fails with its last error otherwise.
func eventually(t testing.TB, condition func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := condition(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("it did not happen: %v", err)
		case <-ticker.C:
		}
	}
}

func clientFor(t testing.TB, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func podSpec(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

// One cluster for all that can share one.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := devcluster.ForTest(t, devcluster.Options{
		Context: "the boss' cluster @ 1/2",
		Nodes: []devcluster.Node{
			{},
			{Name: "arm", Arch: "arm64", Labels: map[string]string{"disk": "ssd"}},
			{Name: "cordoned", Unschedulable: true},
			{Name: "tainted", Taints: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}},
			{Name: "small", Allocatable: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}},
			{Name: "broken", NotReady: true},
		},
		Users: []devcluster.User{{
			Name:         "dev",
			Groups:       []string{"devs"},
			ClusterRules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}},
			Rules: map[string][]rbacv1.PolicyRule{
				"team-a": {{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}},
			},
		}},
	})
	client := clientFor(t, cluster.Config())
	t.Run("version", func(t *testing.T) {
		version, err := client.Discovery().ServerVersion()
		if err != nil {
			t.Fatal(err)
		}
		if version.GitVersion != "v1.36.3" || version.Major != "1" || version.Minor != "36" {
			t.Errorf("version is %+v", version)
		}
	})
	t.Run("kubeconfig", func(t *testing.T) { testKubeconfig(t, cluster) })
	t.Run("nodes", func(t *testing.T) { testNodes(t, cluster, client) })
	t.Run("users", func(t *testing.T) { testUsers(t, cluster) })
	t.Run("workloads", func(t *testing.T) { testWorkloads(t, client) })
	t.Run("log", func(t *testing.T) { testPodLog(t, cluster, client) })
	t.Run("trouble", func(t *testing.T) { testTrouble(t, client) })
	t.Run("proxy", func(t *testing.T) { testProxy(t, cluster) })
}

func testKubeconfig(t *testing.T, cluster *devcluster.Cluster) {
	all, err := clientcmd.LoadFromFile(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if all.CurrentContext != "the boss' cluster @ 1/2" || len(all.Contexts) != 1 {
		t.Errorf("contexts are %v, the current one is %q", all.Contexts, all.CurrentContext)
	}
	path := filepath.Join(t.TempDir(), "config")
	for _, name := range []string{"one", "kind-two"} {
		if err := cluster.WriteKubeconfig(path, name); err != nil {
			t.Fatal(err)
		}
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}, &clientcmd.ConfigOverrides{CurrentContext: "one"}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clientFor(t, config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

func testUsers(t *testing.T, cluster *devcluster.Cluster) {
	config, err := cluster.ConfigFor("dev")
	if err != nil {
		t.Fatal(err)
	}
	path, err := cluster.KubeconfigFor("dev")
	if err != nil {
		t.Fatal(err)
	}
	fromFile, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, config := range []*rest.Config{config, fromFile} {
		client := clientFor(t, config)
		if _, err := client.CoreV1().ConfigMaps("team-a").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("the user may list elsewhere: %v", err)
		}
	}
	if _, err := cluster.ConfigFor("nobody"); !errors.Is(err, devcluster.ErrNoUser) {
		t.Errorf("an unknown user: %v", err)
	}
}

// Two clusters run side by side; the second is started again from its directory.
func TestDirKeepsTheCluster(t *testing.T) {
	t.Parallel()
	other := devcluster.ForTest(t, devcluster.Options{Nodes: []devcluster.Node{}})
	options := devcluster.Options{Dir: filepath.Join(t.TempDir(), "kept"), Users: []devcluster.User{{Name: "dev"}}}
	cluster, err := devcluster.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	admin := cluster.Config()
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := clientFor(t, admin).CoreV1().ConfigMaps("default").Create(t.Context(), configMap, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = devcluster.Start(t.Context(), options)
	var inUse *devcluster.InUseError
	if !errors.As(err, &inUse) || inUse.PID != os.Getpid() {
		t.Errorf("a second start in the same directory: %v", err)
	}
	if err := cluster.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
	again := devcluster.ForTest(t, options)
	if again.Config().Host != admin.Host || again.Config().BearerToken != admin.BearerToken {
		t.Errorf("the address or the token has changed: %s, was %s", again.Config().Host, admin.Host)
	}
	if _, err := clientFor(t, admin).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := clientFor(t, other.Config()).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the other cluster has it too: %v", err)
	}
}

func TestPodLevelResourcesOff(t *testing.T) {
	t.Parallel()
	cluster := devcluster.ForTest(t, devcluster.Options{Nodes: []devcluster.Node{}, FeatureGates: map[string]bool{"PodLevelResources": false}})
	if pod := dryRunPod(t, cluster.Config()); pod.Spec.Resources != nil {
		t.Errorf("the API server kept %v", pod.Spec.Resources)
	}
}

// dryRunPod is what the API server makes of a pod with resources of its own.
func dryRunPod(t *testing.T, config *rest.Config) *corev1.Pod {
	t.Helper()
	spec := podSpec("example.com/x:1").Spec
	spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	pod, err := clientFor(t, config).CoreV1().Pods("default").Create(t.Context(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "dry-"}, Spec: spec}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestComponentThatDoesNotStart(t *testing.T) {
	t.Parallel()
	_, err := devcluster.Start(t.Context(), devcluster.Options{FeatureGates: map[string]bool{"NoSuchGate": true}})
	var component *devcluster.ComponentError
	if !errors.As(err, &component) || component.Name != "kube-apiserver" || !strings.Contains(err.Error(), "NoSuchGate") {
		t.Errorf("the error is %v", err)
	}
}
