package devcluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/internal/devcluster"
)

func TestRealNode(t *testing.T) {
	t.Parallel()
	cluster := devcluster.ForTest(t, devcluster.Options{Nodes: []devcluster.Node{}, NodeGrace: 8 * time.Second})
	registry := startRegistry(t, devcluster.RegistryOptions{})
	s := time.Now()
	node, err := cluster.StartRealNode(t.Context(), devcluster.RealNodeOptions{Registries: []*devcluster.Registry{registry}})
	if errors.Is(err, devcluster.ErrNoRealNode) {
		devcluster.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(s), node.Name)
	image, err := registry.PushBusybox(t.Context(), "base/busybox:1", "amd64")
	if err != nil {
		t.Skip(err)
	}
	client := clientFor(t, cluster.Config())
	limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	one := int64(1)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "real"}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: &one,
		Resources:                     &corev1.ResourceRequirements{Limits: limits, Requests: limits},
		Containers: []corev1.Container{{Name: "main", Image: image, Command: []string{"sh", "-c", "ls -l /image; echo hi $KUBERNETES_SERVICE_HOST; cat /proc/self/cgroup; cat /etc/resolv.conf; sleep 1000"},
			VolumeMounts: []corev1.VolumeMount{{Name: "image", MountPath: "/image"}}}},
		Volumes: []corev1.Volume{{Name: "image", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: image}}}},
	}}
	s = time.Now()
	runPod(t, client, pod)
	eventually(t, func(ctx context.Context) error {
		pod, err := client.CoreV1().Pods("default").Get(ctx, "real", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("%+v", pod.Status)
		}
		return err
	})
	t.Log(time.Since(s))
	eventually(t, func(ctx context.Context) error {
		log, err := client.CoreV1().Pods("default").GetLogs("real", &corev1.PodLogOptions{}).DoRaw(ctx)
		t.Log(string(log))
		if len(log) == 0 && err == nil {
			err = errors.New("no log")
		}
		return err
	})
}
