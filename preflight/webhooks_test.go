package preflight_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"jr2.dev/jr2/preflight"
)

// A webhookCluster answers as an API server that holds these.
type webhookCluster struct {
	validating []string // webhooks of the configuration "policy", in YAML
	mutating   []string
	services   map[string]string // "namespace/name": spec in YAML
	ready      map[string]string // "namespace/name": "ready", "not ready", "unsaid"
	refuses    string            // the call that is refused
	asked      []string
}

func (c *webhookCluster) reader() *preflight.WebhookReader {
	return &preflight.WebhookReader{
		Validating: validatingLister{c}, Mutating: mutatingLister{c},
		Services:       func(namespace string) preflight.ServiceGetter { return serviceGetter{c, namespace} },
		EndpointSlices: func(namespace string) preflight.EndpointSliceLister { return sliceLister{c, namespace} },
	}
}

// webhooksOf reads those of a real cluster.
func webhooksOf(client kubernetes.Interface) *preflight.WebhookReader {
	return &preflight.WebhookReader{
		Validating: client.AdmissionregistrationV1().ValidatingWebhookConfigurations(),
		Mutating:   client.AdmissionregistrationV1().MutatingWebhookConfigurations(),
		Services:   func(namespace string) preflight.ServiceGetter { return client.CoreV1().Services(namespace) },
		EndpointSlices: func(namespace string) preflight.EndpointSliceLister {
			return client.DiscoveryV1().EndpointSlices(namespace)
		},
	}
}

func (c *webhookCluster) ask(call string) error {
	c.asked = append(c.asked, call)
	if c.refuses != "" && strings.HasPrefix(call, c.refuses) {
		return apierrors.NewForbidden(schema.GroupResource{Resource: c.refuses}, "", errors.New("no"))
	}
	return nil
}

type validatingLister struct{ *webhookCluster }

func (l validatingLister) List(context.Context, metav1.ListOptions) (*admissionregistrationv1.ValidatingWebhookConfigurationList, error) {
	list := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	if len(l.validating) > 0 {
		list.Items = []admissionregistrationv1.ValidatingWebhookConfiguration{{ObjectMeta: metav1.ObjectMeta{Name: "policy"}}}
	}
	for _, text := range l.validating {
		h := admissionregistrationv1.ValidatingWebhook{}
		if err := yaml.UnmarshalStrict([]byte(text), &h); err != nil {
			panic(err)
		}
		list.Items[0].Webhooks = append(list.Items[0].Webhooks, h)
	}
	return list, l.ask("validatingwebhookconfigurations")
}

type mutatingLister struct{ *webhookCluster }

func (l mutatingLister) List(context.Context, metav1.ListOptions) (*admissionregistrationv1.MutatingWebhookConfigurationList, error) {
	list := &admissionregistrationv1.MutatingWebhookConfigurationList{}
	if len(l.mutating) > 0 {
		list.Items = []admissionregistrationv1.MutatingWebhookConfiguration{{ObjectMeta: metav1.ObjectMeta{Name: "policy"}}}
	}
	for _, text := range l.mutating {
		h := admissionregistrationv1.MutatingWebhook{}
		if err := yaml.UnmarshalStrict([]byte(text), &h); err != nil {
			panic(err)
		}
		list.Items[0].Webhooks = append(list.Items[0].Webhooks, h)
	}
	return list, l.ask("mutatingwebhookconfigurations")
}

type serviceGetter struct {
	*webhookCluster
	namespace string
}

func (g serviceGetter) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Service, error) {
	if err := g.ask("services " + g.namespace + "/" + name); err != nil {
		return nil, err
	}
	text, ok := g.services[g.namespace+"/"+name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, name)
	}
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: name}}
	return s, yaml.UnmarshalStrict([]byte(text), &s.Spec)
}

type sliceLister struct {
	*webhookCluster
	namespace string
}

