package render

import (
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	conversations    = "conversations" // the claim template and its volume
	conversationsDir = "/conversations"
	trustDir         = "/etc/jr2/ca"
	workGroup        = 2000
)

// InstanceHarness renders the Harness of Agents that work without a Workspace; nil when every Agent has one. It needs the signing
// key, because its pod carries the hash of a token that derives from it.
func InstanceHarness(in Input) ([]runtime.Object, error) {
	if in.Instance == nil {
		return nil, ErrNoInstance
	}
	if !NeedsInstanceHarness(in) {
		return nil, nil
	}
	if err := in.complete(); err != nil {
		return nil, err
	}
	if err := in.Certificates.complete(in); err != nil {
		return nil, err
	}
	governing := in.service(names.InstanceHarnessPods, names.InstanceHarnessName, names.HarnessPort)
	governing.Spec.ClusterIP = corev1.ClusterIPNone
	return []runtime.Object{
		governing,
		in.service(names.InstanceHarnessName, names.InstanceHarnessName, names.HarnessPort),
		instanceHarnessSet(in),
	}, nil
}

func instanceHarnessSet(in Input) *appsv1.StatefulSet {
	claim := corev1.PersistentVolumeClaim{
		TypeMeta:   kind("v1", "PersistentVolumeClaim"),
		ObjectMeta: metav1.ObjectMeta{Name: conversations, Labels: in.labels()},
		Spec:       claimSpec(),
	}
	return &appsv1.StatefulSet{
		TypeMeta:   kind("apps/v1", "StatefulSet"),
		ObjectMeta: in.meta(names.InstanceHarnessName, names.LabelApp, names.InstanceHarnessName, names.LabelVersion, in.Kit.Version),
		Spec: appsv1.StatefulSetSpec{
			Replicas:             ptr(int32(1)),
			UpdateStrategy:       appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
			ServiceName:          names.InstanceHarnessPods,
			Selector:             &metav1.LabelSelector{MatchLabels: map[string]string{names.LabelApp: names.InstanceHarnessName}},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim},
			PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
				WhenScaled:  appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
			},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: in.labels(names.LabelApp, names.InstanceHarnessName),
					Annotations: map[string]string{
						names.AnnotationHeldDigest: heldDigest(in), names.AnnotationSafeToEvict: "false", names.AnnotationDoNotDisrupt: "true"},
				},
				Spec: instanceHarnessPod(in),
			},
		},
	}
}

func instanceHarnessPod(in Input) corev1.PodSpec {
	security := hardenedPod()
	security.FSGroup = ptr(int64(workGroup))
	volumes := append(custodianVolumes(in, names.InstanceSecret, names.KeyHarnessToken), trustVolumes(in)...)
	return corev1.PodSpec{
		PriorityClassName:             in.sandboxClass(),
		AutomountServiceAccountToken:  ptr(false),
		SecurityContext:               security,
		TerminationGracePeriodSeconds: ptr(int64(names.HarnessDrain.Seconds())),
		InitContainers:                []corev1.Container{custodianContainer(in)},
		Containers:                    []corev1.Container{harnessContainer(in)},
		Volumes:                       volumes,
	}
}

func harnessContainer(in Input) corev1.Container {
	mounts := append([]corev1.VolumeMount{{Name: conversations, MountPath: conversationsDir}}, trustMounts(in)...)
	return corev1.Container{
		Name:            names.HarnessContainer,
		Image:           in.Kit.Harness,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Ports:           []corev1.ContainerPort{{Name: "http", ContainerPort: names.HarnessPort, Protocol: corev1.ProtocolTCP}},
		Env:             harnessEnv(in),
		EnvFrom:         harnessEnvFrom(in),
		VolumeMounts:    mounts,
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(names.HarnessPort)}},
			InitialDelaySeconds: 1, PeriodSeconds: 2, FailureThreshold: 15,
		},
		Resources:       sized("250m", "1Gi", "1Gi"),
		SecurityContext: hardened(),
	}
}

// harnessEnv is the environment of the Instance Harness, in order of rising precedence: a name that comes twice keeps its last value.
// The configuration comes first, so it cannot change what makes this Harness one without tools (JR2_MENU_ONLY).
func harnessEnv(in Input) []corev1.EnvVar {
	env := append(configuredEnv(in), corev1.EnvVar{Name: "JR2_MENU_ONLY", Value: "1"})
	env = append(env, reachEnv(in)...)
	return lastOfEach(append(env,
		corev1.EnvVar{Name: "JR2_CONVERSATIONS_DIR", Value: conversationsDir},
		corev1.EnvVar{Name: "JR2_HARNESS_TOKEN_SHA256", Value: tokenHash(HarnessToken(in.SigningKey))},
	))
}

// configuredEnv is what the configuration gives a Harness by reference, and where it finds harness.json; its literals travel in a Secret.
func configuredEnv(in Input) []corev1.EnvVar {
	var env []corev1.EnvVar
	for _, e := range in.Instance.Harness.Env {
		if e.ValueFrom != nil {
			env = append(env, corev1.EnvVar{Name: e.Name, ValueFrom: e.ValueFrom.DeepCopy()})
		}
	}
	return append(env, corev1.EnvVar{Name: "JR2_HARNESS_JSON", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: names.HarnessConfig}, Key: names.HarnessKey}}})
}

// reachEnv is how a Harness reaches its Custodian, with which stand-ins, and whom it trusts.
func reachEnv(in Input) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "JR2_CUSTODIAN_URL", Value: "http://127.0.0.1:8081"},
		{Name: names.SandboxTokenName, Value: config.StandIn(names.SandboxTokenName)},
	}
	for _, held := range heldSecrets(in) {
		env = append(env, corev1.EnvVar{Name: held.Name, Value: config.StandIn(held.Name)})
	}
	return append(env, trustEnv(in)...)
}

// harnessEnvFrom are the literals of the configuration, then what it takes from elsewhere.
func harnessEnvFrom(in Input) []corev1.EnvFromSource {
	ours := corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: names.HarnessEnvSecret}}}
	return append([]corev1.EnvFromSource{ours}, in.Instance.Harness.EnvFrom...)
}

// lastOfEach drops every variable that a later one of the same name would hide: a server-side apply refuses repeated names.
func lastOfEach(env []corev1.EnvVar) []corev1.EnvVar {
	last := map[string]int{}
	for i, e := range env {
		last[e.Name] = i
	}
	kept := env[:0]
	for i, e := range env {
		if last[e.Name] == i {
			kept = append(kept, e)
		}
	}
	return kept
}
