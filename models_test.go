package jr2_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/preflight"
)

// speaking is a Workflow with one Agent of each model.
func speaking(models ...string) string {
	var agents strings.Builder
	for i, model := range models {
		fmt.Fprintf(&agents, "a%d: agent({ model: %q, instructions: \"Work.\" }),\n", i, model)
	}
	return fmt.Sprintf(`import { jr2Setup, agent } from "@jr2/orchestrator";
export const machine = jr2Setup({ events: [], actors: { %s } }).createMachine({ id: "speak", initial: "done", states: { done: { type: "final" } } });
`, agents.String())
}

const localProvider = `harness: { provider: { id: "local", api: "openai-completions", baseUrl: "http://models.example.test/v1" }, env: [{ name: "HUSH", value: "hush-hush" }] }`

// modelsAnswer stands for the kubelet and the Harness image: pods that ask for a model end with the answer, by the model's name. It keeps the pods.
func (w *world) modelsAnswer(t *testing.T, namespace string, answers map[string]string) *[]corev1.Pod {
	t.Helper()
	var seen []corev1.Pod
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	pods := w.client.CoreV1().Pods(namespace)
	go func() {
		defer close(done)
		ended := map[string]bool{}
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "jr2.dev/model-probe"})
			if err != nil {
				return
			}
			for _, pod := range list.Items {
				if ended[pod.Name] || pod.Spec.NodeName == "" {
					continue
				}
				ended[pod.Name] = true
				seen = append(seen, pod)
				err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
					now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
					if err != nil {
						return err
					}
					now.Status.Phase = corev1.PodSucceeded
					now.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: names.HarnessContainer, Image: "i", State: corev1.ContainerState{
						Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", Message: answers[questionIn(&pod)]}}}}
					_, err = pods.UpdateStatus(ctx, now, metav1.UpdateOptions{})
					return err
				})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		}, 50*time.Millisecond)
	}()
	return &seen
}

func questionIn(pod *corev1.Pod) string {
	var question struct{ Model string }
	for _, env := range pod.Spec.Containers[0].Env {
		if env.Name == "JR2_MODEL_PROBE" {
			_ = json.Unmarshal([]byte(env.Value), &question)
		}
	}
	return question.Model
}

const usable = `{"status": 200, "tool": true}`

// TestModels: a converge asks each model once, a wrong one stops it before the Instance's objects, and nothing of the probes stays.
func TestModels(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	files := map[string]string{"jr2.config.ts": configOf(localProvider), "workflows/speak.ts": speaking("local/qwen", "local/other", "local/qwen", "google/gemini-x")}
	dir := folder(t, files)
	asked := w.modelsAnswer(t, "models", map[string]string{
		"qwen": usable, "other": `{"status": 404, "text": "model not found, hush-hush", "listStatus": 200, "listed": 1, "models": ["qwen"]}`,
	})
	wrong := w.up(t, dir, into("models"))
	wrong.tells(t, []string{
		"…", `model "local/qwen": asking http://models.example.test/v1 from a pod`, `model "local/other": asking http://models.example.test/v1 from a pod`,
		`model "local/qwen": answers, and calls a tool`, `model "local/other": model-unknown`,
		`warning: model "google/gemini-x" was not asked: a probe does not know how to ask its provider`,
		`error: model "local/other" is not known at http://models.example.test/v1 (HTTP 404: model not found, …) — name the model exactly as its endpoint does, after "local/": it lists qwen`,
	})
	if _, err := w.client.AppsV1().Deployments("models").Get(t.Context(), names.Orchestrator, metav1.GetOptions{}); err == nil {
		t.Error("the Orchestrator was applied")
	}
	for _, pod := range *asked {
		containers := append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...)
		if len(containers) != 2 || !strings.Contains(containers[0].Image, "envoy") || !strings.Contains(containers[1].Image, "jr2-harness") || pod.Spec.ActiveDeadlineSeconds == nil {
			t.Errorf("the pod has %+v", containers)
		}
	}
	w.noProbes(t, "models")

	files["workflows/speak.ts"] = speaking("local/qwen")
	right := w.up(t, folder(t, files), into("models"))
	must(t, right.err)
	right.tells(t, []string{"…", `model "local/qwen": answers, and calls a tool`, "…", "converged — …"})
	w.noProbes(t, "models")

	never := w.up(t, dir, into("models"), func(o *jr2.Options) { o.Models = jr2.ProbeNever })
	must(t, never.err)
	never.tells(t, []string{"…", "warning: models were not asked — as the options of this converge say: local/qwen, local/other, google/gemini-x", "…", "converged — …"})
}

