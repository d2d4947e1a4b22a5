package preflight_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/holder"
	"jr2.dev/jr2/preflight"
)

// TestModelProbes asks a real API server and scheduler, and models of a server of the test's. The node is simulated, so a kubelet of the test's own
// runs the script of the pods: by the node of this machine.
func TestModelProbes(t *testing.T) {
	t.Parallel()
	cluster := devcluster.ForTest(t, devcluster.Options{
		Nodes: []devcluster.Node{{Name: "n1"}}, Audit: true,
		Users: []devcluster.User{{Name: "reader", ClusterRules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}}}}},
	})
	config := cluster.Config()
	config.QPS = -1
	world := checkWorld{cluster: cluster, client: clientFor(t, config)}
	for name, test := range map[string]func(*testing.T, checkWorld){
		"answers": testModelAnswers, "wires": testModelWires, "pods that do not run": testModelPods, "leftovers": testModelLeftovers, "cut off": testModelCutOff,
		"no rights": testModelRights, "killed": testModelKilled, "audited": testModelsAudited, "node checks": testNodesAudited,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, world)
		})
	}
}

// testModelAnswers: each way in which a model can answer, and not answer.
func testModelAnswers(t *testing.T, w checkWorld) {
	probes := w.probes(t, "answers")
	w.runsProbes(t, probes.Namespace)
	server := startModelServer(t)
	tests := []struct {
		model    preflight.Model
		code     string
		severity preflight.Severity
		words    []string
	}{
		{model: own(server.URL, "good")},
		{own(server.URL, "godo"), preflight.CodeModelUnknown, preflight.Refuse, []string{"HTTP 404", `"local/"`, "it lists good, no-tools, busy"}},
		{own(server.URL+"/unlisted", "godo"), preflight.CodeModelUnknown, preflight.Refuse, []string{`name the model exactly as its endpoint does`}},
		{own(server.URL, "no-tools"), preflight.CodeModelNoTools, preflight.Refuse, []string{"(I am ready)", "turn tool calls on"}},
		{own(server.URL, "denied"), preflight.CodeModelDenied, preflight.Refuse, []string{"HTTP 401", "Incorrect API key provided: ….", "harness.provider.apiKey"}},
		{own(server.URL, "busy"), preflight.CodeModelBusy, preflight.Warn, []string{"HTTP 429", "come back later"}},
		{own(server.URL, "broken"), preflight.CodeModelRefused, preflight.Refuse, []string{"HTTP 400", "max_tokens is not allowed"}},
		{own(closed(t), "good"), preflight.CodeModelUnreachable, preflight.Refuse, []string{"ECONNREFUSED", "127.0.0.1 is the pod itself there. The pods must reach the model."}},
		{own("http://model.invalid/v1", "good"), preflight.CodeModelUnreachable, preflight.Refuse, []string{"model.invalid", "(fetch failed", "— The pods must reach the model."}},
	}
	var models []preflight.Model
	var told, want []string
	for _, test := range tests {
		models, want = append(models, test.model), append(want, test.model.Name+" "+test.code)
	}
	var began []string
	probes.Began = func(m preflight.Model) { began = append(began, m.Name) }
	probes.Ended = func(m preflight.Model, found *preflight.Finding) {
		code := ""
		if found != nil {
			code = found.Code
		}
		told = append(told, m.Name+" "+code)
	}
	findings, err := probes.Models(t.Context(), models)
	must(t, err)
	if !slices.Equal(told, want) || len(began) != len(tests) || len(findings) != len(tests)-1 {
		t.Fatalf("told %q, began %q, found %+v", told, began, findings)
	}
	for i, test := range tests[1:] {
		f := findings[i]
		t.Log(f.Message)
		if f.Severity != test.severity || f.Code != test.code || f.Object != "model "+test.model.Name || f.Fix == "" {
			t.Errorf("got %+v", f)
		}
		for _, words := range test.words {
			if !strings.Contains(f.Message, words) {
				t.Errorf("%q is not in %q", words, f.Message)
			}
		}
	}
	if !server.saw("GET /models  jr2-held-JR2_PROVIDER_API_KEY") || !server.saw("POST /chat/completions good jr2-held-JR2_PROVIDER_API_KEY") {
		t.Errorf("the endpoint saw %q", server.seen)
	}
	w.nothingLeft(t, probes.Namespace)
}

// testModelWires: the protocols, and a catalog's provider, which only warns.
func testModelWires(t *testing.T, w checkWorld) {
	probes := w.probes(t, "wires", func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "ANTHROPIC_API_KEY", Value: "jr2-held-ANTHROPIC_API_KEY"}}
	})
	w.runsProbes(t, probes.Namespace)
	server := startModelServer(t)
	anthropic := preflight.Model{Name: "anthropic/good", ID: "good", API: "anthropic-messages", BaseURL: server.URL + "/", Keys: []string{"ANTHROPIC_API_KEY"}}
	responses := preflight.Model{Name: "openai/good", ID: "good", API: "openai-responses", BaseURL: server.URL}
	denied := preflight.Model{Name: "openai/denied", ID: "denied", API: "openai-completions", BaseURL: server.URL, Keys: []string{"OPENAI_API_KEY"}}
	findings, err := probes.Models(t.Context(), []preflight.Model{anthropic, responses, denied})
	must(t, err)
	if len(findings) != 1 || findings[0].Severity != preflight.Warn || !strings.Contains(findings[0].Fix, "OPENAI_API_KEY") {
		t.Errorf("got %+v", findings)
	}
	if !server.saw("POST /v1/messages good jr2-held-ANTHROPIC_API_KEY") || !server.saw("POST /responses good") {
		t.Errorf("the endpoint saw %q", server.seen)
	}
}

