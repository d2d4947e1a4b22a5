package warm

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// DefaultSleeper is Kubernetes' own image that sleeps: less than a megabyte, without a shell, and on many nodes already.
const DefaultSleeper = "registry.k8s.io/pause:3.10.2"

// A Sleeper is a program that does nothing until it is told to end. The zero value is DefaultSleeper.
type Sleeper struct {
	// Image must run as a user other than root, by number, and without writing to its file system.
	Image string
	// Command replaces the image's own; needed where that does not sleep, as in an image with a shell: sleep, infinity.
	Command []string
}

// sleeperUser is that of DefaultSleeper; one is named so that another image need not name its own.
const sleeperUser = int64(65535)

// container is one that sleeps, hardened as Pod Security's restricted level asks.
func (s Sleeper) container(name string, resources corev1.ResourceRequirements) corev1.Container {
	image := s.Image
	if image == "" {
		image = DefaultSleeper
	}
	return corev1.Container{
		Name:            name,
		Image:           image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         slices.Clone(s.Command),
		Resources:       resources,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr(false),
			ReadOnlyRootFilesystem:   ptr(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

// pod is the frame of both kinds of pods: it ends at once when it is told to, and has no token.
func (h Home) pod(containers ...corev1.Container) corev1.PodSpec {
	return corev1.PodSpec{
		Containers:                    containers,
		ImagePullSecrets:              h.pullSecrets(),
		AutomountServiceAccountToken:  ptr(false),
		EnableServiceLinks:            ptr(false),
		TerminationGracePeriodSeconds: ptr(int64(0)),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr(true), RunAsUser: ptr(sleeperUser), RunAsGroup: ptr(sleeperUser),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}

func ptr[T any](value T) *T { return &value }