// noProbes waits until what pods of probes read is gone after them.
func (w *world) noProbes(t *testing.T, namespace string) {
	t.Helper()
	core, marked := w.client.CoreV1(), metav1.ListOptions{LabelSelector: "jr2.dev/model-probe"}
	must(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		pods, err := core.Pods(namespace).List(ctx, marked)
		must(t, err)
		secrets, err := core.Secrets(namespace).List(ctx, marked)
		must(t, err)
		configs, err := core.ConfigMaps(namespace).List(ctx, marked)
		must(t, err)
		return len(pods.Items)+len(secrets.Items)+len(configs.Items) == 0, nil
	}))
}

// TestModelsOfAPlanAndACheck: neither writes, and a check does on request.
func TestModelsOfAPlanAndACheck(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": configOf(localProvider), "workflows/speak.ts": speaking("local/qwen")})
	unasked := func(findings []preflight.Finding, words string) {
		t.Helper()
		if !slices.ContainsFunc(findings, func(f preflight.Finding) bool {
			return f.Code == preflight.CodeModelsUnprobed && f.Severity == preflight.Note && strings.Contains(f.Message, words)
		}) {
			t.Errorf("%q is not in %+v", words, findings)
		}
	}
	unasked(w.plan(t, dir, into("models-checked")).plan.Findings, "a plan and a check write nothing, and a converge asks each by a pod: local/qwen")
	unasked(w.check(t, dir, preflight.Choice{}, into("models-checked")).Findings, "a converge asks each by a pod: local/qwen")
	probing := func(o *jr2.Options) { o.Models = jr2.ProbeInChecks }
	unasked(w.check(t, dir, preflight.Choice{}, into("models-checked"), probing).Findings, "there is no namespace yet to ask from: local/qwen")
	unasked(w.check(t, dir, preflight.Choice{}, into("models-checked"), func(o *jr2.Options) { o.Models = jr2.ProbeNever }).Findings, "as the options say: local/qwen")

	_, err := w.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "models-checked"}}, metav1.CreateOptions{})
	must(t, err)
	w.modelsAnswer(t, "models-checked", map[string]string{"qwen": `{"status": 200, "text": "I am ready."}`})
	report, err := jr2.Check(t.Context(), jr2.Options{Dir: dir, Config: w.Config(), Context: contextName, Namespace: "models-checked", Env: map[string]string{}, Models: jr2.ProbeInChecks}, preflight.Choice{})
	must(t, err)
	if refusing(report) != preflight.CodeModelNoTools {
		t.Errorf("got\n%s", report)
	}
	w.noProbes(t, "models-checked")
	// Who wants to hear nothing of models has none asked.
	report = w.check(t, dir, preflight.Choice{Skip: preflight.ModelCodes()}, into("models-checked"), probing)
	if refusing(report) != "" {
		t.Errorf("got\n%s", report)
	}
}

// TestCheckOfHeldSecrets: an Instance that holds a secret is looked at whole, though its certificates are not made yet.
func TestCheckOfHeldSecrets(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": configOf(`secrets: [{ name: "SEARCH_KEY", hosts: ["search.example.test"], value: "hush-hush" }]`), "workflows/ping.ts": ping})
	if report := w.check(t, dir, preflight.Choice{}, into("held-checked")); refusing(report) != "" {
		t.Errorf("got\n%s", report)
	}
}

// TestModelRights: an Instance whose Agents name models needs the right to make pods, and one without does not.
func TestModelRights(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	pods := func(dir string, change ...func(*jr2.Options)) (verbs []string) {
		for _, o := range w.roles(t, dir, "asker", append(change, into("model-rights"))...) {
			role, ok := o.(*rbacv1.Role)
			if !ok || role.Namespace != "model-rights" {
				continue
			}
			for _, rule := range role.Rules {
				if slices.Contains(rule.Resources, "pods") && len(rule.ResourceNames) == 0 {
					verbs = append(verbs, rule.Verbs...)
				}
			}
		}
		slices.Sort(verbs)
		return slices.Compact(verbs)
	}
	asks := folder(t, map[string]string{"jr2.config.ts": configOf(localProvider), "workflows/speak.ts": speaking("local/qwen")})
	silent := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	granted := pods(asks)
	for _, verb := range []string{"create", "delete", "list", "watch"} {
		if !slices.Contains(granted, verb) {
			t.Errorf("%s is not among %q", verb, granted)
		}
	}
	for name, verbs := range map[string][]string{"no models": pods(silent), "never": pods(asks, func(o *jr2.Options) { o.Models = jr2.ProbeNever })} {
		if slices.Contains(verbs, "delete") {
			t.Errorf("%s: got %q", name, verbs)
		}
	}
}