func (l sliceLister) List(_ context.Context, opts metav1.ListOptions) (*discoveryv1.EndpointSliceList, error) {
	name := strings.TrimPrefix(opts.LabelSelector, discoveryv1.LabelServiceName+"=")
	endpoint := discoveryv1.Endpoint{}
	yes, no := true, false
	switch l.ready[l.namespace+"/"+name] {
	case "ready":
		endpoint.Conditions.Ready = &yes
	case "not ready":
		endpoint.Conditions.Ready = &no
	case "unsaid":
	default:
		return &discoveryv1.EndpointSliceList{Items: []discoveryv1.EndpointSlice{{}}}, l.ask("endpointslices")
	}
	return &discoveryv1.EndpointSliceList{Items: []discoveryv1.EndpointSlice{{}, {Endpoints: []discoveryv1.Endpoint{endpoint}}}}, l.ask("endpointslices")
}

// hook is a webhook that calls the Service guard/judge, with more fields.
func hook(rule string, fields ...string) string {
	return fmt.Sprintf("{name: w.example.io, clientConfig: {service: {namespace: guard, name: judge}}, rules: [{operations: [CREATE], %s}], sideEffects: None, admissionReviewVersions: [v1]%s}",
		rule, strings.Join(append([]string{""}, fields...), ", "))
}

const (
	everything  = `apiGroups: ["*"], apiVersions: ["*"], resources: ["*"]`
	podsOnly    = `apiGroups: [""], apiVersions: [v1], resources: [pods]`
	judgeSpec   = `{selector: {app: judge}, ports: [{port: 443}]}`
	judgeOfASet = "---\n{apiVersion: v1, kind: Service, metadata: {namespace: guard, name: judge}, spec: " + judgeSpec + "}\n"
)

// judge is the workload behind the Service.
var judge = strings.NewReplacer("namespace: jarvis", "namespace: guard").Replace(workloadYAML("Deployment", "judge", "", `{containers: [{name: a, image: "`+pinned+`"}]}`))

// configured is a webhook configuration of the set.
func configured(kind, name, hook string) string {
	return fmt.Sprintf("---\n{apiVersion: admissionregistration.k8s.io/v1, kind: %sWebhookConfiguration, metadata: {name: %s}, webhooks: [%s]}\n", kind, name, hook)
}

