package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
)

// Service is the Service of a Sandbox: its name is the host name of the Sandbox's endpoint.
func Service(box *v1alpha1.Sandbox) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: box.Name, Namespace: box.Namespace, Labels: objectLabels(box), OwnerReferences: []metav1.OwnerReference{owner(box)},
		},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{names.LabelSandbox: box.Name},
			Ports:    []corev1.ServicePort{{Name: portName, Port: port(&box.Spec), TargetPort: intstr.FromInt32(port(&box.Spec)), Protocol: corev1.ProtocolTCP}},
		},
	}
}

// Endpoint is the address of a Sandbox's Harness inside the cluster. It is no sign that somebody answers there.
func Endpoint(box *v1alpha1.Sandbox) string {
	return fmt.Sprintf("http://%s.%s.svc:%d", box.Name, box.Namespace, port(&box.Spec))
}
