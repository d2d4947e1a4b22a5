package render

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
)

// A SandboxSeat is the Workspace that a Sandbox is for, and what a run knows of it.
type SandboxSeat struct {
	// Name of the Sandbox, Run the id of the run.
	Name, Run string
	Workflow  string
	Workspace config.Workspace
	// Image is the ref of the Harness container's image. Built says that a converge built it from a folder, and User is then the USER that it
	// declares: none makes the pod run it as uid 1000.
	Image string
	Built bool
	User  string
	// UserImage is the ref of the User Container's image; empty means that there is none.
	UserImage string
	// Repos are the repositories of its slots.
	Repos []config.Repo
}

const (
	idleTimeout  = 30 * time.Minute
	workDir      = "/work"
	runtimeDir   = "/opt/jr2"
	fallbackUser = 1000
	fallbackHome = "/home/jr2"
)

// SandboxToken derives the token of a Sandbox, with which its pod and the Orchestrator know each other: like HarnessToken, of the Sandbox's
// name.
func SandboxToken(signingKey config.Secret, name string) config.Secret {
	return config.NewSecret(base64.RawURLEncoding.EncodeToString(mac(signingKey, name)))
}

// Sandbox composes the Sandbox of a Workspace, without a sign of use. It needs the signing key, because the pod carries the hash of its token.
// Errors: those of Input, *config.SizeError, *ImageUserError.
func Sandbox(in Input, seat SandboxSeat) (*v1alpha1.Sandbox, error) {
	if err := in.complete(); err != nil {
		return nil, err
	}
	if err := checkImageUser(seat); err != nil {
		return nil, err
	}
	size := config.ResolveSize(seat.Workspace, in.Instance.Sandbox.Resources)
	size.Workflow = seat.Workflow
	switch {
	case size.Harness.Memory < config.HarnessFloor:
		return nil, &config.SizeError{WorkspaceSize: size, Short: "memory"}
	case size.Harness.CPU <= 0:
		return nil, &config.SizeError{WorkspaceSize: size, Short: "cpu"}
	}
	meta := in.meta(seat.Name, v1alpha1.LabelRun, seat.Run, v1alpha1.LabelWorkflow, seat.Workflow)
	meta.Annotations = map[string]string{v1alpha1.AnnotationChild: strings.Join(seat.Workspace.Path, "/")}
	box := &v1alpha1.Sandbox{
		TypeMeta:   kind(v1alpha1.GroupVersion().String(), "Sandbox"),
		ObjectMeta: meta,
		Spec: v1alpha1.SandboxSpec{
			Image:             seat.Image,
			Command:           []string{runtimeDir + "/bin/tini", "--", runtimeDir + "/bin/node", runtimeDir + "/main.js"},
			Port:              names.HarnessPort,
			SecurityContext:   seat.security(),
			FSGroup:           ptr(int64(workGroup)),
			InitContainers:    []corev1.Container{sandboxPreflight(seat)},
			Sidecars:          sandboxSidecars(in, seat, size),
			Volumes:           sandboxVolumes(in, seat),
			VolumeMounts:      sandboxMounts(in, seat),
			Resources:         exactly(size.Harness),
			PodResources:      ptr(exactly(size.Size)),
			SHMSize:           resource.NewQuantity(size.SharedMemory, resource.BinarySI),
			PriorityClassName: in.sandboxClass(),
			Env:               sandboxEnv(in, seat),
			EnvFrom:           harnessEnvFrom(in),
			IdleTimeout:       &metav1.Duration{Duration: idleTimeout},
			NodeSelector:      maps.Clone(in.Instance.Sandbox.NodeSelector),
			Tolerations:       slices.Clone(in.Instance.Sandbox.Tolerations),
		},
	}
	box.Spec.Resources.Requests[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(config.WorkDisk, resource.BinarySI)
	for _, repo := range seat.Repos {
		box.Spec.Repos = append(box.Spec.Repos, v1alpha1.SandboxRepo{Key: repo.Key, URL: repo.URL})
	}
	return box, nil
}

// fallback says that the image declares no USER and so runs as uid 1000, with a home of its own.
func (s SandboxSeat) fallback() bool { return s.Built && s.User == "" }

// security is the primary container's; nil leaves it to the operator's hardened default.
func (s SandboxSeat) security() *corev1.SecurityContext {
	if !s.fallback() {
		return nil
	}
	security := hardened()
	security.RunAsUser = ptr(int64(fallbackUser))
	return security
}

// checkImageUser wants a number that is not root's: Kubernetes can't tell from a name that it is not root.
func checkImageUser(seat SandboxSeat) error {
	if !seat.Built || seat.User == "" {
		return nil
	}
	user, _, _ := strings.Cut(seat.User, ":")
	if id, err := strconv.ParseInt(user, 10, 64); err != nil || id <= 0 {
		return &ImageUserError{Image: seat.Image, User: seat.User}
	}
	return nil
}

// An ImageUserError says that a Sandbox Image declares a USER with which its pod would not start.
type ImageUserError struct{ Image, User string }

func (e *ImageUserError) Error() string {
	return fmt.Sprintf("refusing: image %s declares USER %s — a Sandbox runs as no root, and Kubernetes takes a number alone: declare a numeric USER other than 0, or none", e.Image, e.User)
}

// exactly are resources whose requests are their limits.
func exactly(size config.Size) corev1.ResourceRequirements {
	return limited(config.Limits{Memory: &size.Memory, CPU: &size.CPU})
}

// limited are resources, of which only the stated ones are there, whose requests are their limits.
func limited(limits config.Limits) corev1.ResourceRequirements {
	list := func() corev1.ResourceList {
		list := corev1.ResourceList{}
		if limits.Memory != nil {
			list[corev1.ResourceMemory] = *resource.NewQuantity(*limits.Memory, resource.BinarySI)
		}
		if limits.CPU != nil {
			list[corev1.ResourceCPU] = *resource.NewMilliQuantity(*limits.CPU, resource.DecimalSI)
		}
		return list
	}
	if limits.Memory == nil && limits.CPU == nil {
		return corev1.ResourceRequirements{}
	}
	return corev1.ResourceRequirements{Requests: list(), Limits: list()}
}

// tokenHash is what the pod knows of the token by which it knows the Orchestrator.
func tokenHash(token config.Secret) string {
	hash := sha256.Sum256([]byte(token.Reveal()))
	return hex.EncodeToString(hash[:])
}