// TestF15WebhooksWithoutAServer is case F15 before the first write: a webhook that fails closed, is asked about something that the set writes or makes, and
// has nobody who answers.
func TestF15WebhooksWithoutAServer(t *testing.T) {
	const unserved = "warn webhook-unserved ValidatingWebhookConfiguration policy: "
	secret := "---\n{apiVersion: v1, kind: Secret, metadata: {namespace: jarvis, name: s, labels: {team: a}}}\n"
	api := workloadYAML("Deployment", "api", "", `{containers: [{name: api, image: "`+pinned+`"}]}`)
	served := map[string]string{"guard/judge": judgeSpec}
	for name, test := range map[string]struct {
		text    string
		hook    string
		cluster webhookCluster
		want    []string
	}{
		"no endpoint": {text: secret, hook: hook(everything), cluster: webhookCluster{services: served},
			want: []string{unserved + "the webhook w.example.io fails closed and calls the Service guard/judge, which has no ready endpoint, so the server will refuse Secret jarvis/s — bring up the Service guard/judge, or delete ValidatingWebhookConfiguration policy if it is a leftover"}},
		"none that is ready":           {text: secret, hook: hook(everything), cluster: webhookCluster{services: served, ready: map[string]string{"guard/judge": "not ready"}}, want: []string{unserved + "has no ready endpoint"}},
		"one that is ready":            {text: secret, hook: hook(everything), cluster: webhookCluster{services: served, ready: map[string]string{"guard/judge": "ready"}}},
		"one that does not say":        {text: secret, hook: hook(everything), cluster: webhookCluster{services: served, ready: map[string]string{"guard/judge": "unsaid"}}},
		"no Service":                   {text: secret, hook: hook(everything), want: []string{unserved + "which does not exist, so the server will refuse Secret jarvis/s"}},
		"another port":                 {text: secret, hook: hook(everything), cluster: webhookCluster{services: map[string]string{"guard/judge": `{ports: [{port: 8443}]}`}, ready: map[string]string{"guard/judge": "ready"}}, want: []string{unserved + "which has no port 443"}},
		"a port of its own":            {text: secret, hook: strings.Replace(hook(everything), "name: judge", "name: judge, port: 8443", 1), cluster: webhookCluster{services: map[string]string{"guard/judge": `{ports: [{port: 8443}]}`}, ready: map[string]string{"guard/judge": "ready"}}},
		"endpoints elsewhere":          {text: secret, hook: hook(everything), cluster: webhookCluster{services: map[string]string{"guard/judge": `{type: ExternalName, externalName: judge.example.com}`}}},
		"ignored when it fails":        {text: secret, hook: hook(everything, "failurePolicy: Ignore")},
		"at a URL":                     {text: secret, hook: strings.Replace(hook(everything), "service: {namespace: guard, name: judge}", "url: https://judge.example.com", 1)},
		"the pods of a workload":       {text: api, hook: hook(podsOnly), want: []string{unserved + "the server will refuse the pods of Deployment jarvis/api —"}},
		"all of a workload":            {text: api, hook: hook(everything), want: []string{unserved + "the server will refuse Deployment jarvis/api, the pods of Deployment jarvis/api, the ReplicaSets of Deployment jarvis/api —"}},
		"another group":                {text: secret, hook: hook(`apiGroups: [apps], apiVersions: ["*"], resources: ["*"]`)},
		"a subresource":                {text: api, hook: hook(`apiGroups: [""], apiVersions: [v1], resources: [pods/exec, "pods/*"]`)},
		"everything, and subresources": {text: secret, hook: hook(`apiGroups: [""], apiVersions: [v1], resources: ["*/*"]`), want: []string{unserved}},
		"what is deleted alone":        {text: secret, hook: strings.Replace(hook(everything), "CREATE", "DELETE", 1)},
		"what has no namespace":        {text: secret, hook: hook(everything + ", scope: Cluster")},
		"another version":              {text: secret, hook: hook(`apiGroups: [""], apiVersions: [v2], resources: [secrets]`), want: []string{unserved}},
		"another version, exactly":     {text: secret, hook: hook(`apiGroups: [""], apiVersions: [v2], resources: [secrets]`, "matchPolicy: Exact")},
		"an irregular plural":          {text: "---\n{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {namespace: jarvis, name: net}}\n", hook: hook(`apiGroups: [networking.k8s.io], apiVersions: [v1], resources: [networkpolicies]`), want: []string{unserved + "NetworkPolicy jarvis/net"}},
		"a kind of the set": {text: "---\n{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: geese.ex.io}, spec: {group: ex.io, names: {kind: Goose, plural: geese}}}\n---\n{apiVersion: ex.io/v1, kind: Goose, metadata: {namespace: jarvis, name: g}}\n",
			hook: hook(`apiGroups: [ex.io], apiVersions: [v1], resources: [geese]`), want: []string{unserved + "the server will refuse Goose jarvis/g —"}},
		"by the object's labels":            {text: secret, hook: hook(everything, "objectSelector: {matchLabels: {team: a}}"), want: []string{unserved}},
		"not by the object's labels":        {text: secret, hook: hook(everything, "objectSelector: {matchLabels: {team: b}}")},
		"by the namespace's labels":         {text: secret, hook: hook(everything, "namespaceSelector: {matchLabels: {judged: \"yes\"}}"), want: []string{unserved}},
		"not by the namespace's labels":     {text: secret, hook: hook(everything, "namespaceSelector: {matchExpressions: [{key: judged, operator: DoesNotExist}]}")},
		"by the namespace's name":           {text: secret, hook: hook(everything, "namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [jarvis]}]}")},
		"by the labels of a Namespace":      {text: "---\n{apiVersion: v1, kind: Namespace, metadata: {name: new, labels: {judged: \"yes\"}}}\n", hook: hook(everything, "namespaceSelector: {matchLabels: {judged: \"yes\"}}"), want: []string{unserved + "Namespace new"}},
		"a namespace that arrives":          {text: "---\n{apiVersion: v1, kind: Namespace, metadata: {name: new, labels: {judged: \"no\"}}}\n---\n{apiVersion: v1, kind: Secret, metadata: {namespace: new, name: s}}\n", hook: hook(everything+", scope: Namespaced", "namespaceSelector: {matchLabels: {judged: \"no\"}}"), want: []string{unserved + "will refuse Secret new/s —"}},
		"what a condition may spare":        {text: secret, hook: hook(everything, `matchConditions: [{name: c, expression: "true"}]`), want: []string{"note webhook-unserved ValidatingWebhookConfiguration policy: Secret jarvis/s, unless its matchConditions spare them"}},
		"webhooks are asked about no other": {text: configured("Mutating", "other", hook(podsOnly, "failurePolicy: Ignore")), hook: hook(everything)},
		"its server comes with the set":     {text: judgeOfASet + judge, hook: hook(`apiGroups: [""], apiVersions: [v1], resources: [services]`), want: []string{unserved + "Service guard/judge until the set has brought it up"}},
		"a selector that is none":           {text: secret, hook: hook(everything, "namespaceSelector: {matchExpressions: [{key: a, operator: Perhaps}]}"), want: []string{"note not-looked-at webhooks: webhook w.example.io"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.cluster.validating = []string{test.hook}
			facts := preflight.SetFacts{Webhooks: test.cluster.reader(), Namespaces: map[string]*corev1.Namespace{"jarvis": {ObjectMeta: metav1.ObjectMeta{Name: "jarvis", Labels: map[string]string{"judged": "yes"}}}}}
			says(t, preflight.Webhooks(t.Context(), manifests(t, test.text), facts), test.want...)
		})
	}
}

