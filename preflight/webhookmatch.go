package preflight

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A webhook that fails closed and calls a Service.
type webhook struct {
	config      string // "ValidatingWebhookConfiguration policy"
	name        string
	ofSet       bool // it comes with the set, and the cluster has it not yet
	service     admissionregistrationv1.ServiceReference
	rules       []admissionregistrationv1.RuleWithOperations
	exact       bool // a rule about one version of a group is about no other
	conditional bool
	namespaces  labels.Selector
	objects     labels.Selector
}

// port that is called; the API's default is 443.
func (w *webhook) port() int32 {
	if w.service.Port != nil {
		return *w.service.Port
	}
	return 443
}

// closedWebhooks lists those of the cluster, in the order of their names, and those that the set adds. One of the cluster that the set changes is looked
// at as the cluster has it: that judges what comes before the change.
func (l *setLook) closedWebhooks(ctx context.Context) ([]*webhook, []Finding) {
	var all []*webhook
	var findings []Finding
	live := map[string]bool{}
	switch {
	case l.facts.Webhooks == nil && len(l.workloads) == 0: // too little to say so of each list of ConfigMaps
	case l.facts.Webhooks == nil:
		findings = append(findings, notLooked("webhooks", "the webhooks of the cluster were not read, so nobody looked whether their servers can be asked about the set"))
	default:
		read, err := l.facts.Webhooks.closed(ctx)
		if err != nil {
			findings = append(findings, notLooked("webhooks", fmt.Sprintf("nobody looked whether the servers of the cluster's webhooks can be asked about the set: %v", err)))
		}
		for _, w := range read {
			live[w.config] = true
		}
		all = read
	}
	for _, o := range l.objs {
		if o.GroupVersionKind().Group != admissionregistrationv1.GroupName || live[objectOf(o)] {
			continue
		}
		ours, err := webhooksOf(o)
		if err != nil {
			findings = append(findings, notLooked(objectOf(o), fmt.Sprintf("%s cannot be read as what its kind says: %v", objectOf(o), err)))
		}
		for _, w := range ours {
			w.ofSet = true
		}
		all = append(all, ours...)
	}
	return all, findings
}

// webhooksOf reads those of an object that fail closed and call a Service; none for other kinds.
func webhooksOf(o *unstructured.Unstructured) ([]*webhook, error) {
	switch o.GetKind() {
	case "ValidatingWebhookConfiguration":
		c := admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &c); err != nil {
			return nil, err
		}
		return validating(&c)
	case "MutatingWebhookConfiguration":
		c := admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &c); err != nil {
			return nil, err
		}
		return mutating(&c)
	}
	return nil, nil
}

func validating(c *admissionregistrationv1.ValidatingWebhookConfiguration) ([]*webhook, error) {
	return closedOnes("ValidatingWebhookConfiguration "+c.Name, c.Webhooks)
}

func mutating(c *admissionregistrationv1.MutatingWebhookConfiguration) ([]*webhook, error) {
	hooks := make([]admissionregistrationv1.ValidatingWebhook, len(c.Webhooks))
	for i, h := range c.Webhooks { // a mutating one has the same fields, and one more that matters to nobody here
		hooks[i] = admissionregistrationv1.ValidatingWebhook{
			Name: h.Name, FailurePolicy: h.FailurePolicy, ClientConfig: h.ClientConfig, Rules: h.Rules, MatchPolicy: h.MatchPolicy,
			NamespaceSelector: h.NamespaceSelector, ObjectSelector: h.ObjectSelector, MatchConditions: h.MatchConditions,
		}
	}
	return closedOnes("MutatingWebhookConfiguration "+c.Name, hooks)
}

func closedOnes(object string, hooks []admissionregistrationv1.ValidatingWebhook) (all []*webhook, err error) {
	for i := range hooks {
		w, err := closed(object, &hooks[i])
		if err != nil {
			return nil, err
		}
		if w != nil {
			all = append(all, w)
		}
	}
	return all, nil
}

// closed is nil for a webhook that is ignored when it fails, or that is at a URL. What is not stated is the API's default: Fail, Equivalent, and
// selectors that select everything.
func closed(config string, h *admissionregistrationv1.ValidatingWebhook) (w *webhook, err error) {
	if h.ClientConfig.Service == nil || h.FailurePolicy != nil && *h.FailurePolicy != admissionregistrationv1.Fail {
		return nil, nil
	}
	w = &webhook{
		config: config, name: h.Name, service: *h.ClientConfig.Service, rules: h.Rules, conditional: len(h.MatchConditions) > 0,
		exact: h.MatchPolicy != nil && *h.MatchPolicy == admissionregistrationv1.Exact,
	}
	if w.namespaces, err = orEverything(h.NamespaceSelector); err == nil {
		w.objects, err = orEverything(h.ObjectSelector)
	}
	if err != nil {
		return nil, fmt.Errorf("webhook %s: %w", h.Name, err)
	}
	return w, nil
}