// testModelPods: a pod that the cluster would not run says nothing about the model, and the cluster's words are told.
func testModelPods(t *testing.T, w checkWorld) {
	model := own("http://127.0.0.1:1", "good")
	full := w.probes(t, "full", func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "not-there-yet" })
	_, err := w.client.CoreV1().ResourceQuotas("full").Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "the quota counts", func() bool {
		quota, err := w.client.CoreV1().ResourceQuotas("full").Get(t.Context(), "team", metav1.GetOptions{})
		must(t, err)
		return len(quota.Status.Hard) > 0
	})
	tests := map[string]preflight.ModelProbes{
		"exceeded quota: team": full,
		"node affinity/selector": w.probes(t, "nowhere-to-run", func(pod *corev1.Pod) {
			pod.Spec.NodeSelector = map[string]string{"no": "node"}
		}),
		"ImagePullBackOff: Back-off pulling image": w.probes(t, "no-image", func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Image = devcluster.TroubleImage(devcluster.ImagePullBackOff)
		}),
		"its pod failed: exit code 1": w.probes(t, "fails", func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Image = devcluster.TroubleImage(devcluster.Failed)
		}),
	}
	for words, probes := range tests {
		findings, err := probes.Models(t.Context(), []preflight.Model{model})
		if err != nil || len(findings) != 1 {
			t.Errorf("%s: got %+v, %v", words, findings, err)
			continue
		}
		f := findings[0]
		t.Log(f.Message)
		if f.Severity != preflight.Warn || f.Code != preflight.CodeModelsUnprobed || !strings.Contains(f.Message, words) {
			t.Errorf("%s: got %+v", words, f)
		}
		w.nothingLeft(t, probes.Namespace)
	}
	slow := w.probes(t, "slow")
	slow.Timeout = 2 * time.Second
	findings, err := slow.Models(t.Context(), []preflight.Model{model})
	if err != nil || len(findings) != 1 || !strings.Contains(findings[0].Message, "its pod did not end within 2s") {
		t.Errorf("got %+v, %v", findings, err)
	}
	w.nothingLeft(t, "slow")
}

// testModelLeftovers: what a killed run left goes with the next, and what a living one has stays.
func testModelLeftovers(t *testing.T, w checkWorld) {
	probes := w.probes(t, "model-leftovers")
	self := holder.Self()
	dead := self[:strings.LastIndex(self, ":")+1] + "1)" // this process id, and another process
	if !holder.Gone(dead) {
		devcluster.Missing(t, "this machine does not tell processes apart")
	}
	for name, holder := range map[string]string{"dead": dead, "living": self} {
		pod, err := w.client.CoreV1().Pods(probes.Namespace).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"jr2.dev/model-probe": "x"}, Annotations: map[string]string{"jr2.dev/model-probe-holder": holder}},
			Spec:       corev1.PodSpec{NodeSelector: map[string]string{"no": "node"}, Containers: []corev1.Container{{Name: "c", Image: "i", SecurityContext: restricted()}}},
		}, metav1.CreateOptions{})
		must(t, err)
		_, err = w.client.CoreV1().Secrets(probes.Namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: name, UID: pod.UID}}}}, metav1.CreateOptions{})
		must(t, err)
	}
	probes.Timeout = time.Second
	_, err := probes.Models(t.Context(), []preflight.Model{own("http://127.0.0.1:1", "good")})
	must(t, err)
	pods, err := w.client.CoreV1().Pods(probes.Namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	left := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	if len(left) != 1 || left[0].Name != "living" {
		t.Errorf("%d pods are left", len(left))
	}
	eventually(t, "the Secret of the dead goes", func() bool {
		_, err := w.client.CoreV1().Secrets(probes.Namespace).Get(t.Context(), "dead", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if _, err := w.client.CoreV1().Secrets(probes.Namespace).Get(t.Context(), "living", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// testModelCutOff: nobody ends the pods; the context does. Nothing stays.
func testModelCutOff(t *testing.T, w checkWorld) {
	probes := w.probes(t, "model-cut-off")
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := fmt.Errorf("enough")
	go func() {
		wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) { //nolint:errcheck // the test's context ended
			secrets, err := w.client.CoreV1().Secrets(probes.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "jr2.dev/model-probe"})
			return err == nil && len(secrets.Items) == 2, nil
		})
		cancel(enough)
	}()
	findings, err := probes.Models(ctx, []preflight.Model{own("http://127.0.0.1:1", "a"), own("http://127.0.0.1:1", "b")})
	if !errors.Is(err, enough) && !errors.Is(err, context.Canceled) || len(findings) > 0 {
		t.Errorf("got %v, %v", findings, err)
	}
	w.nothingLeft(t, probes.Namespace)
}

// testModelRights: who may not make pods has asked nothing, and that is no word about the model.
func testModelRights(t *testing.T, w checkWorld) {
	probes := w.probes(t, "model-rights")
	config, err := w.cluster.ConfigFor("reader")
	must(t, err)
	probes.Client = clientFor(t, config).CoreV1()
	findings, err := probes.Models(t.Context(), []preflight.Model{own("http://127.0.0.1:1", "a")})
	if !apierrors.IsForbidden(err) || findings != nil {
		t.Errorf("got %v, %v", findings, err)
	}
}