// TestF15WebhooksThatBlockTheirServer is the second half of case F15: a webhook that is asked about the pods that answer for it.
func TestF15WebhooksThatBlockTheirServer(t *testing.T) {
	const blocks = "webhook-blocks-itself MutatingWebhookConfiguration policy: the webhook w.example.io fails closed and is asked about the pods of Deployment guard/judge, which serve it, so when none of them runs the server refuses each new one"
	spared := hook(podsOnly, "namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [guard]}]}")
	ready := webhookCluster{services: map[string]string{"guard/judge": judgeSpec}, ready: map[string]string{"guard/judge": "ready"}}
	living := func(hook string) webhookCluster {
		cluster := ready
		cluster.mutating = []string{hook}
		return cluster
	}
	for name, test := range map[string]struct {
		text    string
		cluster webhookCluster
		want    []string
	}{
		"it comes with its server": {text: configured("Mutating", "policy", hook(everything)) + judgeOfASet + judge,
			want: []string{"warn " + blocks + " — leave the namespace out by its namespaceSelector (matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [guard]}]), or set failurePolicy: Ignore"}},
		"it is there and its server is applied again": {text: judgeOfASet + judge, cluster: living(hook(podsOnly)), want: []string{"warn " + blocks}},
		"its Service is the cluster's":                {text: judge, cluster: living(hook(podsOnly)), want: []string{"warn " + blocks}},
		"it is asked about ReplicaSets": {text: configured("Validating", "policy", hook(`apiGroups: [apps], apiVersions: [v1], resources: [replicasets]`)) + judgeOfASet + judge,
			want: []string{"warn webhook-blocks-itself ValidatingWebhookConfiguration policy: is asked about the ReplicaSets of Deployment guard/judge, which serve it"}},
		"a condition may spare it":             {text: configured("Mutating", "policy", hook(podsOnly, `matchConditions: [{name: c, expression: "true"}]`)) + judgeOfASet + judge, want: []string{"note " + blocks + ", unless"}},
		"the namespace is left out":            {text: configured("Mutating", "policy", spared) + judgeOfASet + judge},
		"its pods are left out":                {text: configured("Mutating", "policy", hook(podsOnly, "objectSelector: {matchExpressions: [{key: app, operator: NotIn, values: [judge]}]}")) + judgeOfASet + judge},
		"it is ignored when it fails":          {text: configured("Mutating", "policy", hook(everything, "failurePolicy: Ignore")) + judgeOfASet + judge},
		"it is asked about Secrets":            {text: configured("Mutating", "policy", hook(`apiGroups: [""], apiVersions: [v1], resources: [secrets]`)) + judgeOfASet + judge},
		"the set changes what the cluster has": {text: configured("Mutating", "policy", spared) + judge, cluster: living(hook(podsOnly)), want: []string{"warn " + blocks}},
		"the pods of others":                   {text: configured("Mutating", "policy", hook(podsOnly)) + judgeOfASet + strings.ReplaceAll(judge, "app: judge", "app: other")},
		"nobody brings its Service":            {text: configured("Validating", "policy", hook(podsOnly)), want: []string{"warn webhook-unserved ValidatingWebhookConfiguration policy: which does not exist, so the server refuses whatever it is asked about once it is registered — bring the Service guard/judge with the set"}},
	} {
		t.Run(name, func(t *testing.T) {
			facts := preflight.SetFacts{Webhooks: test.cluster.reader(), Namespaces: map[string]*corev1.Namespace{}}
			says(t, preflight.Webhooks(t.Context(), manifests(t, test.text), facts), test.want...)
		})
	}
}

