package controller

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
)

const (
	// ManagedBy is the value of app.kubernetes.io/managed-by on the pods and Services of Sandboxes: what the controller watches.
	ManagedBy = "jr2-operator"
	// userContainer is the one sidecar that may run as root: it is the user's own image.
	userContainer = "user"
	// portName is that of the primary container's port and of the Service's.
	portName = "http"
	// workGroup owns the volumes of a pod whose Sandbox names no fsGroup.
	workGroup = 2000
	shmVolume = "shm"
)

// Pod is the pod of a Sandbox. holders says for each Repo key which nodes have the repository now: the pod prefers them.
//
// Nothing of the spec is dropped or corrected: what the API server would refuse in a pod, it refuses in this one. What the operator may not lend
// to the author of a Sandbox is refused before; see allowed.
func Pod(box *v1alpha1.Sandbox, holders map[string][]string) *corev1.Pod {
	spec := box.Spec.DeepCopy()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:      box.Name,
			Namespace: box.Namespace,
			Labels:    objectLabels(box),
			Annotations: map[string]string{
				names.AnnotationSafeToEvict:  "false",
				names.AnnotationDoNotDisrupt: "true",
			},
			OwnerReferences: []metav1.OwnerReference{owner(box)},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyAlways,
			Resources:                    spec.PodResources,
			PriorityClassName:            spec.PriorityClassName,
			NodeSelector:                 spec.NodeSelector,
			Tolerations:                  spec.Tolerations,
			Affinity:                     nearRepos(holders),
			AutomountServiceAccountToken: ptr.To(false),
			// Each Sandbox makes a Service. Their variables would be in each pod of the namespace.
			EnableServiceLinks: ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{
				FSGroup:        ptr.To(ptr.Deref(spec.FSGroup, workGroup)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			InitContainers: spec.InitContainers,
			Containers:     append([]corev1.Container{primary(spec)}, sidecars(spec)...),
			Volumes:        volumes(box.Namespace, spec),
		},
	}
}

// primary is the Harness.
func primary(spec *v1alpha1.SandboxSpec) corev1.Container {
	mounts := spec.VolumeMounts
	if spec.SHMSize != nil {
		mounts = withMount(mounts, corev1.VolumeMount{Name: shmVolume, MountPath: "/dev/shm"})
	}
	probe := spec.ReadinessProbe
	if probe == nil {
		probe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port(spec))}},
			PeriodSeconds: 1,
		}
	}
	security := spec.SecurityContext
	if security == nil {
		security = hardened()
	}
	return corev1.Container{
		Name:            names.HarnessContainer,
		Image:           spec.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         spec.Command,
		Args:            spec.Args,
		Env:             spec.Env,
		EnvFrom:         spec.EnvFrom,
		Ports:           []corev1.ContainerPort{{Name: portName, ContainerPort: port(spec), Protocol: corev1.ProtocolTCP}},
		ReadinessProbe:  probe,
		Resources:       spec.Resources,
		SecurityContext: security,
		VolumeMounts:    withRepos(mounts, spec.Repos),
	}
}

func sidecars(spec *v1alpha1.SandboxSpec) []corev1.Container {
	for i := range spec.Sidecars {
		sidecar := &spec.Sidecars[i]
		switch {
		case sidecar.Name == userContainer:
			sidecar.VolumeMounts = withRepos(sidecar.VolumeMounts, spec.Repos)
		case sidecar.SecurityContext == nil:
			sidecar.SecurityContext = hardened()
		}
	}
	return spec.Sidecars
}

// volumes are the spec's, /dev/shm and the repositories. One that the spec already has stays as it is there.
func volumes(namespace string, spec *v1alpha1.SandboxSpec) []corev1.Volume {
	all := spec.Volumes
	add := func(name string, source corev1.VolumeSource) {
		if !slices.ContainsFunc(all, func(v corev1.Volume) bool { return v.Name == name }) {
			all = append(all, corev1.Volume{Name: name, VolumeSource: source})
		}
	}
	for _, repo := range spec.Repos {
		add(repoVolume(repo.Key), corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
			Path: repoPath(namespace, repo.Key), Type: ptr.To(corev1.HostPathDirectoryOrCreate),
		}})
	}
	if spec.SHMSize != nil {
		add(shmVolume, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: spec.SHMSize}})
	}
	return all
}

// withRepos mounts each repository, read-only.
func withRepos(mounts []corev1.VolumeMount, repos []v1alpha1.SandboxRepo) []corev1.VolumeMount {
	for _, repo := range repos {
		mounts = withMount(mounts, corev1.VolumeMount{Name: repoVolume(repo.Key), MountPath: "/repos/" + repo.Key, ReadOnly: true})
	}
	return mounts
}

// withMount adds a mount where nothing else is mounted.
func withMount(mounts []corev1.VolumeMount, mount corev1.VolumeMount) []corev1.VolumeMount {
	if slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath == mount.MountPath }) {
		return mounts
	}
	return append(mounts, mount)
}

func repoVolume(key string) string { return "repo-" + key }

// repoPath is where the Repo cache of a namespace keeps a repository on each node.
func repoPath(namespace, key string) string { return "/var/lib/jr2/" + namespace + "/repos/" + key }

// hardened is what the Pod Security level "restricted" asks of a container.
func hardened() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsNonRoot:             ptr.To(true),
		AllowPrivilegeEscalation: ptr.To(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// maxPreferred bounds the preferred node terms of a pod. They are a hint, and the pod of a large cluster must stay small enough to store.
const maxPreferred = 500

// nearRepos prefers nodes by how many of the repositories they have: one term of weight 1 for each repository and node. Nil when no node
// has any. When there are more than maxPreferred, the nodes with the most repositories are named, in the order of their names.
func nearRepos(holders map[string][]string) *corev1.Affinity {
	has := map[string]int{}
	for _, nodes := range holders {
		for _, node := range nodes {
			has[node]++
		}
	}
	nodes := slices.Sorted(maps.Keys(has))
	slices.SortStableFunc(nodes, func(a, b string) int { return has[b] - has[a] })
	var terms []corev1.PreferredSchedulingTerm
	for _, node := range nodes {
		for range has[node] {
			if len(terms) == maxPreferred {
				break
			}
			terms = append(terms, corev1.PreferredSchedulingTerm{Weight: 1, Preference: corev1.NodeSelectorTerm{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}})
		}
	}
	if terms == nil {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}}
}

// port is where the primary container listens; the CRD's default holds for a Sandbox that no API server has seen.
func port(spec *v1alpha1.SandboxSpec) int32 {
	if spec.Port == 0 {
		return names.HarnessPort
	}
	return spec.Port
}

func objectLabels(box *v1alpha1.Sandbox) map[string]string {
	return map[string]string{names.LabelSandbox: box.Name, names.LabelManagedBy: ManagedBy}
}

func owner(box *v1alpha1.Sandbox) metav1.OwnerReference {
	return *metav1.NewControllerRef(box, v1alpha1.GroupVersion().WithKind("Sandbox"))
}
