package devcluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/internal/devcluster"
)

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