// TestWebhooksThatNobodyCouldRead: missing rights are a Note, and what could be read is told; each Service is read once, and only where it matters.
func TestWebhooksThatNobodyCouldRead(t *testing.T) {
	secrets := manifests(t, "---\n{apiVersion: v1, kind: Secret, metadata: {namespace: jarvis, name: s}}\n")
	for refused, want := range map[string][]string{
		"mutatingwebhookconfigurations":   {"note not-looked-at webhooks: mutatingwebhookconfigurations is forbidden"},
		"validatingwebhookconfigurations": {"note not-looked-at webhooks: validatingwebhookconfigurations is forbidden", "warn webhook-unserved MutatingWebhookConfiguration policy: does not exist"},
		"services":                        {"note not-looked-at MutatingWebhookConfiguration policy: nobody looked whether the Service guard/judge", "note not-looked-at ValidatingWebhookConfiguration policy: can be reached: services is forbidden"},
		"":                                {"warn webhook-unserved MutatingWebhookConfiguration policy: does not exist", "warn webhook-unserved ValidatingWebhookConfiguration policy: does not exist"},
	} {
		cluster := webhookCluster{refuses: refused, validating: []string{hook(everything)}, mutating: []string{hook(everything)}}
		says(t, preflight.Webhooks(t.Context(), secrets, preflight.SetFacts{Webhooks: cluster.reader(), Namespaces: map[string]*corev1.Namespace{}}), want...)
		if n := strings.Count(strings.Join(cluster.asked, ","), "services guard/judge"); n > 1 {
			t.Errorf("%d reads of one Service", n)
		}
	}
	cluster := webhookCluster{refuses: "endpointslices", services: map[string]string{"guard/judge": judgeSpec}, validating: []string{hook(everything)}}
	says(t, preflight.Webhooks(t.Context(), secrets, preflight.SetFacts{Webhooks: cluster.reader()}), "note not-looked-at ValidatingWebhookConfiguration policy: endpointslices is forbidden")

	// Without the namespaces only their names are known.
	labeled := webhookCluster{validating: []string{hook(everything, "namespaceSelector: {matchLabels: {judged: \"yes\"}}")}}
	says(t, preflight.Webhooks(t.Context(), secrets, preflight.SetFacts{Webhooks: labeled.reader()}), "note not-looked-at namespaces: w.example.io")
	named := webhookCluster{validating: []string{hook(everything, "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: jarvis}}")}}
	says(t, preflight.Webhooks(t.Context(), secrets, preflight.SetFacts{Webhooks: named.reader()}), "warn webhook-unserved ValidatingWebhookConfiguration policy: Secret jarvis/s")

	says(t, preflight.Webhooks(t.Context(), secrets, preflight.SetFacts{}))
	says(t, preflight.Webhooks(t.Context(), manifests(t, judge), preflight.SetFacts{}), "note not-looked-at webhooks: were not read")
	quiet := webhookCluster{validating: []string{hook(podsOnly)}}
	says(t, preflight.Webhooks(t.Context(), secrets, preflight.SetFacts{Webhooks: quiet.reader()}))
	if len(quiet.asked) != 2 {
		t.Errorf("a webhook that is asked about nothing of the set cost %q", quiet.asked)
	}
}