// orEverything is everything when there is none: of a webhook, as its defaults say.
func orEverything(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}

// A target is what a webhook may be asked about: an object of the set, or what a workload of it makes.
type target struct {
	what      string // `Secret demo/a`, `the pods of Deployment demo/api`
	resource  schema.GroupVersionResource
	namespace string // "" for a resource without one
	labels    labels.Set
	home      *namespaceLabels // see labelsOf
}

// targets lists what webhooks may be asked about. The server never asks them about webhooks and admission policies.
func (l *setLook) targets() []target {
	var all []target
	plurals := map[schema.GroupKind]string{}
	for _, o := range l.objs {
		if o.GetKind() == "CustomResourceDefinition" {
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")          //nolint:errcheck // the server refuses it in its own words
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")   //nolint:errcheck // as above
			name, _, _ := unstructured.NestedString(o.Object, "spec", "names", "plural") //nolint:errcheck // as above
			plurals[schema.GroupKind{Group: group, Kind: kind}] = name
		}
	}
	for _, o := range l.objs {
		gvk := o.GroupVersionKind()
		if gvk.Group == admissionregistrationv1.GroupName {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		if plural := plurals[gvk.GroupKind()]; plural != "" {
			resource.Resource = plural
		}
		if gvk.Group == "" && gvk.Kind == "Endpoints" { // the one kind that is a plural
			resource.Resource = "endpoints"
		}
		all = append(all, target{what: objectOf(o), resource: resource, namespace: o.GetNamespace(), labels: o.GetLabels()})
	}
	for _, w := range l.workloads {
		if w.kind != "Pod" {
			all = append(all, madeBy(w)...)
		}
	}
	for i := range all {
		all[i].home = l.labelsOf(all[i])
	}
	return all
}

// madeBy lists what the controllers make of a workload, with the pods first.
func madeBy(w *workload) []target {
	made := func(what, group, resource string) target {
		return target{what: what + w.object, resource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, namespace: w.namespace, labels: w.pod.Labels}
	}
	all := []target{made("the pods of ", "", "pods")}
	switch w.kind {
	case "Deployment":
		all = append(all, made("the ReplicaSets of ", "apps", "replicasets"))
	case "CronJob":
		all = append(all, made("the Jobs of ", "batch", "jobs"))
	}
	return all
}

// labelsOf are the labels by which a webhook's namespaceSelector judges a target: those of its namespace, once the set is there, and of a Namespace
// its own. nil means that the target has no namespace; the label of the name is always known, others only when the namespace is.
func (l *setLook) labelsOf(t target) *namespaceLabels {
	name, own := t.namespace, labels.Set(nil)
	if t.resource.Group == "" && t.resource.Resource == "namespaces" {
		name, own = strings.TrimPrefix(t.what, "Namespace "), t.labels
	}
	if name == "" {
		return nil
	}
	found := &namespaceLabels{set: labels.Set{}, known: l.facts.Namespaces != nil}
	if live := l.facts.Namespaces[name]; live != nil {
		maps.Copy(found.set, live.Labels)
	}
	if arriving := l.namespace(name); arriving != nil {
		maps.Copy(found.set, arriving.Labels)
	}
	maps.Copy(found.set, own)
	found.set[corev1.LabelMetadataName] = name
	return found
}

type namespaceLabels struct {
	set   labels.Set
	known bool
}

// asks says whether the server asks the webhook about a target when that is made or changed, and whether that could be told.
func (w *webhook) asks(t target) (asks, known bool) {
	home := t.home
	if !w.objects.Matches(t.labels) || !slices.ContainsFunc(w.rules, func(r admissionregistrationv1.RuleWithOperations) bool { return w.ruled(r, t) }) {
		return false, true
	}
	if home == nil {
		return true, true
	}
	if !home.known {
		requirements, _ := w.namespaces.Requirements()
		for _, r := range requirements {
			if _, ok := home.set[r.Key()]; !ok {
				return false, false
			}
		}
	}
	return w.namespaces.Matches(home.set), true
}

// ruled says whether one rule is about the target.
func (w *webhook) ruled(r admissionregistrationv1.RuleWithOperations, t target) bool {
	has := func(list []string, words ...string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return s == "*" || slices.Contains(words, s) })
	}
	written := slices.ContainsFunc(r.Operations, func(o admissionregistrationv1.OperationType) bool {
		return o == admissionregistrationv1.OperationAll || o == admissionregistrationv1.Create || o == admissionregistrationv1.Update
	})
	clustered := t.namespace == ""
	if r.Scope != nil && (*r.Scope == admissionregistrationv1.ClusterScope && !clustered || *r.Scope == admissionregistrationv1.NamespacedScope && clustered) {
		return false
	}
	return written && has(r.APIGroups, t.resource.Group) && (!w.exact || has(r.APIVersions, t.resource.Version)) && has(r.Resources, t.resource.Resource, "*/*")
}
