package render

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
)

// Operator renders the operator that all Instances of a cluster share: its namespace, the kinds Sandbox and Repo, the rights and
// the Deployment, whose label jr2.dev/version says which Kit it is from. Its objects carry no Instance label. The Deployment's
// priority class is the control class of this Instance, so the last Instance to converge decides it.
func Operator(in Input) ([]runtime.Object, error) {
	if in.Instance == nil {
		return nil, ErrNoInstance
	}
	crds, err := v1alpha1.CRDs()
	if err != nil {
		return nil, err
	}
	objects := []runtime.Object{&corev1.Namespace{
		TypeMeta:   kind("v1", "Namespace"),
		ObjectMeta: metav1.ObjectMeta{Name: names.OperatorNamespace, Labels: operatorLabels()},
	}}
	for _, crd := range crds {
		crd.TypeMeta = kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
		crd.Labels = with(crd.Labels, names.LabelManagedBy, names.ManagedBy)
		objects = append(objects, crd)
	}
	objects = append(objects, &corev1.ServiceAccount{TypeMeta: kind("v1", "ServiceAccount"), ObjectMeta: operatorMeta(names.OperatorAccount)})
	objects = append(objects, operatorRights()...)
	return append(objects, operatorDeployment(in)), nil
}

func operatorLabels() map[string]string {
	return map[string]string{names.LabelManagedBy: names.ManagedBy, names.LabelName: names.OperatorName}
}

func operatorMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: names.OperatorNamespace, Labels: operatorLabels()}
}

func operatorDeployment(in Input) *appsv1.Deployment {
	meta := operatorMeta(names.OperatorDeployment)
	meta.Labels = with(meta.Labels, names.LabelOperator, names.OperatorControlPlane, names.LabelVersion, in.Kit.Version)
	return &appsv1.Deployment{
		TypeMeta:   kind("apps/v1", "Deployment"),
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr(int32(1)),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{names.LabelOperator: names.OperatorControlPlane}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: with(operatorLabels(), names.LabelOperator, names.OperatorControlPlane)},
				Spec: corev1.PodSpec{
					ServiceAccountName:            names.OperatorAccount,
					PriorityClassName:             in.operatorClass(),
					SecurityContext:               hardenedPod(),
					TerminationGracePeriodSeconds: ptr(int64(10)),
					Containers:                    []corev1.Container{managerContainer(in)},
				},
			},
		},
	}
}

func managerContainer(in Input) corev1.Container {
	probe := func(path string, initial, period int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(names.OperatorHealthPort)}},
			InitialDelaySeconds: initial,
			PeriodSeconds:       period,
		}
	}
	return corev1.Container{
		Name:            names.ManagerContainer,
		Image:           in.Kit.Operator,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{"/manager"},
		Args:            []string{"--leader-elect", "--health-probe-bind-address=:8081"},
		Ports:           []corev1.ContainerPort{{Name: "health", ContainerPort: names.OperatorHealthPort, Protocol: corev1.ProtocolTCP}},
		LivenessProbe:   probe("/healthz", 15, 20),
		ReadinessProbe:  probe("/readyz", 5, 10),
		Resources:       sized("50m", "256Mi", "256Mi"),
		SecurityContext: readOnlyRoot(hardened()),
	}
}
