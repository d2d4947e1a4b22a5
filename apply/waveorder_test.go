package apply_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

// webhookOf is a webhook of the namespace's own, that matches nothing, in the wave of the annotations.
func webhookOf(annotations ...string) string {
	return fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS, annotations: {%s}}
webhooks:
- name: judge.example.io
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
  namespaceSelector: {matchLabels: {no: such}}
  clientConfig: {service: {namespace: NS, name: judge}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]`, strings.Join(annotations, ", "))
}

// Whatever the waves say, a webhook comes after the Service that it calls and the workload behind that; and one that is registered already
// does not wait for its server again. Field case F15.
func TestF15AWebhookComesAfterWhatServesIt(t *testing.T) {
	t.Parallel()
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: judge, namespace: NS, annotations: {%s}}\nspec: {selector: {app: web}, ports: [{port: 443}]}"
	server := func(n int) string {
		return strings.Replace(onePod, "namespace: NS}", "namespace: NS, annotations: {"+inWave(n)+"}}", 1)
	}
	for name, docs := range map[string]string{
		"service":  join(webhookOf(inWave(-3)), fmt.Sprintf(service, inWave(2)), server(1)),
		"workload": join(webhookOf(inWave(-3)), fmt.Sprintf(service, ""), server(1)),
		"both":     join(webhookOf(inWave(0)), fmt.Sprintf(service, inWave(-2000000000)), server(2000000000)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			s := set(t, ns, docs)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var told story
			if _, err := apply.Apply(ctx, config(t), s, apply.Options{Events: told.tell}); err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(told.lines, ","); !strings.HasSuffix(text, "created "+ns) {
				t.Errorf("got %s", text)
			}
			if _, err := typed(t).AppsV1().Deployments(ns).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{FieldManager: "hand"}); err != nil {
				t.Fatal(err)
			}
			untilNobodyServes(ctx, t, ns)
			if out, err := apply.Apply(ctx, config(t), s, apply.Options{}); err != nil || out.Changed() != 0 {
				t.Errorf("an equal set: %v, %+v", err, out.Objects)
			}
		})
	}
}

// A webhook is not registered while nobody serves it, in one wave too, and the error says what was waited for. Field case F15.
func TestF15AWebhookIsNotRegisteredWithoutAServer(t *testing.T) {
	t.Parallel()
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: judge, namespace: NS}\nspec: {selector: {app: web}, ports: [{port: 443}]}"
	nowhere := strings.Replace(onePod, "containers:", "nodeSelector: {no: where}, containers:", 1)
	for name, docs := range map[string]string{
		"pending": join(webhookOf(), service, nowhere),
		"none":    join(webhookOf(), service),
		"other":   join(webhookOf(), service, strings.ReplaceAll(onePod, "app: web", "app: other")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			_, err := apply.Apply(ctx, config(t), set(t, ns, docs), apply.Options{Events: func(e apply.Event) {
				if w, ok := e.(apply.Waiting); ok && w.Ref.Kind == "ValidatingWebhookConfiguration" {
					leave()
				}
			}})
			if err == nil || !strings.Contains(err.Error(), "webhook judge.example.io calls the Service "+ns+"/judge, which has no ready endpoint") {
				t.Errorf("got %v", err)
			}
			_, err = typed(t).AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), ns, metav1.GetOptions{})
			if apply.Classify(err) != apply.ClassNotFound {
				t.Errorf("it is registered: %v", err)
			}
		})
	}
}

// What others stand on comes no later than they, whatever the waves say: the namespace of a hook, the definition of a hook's kind.
func TestGroundComesBeforeItsWave(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	group := ns + ".example.com"
	thing := fmt.Sprintf("apiVersion: %s/v1\nkind: Thing\nmetadata: {name: first, namespace: NS-b, annotations: {%s, %s}}", group, hooked("PreSync"), inWave(-7))
	s := set(t, ns, join(
		strings.Replace(crd(group, "Thing"), "metadata: {", "metadata: {annotations: {"+inWave(5)+"}, ", 1),
		fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-b, annotations: {%s}}", inWave(9)),
		thing, conf("api", "x")))
	if p := mustPlan(t, s, apply.Options{}); p.Count(apply.WillRun) != 1 || p.Err() != nil {
		t.Errorf("%s", p)
	}
	if out := mustApply(t, s, apply.Options{}); out.Count(apply.Ran) != 1 || out.Count(apply.Created) != 3 {
		t.Errorf("%+v", out.Objects)
	}
}

// A hook of a failure may be needed at once: what it stands on is there before anything can fail.
func TestGroundOfAHookOfAFailure(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	group := ns + ".example.com"
	cry := fmt.Sprintf("apiVersion: %s/v1\nkind: Thing\nmetadata: {name: cry, namespace: NS-b, annotations: {%s}}", group, hooked("SyncFail"))
	broken := strings.Replace(job("migrate", "registry.example/api:1", hooked("PreSync")), "restartPolicy: Never", "restartPolicy: Always", 1)
	s := set(t, ns, join(crd(group, "Thing"), "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-b}", cry, broken))
	out, err := apply.Apply(t.Context(), config(t), s, apply.Options{Retry: apply.Retry{Limit: 5 * time.Second}})
	if err == nil || strings.Contains(err.Error(), "SyncFail") || out.Count(apply.Ran) != 1 {
		t.Errorf("%v, %+v", err, out.Objects)
	}
}

// untilNobodyServes waits until the namespace's Services have no endpoint.
func untilNobodyServes(ctx context.Context, t *testing.T, ns string) {
	t.Helper()
	slices := typed(t).DiscoveryV1().EndpointSlices(ns)
	w, err := slices.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for {
		list, err := slices.List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, s := range list.Items {
			n += len(s.Endpoints)
		}
		if n == 0 {
			return
		}
		<-w.ResultChan()
	}
}
