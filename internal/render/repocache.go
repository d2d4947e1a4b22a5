package render

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
)

const repoCacheHome = "/home/jr2"

// RepoCachePath is the directory of a node in which the Repo cache keeps the clones of a namespace.
func RepoCachePath(namespace string) string { return "/var/lib/jr2/" + namespace + "/repos" }

// RepoCache renders the Repo cache: on exactly the Sandbox nodes, so with the selector and the tolerations of Sandboxes and no
// wider. Nil when no registered Machine makes a Sandbox.
//
// Its container runs as root, without capabilities and on a read-only root, and writes a hostPath that Sandboxes read.
func RepoCache(in Input) []runtime.Object {
	if !NeedsRepoCache(in) {
		return nil
	}
	objects := in.account(names.RepoCacheName,
		rule(v1alpha1.Group, list("repos"), readVerbs()),
		rule(v1alpha1.Group, list("repos/status"), statusVerbs()),
		rule("", list("pods"), readVerbs()),
		rule("", list("secrets"), list("get")),
	)
	return append(objects, &appsv1.DaemonSet{
		TypeMeta:   kind("apps/v1", "DaemonSet"),
		ObjectMeta: in.meta(names.RepoCacheName, names.LabelApp, names.RepoCacheName, names.LabelVersion, in.Kit.Version),
		Spec: appsv1.DaemonSetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{names.LabelApp: names.RepoCacheName}},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: in.labels(names.LabelApp, names.RepoCacheName)},
				Spec: corev1.PodSpec{
					ServiceAccountName:           names.RepoCacheName,
					AutomountServiceAccountToken: ptr(true),
					PriorityClassName:            in.controlClass(),
					NodeSelector:                 maps.Clone(in.Instance.Sandbox.NodeSelector),
					Tolerations:                  slices.Clone(in.Instance.Sandbox.Tolerations),
					Containers:                   []corev1.Container{repoCacheContainer(in)},
					Volumes: []corev1.Volume{
						{Name: "cache", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
							Path: RepoCachePath(in.namespace()), Type: ptr(corev1.HostPathDirectoryOrCreate)}}},
						{Name: "home", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
						{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
					},
				},
			},
		},
	})
}

func repoCacheContainer(in Input) corev1.Container {
	security := readOnlyRoot(hardened())
	security.RunAsNonRoot = nil
	security.RunAsUser, security.RunAsGroup = ptr(int64(0)), ptr(int64(0))
	return corev1.Container{
		Name:            names.RepoCacheContainer,
		Image:           in.Kit.Operator,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{"/manager", "repo-cache"},
		Env: []corev1.EnvVar{
			fieldEnv("NODE_NAME", "spec.nodeName"),
			fieldEnv("JR2_NAMESPACE", "metadata.namespace"),
			{Name: "HOME", Value: repoCacheHome},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "cache", MountPath: "/cache"},
			{Name: "home", MountPath: repoCacheHome},
			{Name: "tmp", MountPath: "/tmp"},
		},
		Resources:       sized("50m", "128Mi", "1Gi"),
		SecurityContext: security,
	}
}
