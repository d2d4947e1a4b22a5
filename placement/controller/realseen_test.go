package controller_test

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
)

// seen is what the stand-in for the Harness tells.
type seen struct {
	Runtime      string
	UID          int
	Groups       []int
	SharedMemory int64
	Env          map[string]string
	Written      map[string]string
	There        map[string]bool
	Custodian    struct {
		TokenSHA256, Root string
		Config            bool
	}
}

// ask asks what answers at the Sandbox's endpoint, from another pod. There is no kube-proxy: what it would do is done here.
func (s *realSite) ask(box *v1alpha1.Sandbox) seen {
	s.Helper()
	var list discoveryv1.EndpointSliceList
	address := ""
	s.until("the Service has an endpoint", func() bool {
		if err := s.List(s.Context(), &list, client.InNamespace(s.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: box.Status.ServiceRef.Name}); err != nil {
			s.Fatal(err)
		}
		for _, slice := range list.Items {
			if len(slice.Endpoints) == 1 && ptr.Deref(slice.Endpoints[0].Conditions.Ready, false) {
				address = fmt.Sprintf("%s:%d", slice.Endpoints[0].Addresses[0], *slice.Ports[0].Port)
			}
		}
		return address != ""
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "asks-" + box.Name}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, NodeSelector: box.Spec.NodeSelector, Tolerations: box.Spec.Tolerations,
		Containers: []corev1.Container{{Name: "asks", Image: builtImage, Command: []string{"busybox", "wget", "-qO-", "http://" + address}}},
	}}
	s.create(pod)
	s.until("the answer is there", func() bool {
		return s.get(pod.Name, pod) && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed)
	})
	text, err := s.logs.CoreV1().Pods(s.namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	var answer seen
	if err := json.Unmarshal(text, &answer); err != nil {
		s.Fatalf("%v: %s", err, text)
	}
	return answer
}

func (s *realSite) sees(box *v1alpha1.Sandbox, got seen, uid int, written map[string]string) {
	s.Helper()
	if got.Runtime != runtimeText {
		s.Errorf("the runtime of the Kit's image is not there: %q", got.Runtime)
	}
	if got.UID != uid || !slices.Contains(got.Groups, 2000) {
		s.Errorf("it runs as %d of the groups %v", got.UID, got.Groups)
	}
	if fmt.Sprint(got.Written) != fmt.Sprint(written) {
		s.Errorf("what is in the way of a new file: %v", got.Written)
	}
	for path, there := range got.There {
		if there {
			s.Errorf("the Harness sees %s", path)
		}
	}
	if got.SharedMemory != realHarness/4 {
		s.Errorf("/dev/shm has %d bytes", got.SharedMemory)
	}
	for name, want := range map[string]string{"LITERAL": "of the configuration", names.SandboxTokenName: config.StandIn(names.SandboxTokenName), "GOMAXPROCS": "1"} {
		if got.Env[name] != want {
			s.Errorf("%s is %q", name, got.Env[name])
		}
	}
	// The Custodian, as another user, reads by the pod's group what it alone may.
	if c := got.Custodian; c.TokenSHA256 != got.Env["JR2_HARNESS_TOKEN_SHA256"] || !c.Config || c.Root != "read-only file system" {
		s.Errorf("the Custodian of %s sees %+v", box.Name, c)
	}
}
