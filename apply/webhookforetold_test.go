package apply_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/preflight"
)

// Field case F15: what preflight says of a webhook without a server is what the API server does, to objects, to the pods of a workload, and to the
// pods of the server itself.
func TestF15PreflightForetellsWhatAWebhookRefuses(t *testing.T) {
	t.Parallel()
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: judge, namespace: NS}\nspec: {selector: {app: web}, ports: [{port: 443}]}"
	const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: plain, namespace: NS}"
	closed := func(resource, more string) string {
		return strings.NewReplacer("failurePolicy: Ignore", "failurePolicy: Fail", "namespaceSelector: {matchLabels: {no: such}}", "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}"+more, "[pods]", "["+resource+"]").Replace(webhookOf())
	}
	for name, tt := range map[string]struct {
		hook, doc, code string
		refused         bool
	}{
		"an object":             {closed("serviceaccounts", ""), account, preflight.CodeWebhookUnserved, true},
		"another resource":      {closed("secrets", ""), account, "", false},
		"by its labels":         {closed("serviceaccounts", "\n  objectSelector: {matchLabels: {judged: really}}"), account, "", false},
		"an equivalent version": {strings.NewReplacer(`apiGroups: [""]`, "apiGroups: [autoscaling]", "apiVersions: [v1], operations", "apiVersions: [v2], operations").Replace(closed("horizontalpodautoscalers", "")), strings.NewReplacer("autoscaling/v2", "autoscaling/v1", ", metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]", "").Replace(strings.TrimPrefix(scaler, "\n---\n")), preflight.CodeWebhookUnserved, true},
		"the pods of a server":  {closed("pods", ""), onePod, preflight.CodeWebhookBlocksItself, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			mustApply(t, mustSet(t, "server", ns, service), apply.Options{})
			hook := mustSet(t, "hook", ns, tt.hook)
			mustApply(t, hook, apply.Options{})
			s := set(t, ns, tt.doc)
			client := typed(t)
			namespace, err := client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			facts := preflight.SetFacts{Namespaces: map[string]*corev1.Namespace{ns: namespace}, Webhooks: &preflight.WebhookReader{
				Validating: client.AdmissionregistrationV1().ValidatingWebhookConfigurations(),
				Mutating:   client.AdmissionregistrationV1().MutatingWebhookConfigurations(),
				Services:   func(namespace string) preflight.ServiceGetter { return client.CoreV1().Services(namespace) },
				EndpointSlices: func(namespace string) preflight.EndpointSliceLister {
					return client.DiscoveryV1().EndpointSlices(namespace)
				},
			}}
			foretold := false
			for _, f := range preflight.Webhooks(t.Context(), s.Objects, facts) {
				if !strings.Contains(f.Object, ns) { // another test's
					continue
				}
				foretold = foretold || f.Code == tt.code
				if tt.code == "" {
					t.Errorf("%+v", f)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			probe := s
			if tt.code == preflight.CodeWebhookBlocksItself {
				probe = set(t, ns, "apiVersion: v1\nkind: Pod\nmetadata: {name: probe, namespace: NS}\nspec: {"+plainContainer+"}")
			}
			for tt.refused && ctx.Err() == nil { // a webhook counts a moment after it is registered
				if p, err := apply.MakePlan(ctx, config(t), probe, apply.Options{Retry: apply.Retry{Limit: time.Millisecond}}); err != nil || apply.Classify(p.Err()) == apply.ClassWebhookUnready {
					break
				}
			}
			_, err = apply.Apply(ctx, config(t), s, apply.Options{Retry: apply.Retry{Limit: time.Millisecond}, Wait: true, Ready: apply.WaitOptions{Timeout: 2 * time.Second}})
			refused := err != nil && strings.Contains(err.Error(), "failed calling webhook")
			if foretold != (tt.code != "") || refused != tt.refused {
				t.Errorf("foretold %t, refused %t: %v", foretold, refused, err)
			}
			removed, err := apply.Remove(t.Context(), config(t), apply.RemoveOptions{}, apply.RefOf(hook.Objects[0]))
			if err != nil || removed[0].Action != apply.Pruned {
				t.Errorf("%+v, %v", removed, err)
			}
		})
	}
}
