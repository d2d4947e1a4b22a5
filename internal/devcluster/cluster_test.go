package devcluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
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

func testNodes(t *testing.T, cluster *devcluster.Cluster, client kubernetes.Interface) {
	get := func(name string) *corev1.Node {
		t.Helper()
		node, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
	first := get(devcluster.DefaultNodeName)
	if got := first.Status.Allocatable.Memory().String(); got != "32Gi" || !isReady(first) || len(first.Spec.Taints) > 0 {
		t.Errorf("default node: memory %s, ready %t, taints %v", got, isReady(first), first.Spec.Taints)
	}
	if arm := get("arm"); arm.Status.NodeInfo.Architecture != "arm64" || arm.Labels[corev1.LabelArchStable] != "arm64" || arm.Labels["disk"] != "ssd" {
		t.Errorf("arm is %s, %v", arm.Status.NodeInfo.Architecture, arm.Labels)
	}
	if small := get("small"); small.Status.Allocatable.Memory().String() != "512Mi" || small.Status.Allocatable.Cpu().String() != "8" {
		t.Errorf("small has %v", small.Status.Allocatable)
	}
	if !get("cordoned").Spec.Unschedulable || get("tainted").Spec.Taints[0].Key != "gpu" || isReady(get("broken")) {
		t.Error("cordoned, tainted or broken is not what it says")
	}

	ctx := t.Context()
	if err := cluster.AddNode(ctx, devcluster.Node{Name: "more"}); err != nil {
		t.Fatal(err)
	}
	for _, notReady := range []bool{true, false} {
		node := devcluster.Node{Name: "more", NotReady: notReady, Arch: "s390x", Unschedulable: notReady}
		if err := cluster.UpdateNode(ctx, node); err != nil {
			t.Fatal(err)
		}
		if more := get("more"); isReady(more) == notReady || more.Status.NodeInfo.Architecture != "s390x" || more.Spec.Unschedulable != notReady {
			t.Errorf("more: ready %t, %s", isReady(more), more.Status.NodeInfo.Architecture)
		}
	}
	if err := cluster.RemoveNode(ctx, "more"); err != nil {
		t.Fatal(err)
	}
	if err := cluster.UpdateNode(ctx, devcluster.Node{Name: "more"}); !apierrors.IsNotFound(err) {
		t.Errorf("updating a node that is gone: %v", err)
	}
}

func isReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
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

func testWorkloads(t *testing.T, client kubernetes.Interface) {
	ctx, selector := t.Context(), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	two := int32(2)
	meta := metav1.ObjectMeta{Name: "x", Namespace: "default"}
	job := podSpec("example.com/x:1")
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	withVolume := podSpec("example.com/x:1")
	withVolume.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	apps := client.AppsV1()
	_, err := apps.Deployments("default").Create(ctx, &appsv1.Deployment{ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{Replicas: &two, Selector: selector, Template: podSpec("example.com/x:1")}}, metav1.CreateOptions{})
	_, err2 := apps.DaemonSets("default").Create(ctx, &appsv1.DaemonSet{ObjectMeta: meta,
		Spec: appsv1.DaemonSetSpec{Selector: selector, Template: podSpec("example.com/x:1")}}, metav1.CreateOptions{})
	_, err3 := apps.StatefulSets("default").Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{Replicas: &two, Selector: selector, Template: withVolume, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim}}},
		metav1.CreateOptions{})
	_, err4 := client.BatchV1().Jobs("default").Create(ctx, &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: job}}, metav1.CreateOptions{})
	if err := errors.Join(err, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		d, err := apps.Deployments("default").Get(ctx, "x", metav1.GetOptions{})
		ds, err2 := apps.DaemonSets("default").Get(ctx, "x", metav1.GetOptions{})
		ss, err3 := apps.StatefulSets("default").Get(ctx, "x", metav1.GetOptions{})
		j, err4 := client.BatchV1().Jobs("default").Get(ctx, "x", metav1.GetOptions{})
		if err := errors.Join(err, err2, err3, err4); err != nil {
			return err
		}
		// A DaemonSet goes to cordoned and to NotReady nodes too; nothing runs on the latter.
		if d.Status.ReadyReplicas != 2 || ds.Status.NumberReady != 4 || ss.Status.ReadyReplicas != 2 || j.Status.Succeeded != 1 {
			return fmt.Errorf("ready: Deployment %d, DaemonSet %d of %d, StatefulSet %d; Job: %d", d.Status.ReadyReplicas, ds.Status.NumberReady,
				ds.Status.DesiredNumberScheduled, ss.Status.ReadyReplicas, j.Status.Succeeded)
		}
		return nil
	})
	claims := client.CoreV1().PersistentVolumeClaims("default")
	orphan := metav1.DeletePropagationForeground
	if err := apps.StatefulSets("default").Delete(ctx, "x", metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatal(err)
	}
	if err := claims.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		volumes, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		if err == nil && len(volumes.Items) > 0 {
			err = fmt.Errorf("volume %s is %s", volumes.Items[0].Name, volumes.Items[0].Status.Phase)
		}
		return err
	})
}

func runPod(t *testing.T, client kubernetes.Interface, pod *corev1.Pod) {
	t.Helper()
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func testPodLog(t *testing.T, cluster *devcluster.Cluster, client kubernetes.Interface) {
	template := podSpec("example.com/x:1")
	runPod(t, client, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "talks"}, Spec: template.Spec})
	for _, want := range []string{"", "first line\npanic: no token\n"} {
		if err := cluster.SetPodLog(want); err != nil {
			t.Fatal(err)
		}
		for _, previous := range []bool{false, true} {
			eventually(t, func(ctx context.Context) error {
				options := &corev1.PodLogOptions{Previous: previous}
				log, err := client.CoreV1().Pods("default").GetLogs("talks", options).DoRaw(ctx)
				if err == nil && string(log) != want {
					err = fmt.Errorf("the log is %q", log)
				}
				return err
			})
		}
	}
}

func testTrouble(t *testing.T, client kubernetes.Interface) {
	template := podSpec(devcluster.TroubleImage(devcluster.OOMKilled))
	runPod(t, client, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "by-image"}, Spec: template.Spec})
	want := map[string]string{"by-image": "CrashLoopBackOff"}
	for _, trouble := range []devcluster.Trouble{devcluster.ImagePullBackOff, devcluster.CrashLoopBackOff, devcluster.ContainerCreating} {
		name := strings.ToLower(string(trouble))
		runPod(t, client, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{devcluster.TroubleAnnotation: string(trouble)}},
			Spec:       podSpec("example.com/y:2").Spec,
		})
		want[name] = string(trouble)
	}
	for name, reason := range want {
		eventually(t, func(ctx context.Context) error {
			pod, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, s := range pod.Status.ContainerStatuses {
				if s.State.Waiting != nil && s.State.Waiting.Reason == reason {
					return nil
				}
			}
			return fmt.Errorf("%s has %+v", name, pod.Status)
		})
	}
	pod, err := client.CoreV1().Pods("default").Get(t.Context(), "by-image", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	last := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated
	if last == nil || last.Reason != "OOMKilled" || last.ExitCode != 137 {
		t.Errorf("the last exit is %+v", last)
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
