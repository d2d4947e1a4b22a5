package render

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
)

// preflightScript tries in the Sandbox Image what the Harness needs of it, so that an image which lacks something says so at the start.
const preflightScript = `set -eu
git config --global jr2.preflight ok
"` + runtimeDir + `/bin/node" --version
PATH="` + runtimeDir + `/bin:$PATH" rg --version
`

func sandboxPreflight(seat SandboxSeat) corev1.Container {
	security := hardened()
	container := corev1.Container{
		Name:            names.PreflightContainer,
		Image:           seat.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{"/bin/sh", "-c", preflightScript},
		VolumeMounts:    []corev1.VolumeMount{runtimeMount()},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
		},
		SecurityContext: security,
	}
	if seat.fallback() {
		security.RunAsUser = ptr(int64(fallbackUser))
		container.Env = []corev1.EnvVar{{Name: "HOME", Value: fallbackHome}}
		container.VolumeMounts = append(container.VolumeMounts, homeMount())
	}
	return container
}

func runtimeMount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: "runtime", MountPath: runtimeDir, SubPath: "opt/jr2", ReadOnly: true}
}

func homeMount() corev1.VolumeMount { return corev1.VolumeMount{Name: "home", MountPath: fallbackHome} }

// sandboxSidecars are the Custodian, and the User Container where the Machine names an image for it.
func sandboxSidecars(in Input, seat SandboxSeat, size config.WorkspaceSize) []corev1.Container {
	custodian := custodianContainer(in)
	custodian.RestartPolicy = nil // a container beside the Harness: the pod restarts both
	custodian.Resources = exactly(size.Custodian)
	sidecars := []corev1.Container{custodian}
	if seat.UserImage != "" {
		sidecars = append(sidecars, corev1.Container{
			Name:            names.UserContainer,
			Image:           seat.UserImage,
			ImagePullPolicy: corev1.PullIfNotPresent,
			VolumeMounts:    []corev1.VolumeMount{{Name: "work", MountPath: workDir}, runtimeMount()},
			Resources:       limited(size.User),
		})
	}
	return sidecars
}

// sandboxVolumes are those that the operator does not add itself, as it does those of repositories and of /dev/shm.
func sandboxVolumes(in Input, seat SandboxSeat) []corev1.Volume {
	volumes := []corev1.Volume{
		{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "runtime", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: in.Kit.Harness}}},
	}
	volumes = append(volumes, custodianVolumes(in, seat.Name+names.TokenSuffix, names.SandboxTokenName)...)
	if seat.fallback() {
		volumes = append(volumes, corev1.Volume{Name: "home", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	return append(volumes, trustVolumes(in)...)
}

func sandboxMounts(in Input, seat SandboxSeat) []corev1.VolumeMount {
	mounts := []corev1.VolumeMount{{Name: "work", MountPath: workDir}, runtimeMount()}
	if seat.fallback() {
		mounts = append(mounts, homeMount())
	}
	return append(mounts, trustMounts(in)...)
}

// sandboxEnv is the environment of a Harness with a Workspace, in order of rising precedence.
func sandboxEnv(in Input, seat SandboxSeat) []corev1.EnvVar {
	var env []corev1.EnvVar
	if seat.fallback() {
		env = append(env, corev1.EnvVar{Name: "HOME", Value: fallbackHome})
	}
	env = append(env, configuredEnv(in)...)
	env = append(env, reachEnv(in)...)
	for _, name := range []string{"JR2_CPUS", "OMP_NUM_THREADS", "PYTHON_CPU_COUNT", "GOMAXPROCS"} {
		env = append(env, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{
			Resource: "limits.cpu", Divisor: resource.MustParse("1")}}})
	}
	return lastOfEach(append(env, corev1.EnvVar{Name: "JR2_HARNESS_TOKEN_SHA256", Value: tokenHash(SandboxToken(in.SigningKey, seat.Name))}))
}

// Repo renders the Repo of a repository that a Workflow binds. Its annotation of the last use is the caller's to set.
func Repo(in Input, repo config.Repo) *v1alpha1.Repo {
	object := &v1alpha1.Repo{
		TypeMeta:   kind(v1alpha1.GroupVersion().String(), "Repo"),
		ObjectMeta: in.meta(repo.Key),
		Spec:       v1alpha1.RepoSpec{URL: repo.URL},
	}
	object.Annotations = map[string]string{names.AnnotationIdentity: repo.Identity}
	for _, bound := range in.Instance.BoundRepos() {
		if bound.Identity == repo.Identity {
			object.Labels[names.LabelBound] = "true"
		}
	}
	if credential, ok := in.Instance.Git.Credential(repo); ok && credential.SecretName != "" {
		object.Spec.SecretRef = &v1alpha1.Reference{Name: credential.SecretName}
	}
	return object
}
