package render

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"jr2.dev/jr2/internal/names"
)

// Where a Custodian finds its files, in every pod that has one.
const (
	custodianConfigDir = "/etc/jr2/custodian/config"
	custodianValuesDir = "/etc/jr2/custodian/values" // custodian.lua names it too
	custodianTLSDir    = "/etc/jr2/custodian/tls"
)

// custodianContainer runs Envoy beside a Harness, as a native sidecar: it starts first and outlives the Harness's drain.
func custodianContainer(in Input) corev1.Container {
	return corev1.Container{
		Name:            names.CustodianContainer,
		Image:           in.Kit.Custodian,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args:            []string{"-c", custodianConfigDir + "/" + names.BootstrapKey, "--concurrency", "1", "--disable-hot-restart"},
		RestartPolicy:   ptr(corev1.ContainerRestartPolicyAlways),
		Ports:           []corev1.ContainerPort{{Name: "health", ContainerPort: names.CustodianHealthPort, Protocol: corev1.ProtocolTCP}},
		VolumeMounts:    custodianMounts(in),
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(names.CustodianHealthPort)}},
			InitialDelaySeconds: 1, PeriodSeconds: 2, FailureThreshold: 15,
		},
		Resources:       sized("50m", "64Mi", "64Mi"),
		SecurityContext: readOnlyRoot(hardened()),
	}
}

func custodianMounts(in Input) []corev1.VolumeMount {
	mounts := []corev1.VolumeMount{
		{Name: "custodian-values", MountPath: custodianValuesDir, ReadOnly: true},
		{Name: "custodian-config", MountPath: custodianConfigDir, ReadOnly: true},
	}
	if Holds(in) {
		mounts = append(mounts,
			corev1.VolumeMount{Name: "custodian-tls", MountPath: custodianTLSDir, ReadOnly: true},
			corev1.VolumeMount{Name: "custodian-trust", MountPath: trustDir, ReadOnly: true},
		)
	}
	return mounts
}

// custodianVolumes are the files of a Custodian. The token of its pod is one key of a Secret, of which it sees no other; of every Secret
// that a held value lies in it sees the keys that are held.
func custodianVolumes(in Input, tokenSecret, tokenKey string) []corev1.Volume {
	sources := []corev1.VolumeProjection{projected(tokenSecret, corev1.KeyToPath{Key: tokenKey, Path: names.SandboxTokenName})}
	at := map[string]*corev1.SecretProjection{}
	for _, held := range heldSecrets(in) {
		from := valueOf(held)
		if at[from.Name] == nil {
			sources = append(sources, projected(from.Name))
			at[from.Name] = sources[len(sources)-1].Secret
		}
		at[from.Name].Items = append(at[from.Name].Items, corev1.KeyToPath{Key: from.Key, Path: held.Name})
	}
	volumes := []corev1.Volume{
		{Name: "custodian-values", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: ptr(groupReads), Sources: sources}}},
		configVolume("custodian-config", names.HeldConfig),
	}
	if !Holds(in) {
		return volumes
	}
	return append(volumes,
		corev1.Volume{Name: "custodian-tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: names.HeldTLS, DefaultMode: ptr(groupReads)}}},
		configVolume("custodian-trust", names.TrustConfig, names.UpstreamKey),
	)
}

// groupReads is the mode of files with secrets; the group is the pod's.
const groupReads int32 = 0o440

func projected(secret string, items ...corev1.KeyToPath) corev1.VolumeProjection {
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Items: items}}
}

// trustVolumes are the authorities that a Harness trusts; none when it needs no other than its own.
func trustVolumes(in Input) []corev1.Volume {
	if !hasTrust(in) {
		return nil
	}
	return []corev1.Volume{configVolume("ca", names.TrustConfig)}
}

func trustMounts(in Input) []corev1.VolumeMount {
	if !hasTrust(in) {
		return nil
	}
	return []corev1.VolumeMount{{Name: "ca", MountPath: trustDir, ReadOnly: true}}
}
