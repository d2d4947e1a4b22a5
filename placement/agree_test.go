package placement_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement"
)

// A scheduled is a cluster whose real scheduler is asked what placement has answered.
type scheduled struct {
	cluster  *devcluster.Cluster
	client   kubernetes.Interface
	metadata metadata.Interface
	said     *verdicts
}

func TestAgreesWithTheRealScheduler(t *testing.T) {
	cluster := devcluster.ForTest(t, devcluster.Options{Nodes: fleet()})
	config := cluster.Config()
	config.WarningHandler = rest.NoWarnings{} // of quotas that were made up
	s := &scheduled{cluster: cluster, client: kubernetes.NewForConfigOrDie(config), metadata: metadata.NewForConfigOrDie(config)}
	s.said = listen(t, s.client)
	s.ground(t)
	t.Run("cases", s.cases)
	t.Run("room on nodes", s.roomOnNodes)
	t.Run("generated", s.generated)
	t.Run("room in quotas", s.room)
	t.Run("generated room", s.generatedRoom)
}

// ground makes what pods name.
func (s *scheduled) ground(t *testing.T) {
	t.Helper()
	kata := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Handler: "kata", Overhead: &nodev1.Overhead{PodFixed: list("cpu=250m memory=160Mi")}}
	if _, err := s.client.NodeV1().RuntimeClasses().Create(t.Context(), kata, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// Of the default's priority, so that nobody is preempted.
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "jr2-sandbox"}}
	if _, err := s.client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.namespace(t, metav1.NamespaceDefault, nil)
	s.namespace(t, "team", map[string]string{"team": "red"})
}

// namespace makes one, if it is not there, and waits until pods are let in.
func (s *scheduled) namespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	if name != metav1.NamespaceDefault {
		if _, err := s.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := s.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Errorf("the service account of %s: %v", name, err)
	}
}

func (s *scheduled) facts(t *testing.T, namespace string) *placement.Facts {
	t.Helper()
	facts, err := placement.ReadFacts(t.Context(), s.sources(namespace))
	if err != nil || len(facts.Unread) > 0 {
		t.Fatalf("%v %v", err, facts.Unread)
	}
	return facts
}

func (s *scheduled) sources(namespace string) placement.Sources {
	return placement.Sources{
		Nodes: s.client.CoreV1().Nodes(), Pods: s.client.CoreV1().Pods(""), DaemonSets: s.client.AppsV1().DaemonSets(""),
		Quotas: s.client.CoreV1().ResourceQuotas(namespace), LimitRanges: s.client.CoreV1().LimitRanges(namespace),
		RuntimeClasses: s.client.NodeV1().RuntimeClasses(), PriorityClasses: s.client.SchedulingV1().PriorityClasses(),
		Namespaces: s.metadata.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")),
	}
}

// explain says what placement thinks of a pod, and the pod as it will be stored.
func explain(facts *placement.Facts, pod *corev1.Pod) (placement.Explanation, *corev1.Pod, error) {
	admitted, refused := facts.Admit(pod)
	if len(refused) > 0 {
		return placement.Explanation{}, nil, fmt.Errorf("%s: %+v", pod.Name, refused)
	}
	return placement.Explain(admitted, facts.Nodes, placement.ExplainOptions{Pods: facts.Pods, DaemonSets: facts.DaemonSets, Namespaces: facts.Namespaces}), admitted, nil
}

// agree makes the pod, lets the real scheduler speak and compares. It returns the pod as the scheduler left it; nil when the API server
// does not take such a pod.
func (s *scheduled) agree(t *testing.T, pod *corev1.Pod, facts *placement.Facts) *corev1.Pod {
	t.Helper()
	want, admitted, err := explain(facts, pod)
	if err != nil {
		t.Error(err)
		return nil
	}
	made, err := s.said.ask(t.Context(), s.client, pod)
	if err != nil {
		t.Errorf("%s: %v", pod.Name, err)
		return nil
	}
	if wrong := disagreement(want, admitted, made); wrong != "" {
		t.Errorf("%s: %s\n%s", pod.Name, wrong, shapeOf(pod))
	}
	return made
}

// disagreement compares: a pod that was bound is on a node that was Usable, and one that was not finds none, in the scheduler's own words.
func disagreement(want placement.Explanation, admitted, made *corev1.Pod) string {
	asked, bound, message := placement.Requests(admitted), made.Spec.NodeName, verdict(made)
	if bound == "" {
		for name, quantity := range placement.Requests(made) {
			if quantity.Cmp(asked[name]) != 0 {
				return fmt.Sprintf("asks %s of %s, and %v was expected", quantity.String(), name, asked)
			}
		}
	}
	switch {
	case len(want.Gates) > 0:
		if bound != "" || !strings.HasPrefix(message, "SchedulingGated") {
			return fmt.Sprintf("gated, and %q %q", bound, message)
		}
	case bound != "":
		for _, node := range want.Nodes {
			if node.Node == bound && node.Answer != placement.Usable {
				return fmt.Sprintf("was bound to %s, of which was said: %s %+v", bound, node.Answer, node.Reasons)
			}
		}
	case want.Best() == placement.Usable:
		return fmt.Sprintf("%s — and %v was said to be usable", message, want.With(placement.Usable))
	case !strings.HasPrefix(message, "Unschedulable: "+want.Message()):
		return fmt.Sprintf("\ngot  %s\nwant Unschedulable: %s", message, want.Message())
	}
	return ""
}

// gone deletes the pod at once.
func (s *scheduled) gone(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	now := int64(0)
	if err := s.client.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Errorf("%s: %v", pod.Name, err)
	}
}
