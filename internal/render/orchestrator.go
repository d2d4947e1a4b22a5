package render

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
)

// The Orchestrator's process: not root, and of one group with its volume.
const (
	orchestratorUser  = 1000
	orchestratorState = "/instance/.jr2"
)

// orchestratorRights: Sandboxes and Repos in full, the Secrets of Sandboxes and of git credentials, and reading ConfigMaps, because
// the Assembly lies in them (docs/assembly.md). Nothing on pods: the operator publishes their facts.
func orchestratorRights(in Input) []runtime.Object {
	return in.account(names.Orchestrator,
		rule(v1alpha1.Group, list("sandboxes", "repos"), list("*")),
		rule("", list("secrets"), list("get", "list", "create", "delete", "patch", "update")),
		rule("", list("configmaps"), readVerbs()),
	)
}

func stateClaim(in Input) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   kind("v1", "PersistentVolumeClaim"),
		ObjectMeta: in.meta(names.StateClaim),
		Spec:       claimSpec(),
	}
}

func claimSpec() corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
}

func orchestratorService(in Input) *corev1.Service {
	return in.service(names.Orchestrator, names.Orchestrator, names.OrchestratorPort)
}

// service renders a ClusterIP Service with one port, to the pods of the workload.
func (in Input) service(name, app string, port int32) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   kind("v1", "Service"),
		ObjectMeta: in.meta(name),
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{names.LabelApp: app},
			Ports:    []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromInt32(port)}},
		},
	}
}

// orchestratorDeployment runs one process, which alone writes the volume. Neither the image map nor the Assembly's hash stands on
// the pod template: the process reads both from the cluster, so a new Sandbox Image or a changed Workflow does not restart it.
func orchestratorDeployment(in Input) *appsv1.Deployment {
	meta := in.meta(names.Orchestrator, names.LabelApp, names.Orchestrator, names.LabelVersion, in.Kit.Version)
	meta.Annotations = map[string]string{names.AnnotationImages: in.ImageMap}
	if in.Replaced != "" {
		meta.Annotations[names.AnnotationReplaced] = in.Replaced
	}
	security := hardenedPod()
	security.RunAsUser, security.RunAsGroup, security.FSGroup = ptr(int64(orchestratorUser)), ptr(int64(orchestratorUser)), ptr(int64(orchestratorUser))
	return &appsv1.Deployment{
		TypeMeta:   kind("apps/v1", "Deployment"),
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr(int32(1)),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{names.LabelApp: names.Orchestrator}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      in.labels(names.LabelApp, names.Orchestrator),
					Annotations: map[string]string{names.AnnotationEnvDigest: envDigest(in)},
				},
				Spec: corev1.PodSpec{
					ServiceAccountName: names.Orchestrator,
					PriorityClassName:  in.controlClass(),
					SecurityContext:    security,
					Containers:         []corev1.Container{orchestratorContainer(in)},
					Volumes: []corev1.Volume{
						{Name: "state", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: names.StateClaim}}},
						configVolume("images", names.ImagesConfig),
						configVolume("held", names.HeldConfig, names.HeldKey),
					},
				},
			},
		},
	}
}

func orchestratorContainer(in Input) corev1.Container {
	health := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(names.OrchestratorPort)}}
	return corev1.Container{
		Name:            names.OrchestratorContainer,
		Image:           in.Kit.Orchestrator,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Ports:           []corev1.ContainerPort{{Name: "http", ContainerPort: names.OrchestratorPort, Protocol: corev1.ProtocolTCP}},
		EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: names.InstanceSecret}}}},
		Env: []corev1.EnvVar{
			fieldEnv("JR2_NAMESPACE", "metadata.namespace"),
			{Name: "JR2_ASSEMBLY", Value: names.AssemblyPointer},
			{Name: "NODE_EXTRA_CA_CERTS", Value: "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "state", MountPath: orchestratorState},
			{Name: "images", MountPath: "/etc/jr2/images", ReadOnly: true},
			{Name: "held", MountPath: "/etc/jr2/held", ReadOnly: true},
		},
		// A failing process leaves the Service soon; it is restarted late, because a run may keep it busy for minutes.
		ReadinessProbe:  &corev1.Probe{ProbeHandler: health, InitialDelaySeconds: 1, PeriodSeconds: 2, FailureThreshold: 15},
		LivenessProbe:   &corev1.Probe{ProbeHandler: health, PeriodSeconds: 10, FailureThreshold: 30},
		Resources:       sized("500m", "1Gi", "1Gi"),
		SecurityContext: hardened(),
	}
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

// configVolume mounts a ConfigMap: all of it, or the named keys.
func configVolume(name, config string, keys ...string) corev1.Volume {
	source := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: config}}
	for _, key := range keys {
		source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: source}}
}
