package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// Stable codes of the findings about webhooks.
const (
	CodeWebhookUnserved     = "webhook-unserved"
	CodeWebhookBlocksItself = "webhook-blocks-itself"
)

// Webhooks warns of webhooks that fail closed and would refuse what the set writes, or what its workloads make, for want of their server: one of the
// cluster that is asked about an object of the set, or about its pods, while its Service is not there or has no ready endpoint; one of the
// set whose Service neither brings; and one, of the cluster or of the set, that is asked about the pods that serve it, because then
// nothing can bring those back once they are gone (source: Kubernetes documentation, "Admission webhook good practices", "Prevent
// self-triggering"). A denial is the webhook's own and is not foretold.
//
// Matching is the API server's: operations, groups, versions, resources, scope and both selectors. Conditions in CEL are not evaluated; a
// webhook that has some may be asked less often, and its finding is a Note. Webhooks at a URL are not looked at, and neither are those that
// are ignored when they fail.
func Webhooks(ctx context.Context, objs []*unstructured.Unstructured, facts SetFacts) []Finding {
	l := lookAt(objs, facts)
	return append(l.unread, l.webhooks(ctx)...)
}

func (l *setLook) webhooks(ctx context.Context) []Finding {
	if len(l.objs) == 0 {
		return nil
	}
	all, findings := l.closedWebhooks(ctx)
	servers := serverReader{ctx: ctx, client: l.facts.Webhooks, known: map[string]serving{}}
	targets, unlabeled := l.targets(), []string{}
	for _, w := range all {
		var asked []string
		unknown := false
		for _, t := range targets {
			matches, known := w.asks(t)
			if unknown = unknown || !known; matches {
				asked = append(asked, t.what)
			}
		}
		if unknown {
			unlabeled = append(unlabeled, w.name)
		}
		home := slices.ContainsFunc(l.workloads, func(work *workload) bool { return work.namespace == w.service.Namespace })
		if len(asked) == 0 && !w.ofSet && !home {
			continue // it has nothing to do with the set
		}
		found := l.servedBy(&servers, w)
		findings = append(findings, w.unserved(asked, found)...)
		findings = append(findings, l.blocksItself(w, found)...)
	}
	if len(unlabeled) > 0 {
		findings = append(findings, notLooked("namespaces", fmt.Sprintf("the namespaces were not read, so nobody looked whether some webhooks are asked, which select by their labels: %s", few(unlabeled))))
	}
	return findings
}

// A server of a webhook, as it is before the first write.
type serving struct {
	service *corev1.Service // of the set where that brings it, else of the cluster; nil when there is none
	ofSet   bool
	// lacks says why a call would fail now; "" when it would arrive, or when nobody can say.
	lacks string
	err   error
}

// servedBy looks for the server in the cluster, and puts the Service of the set in its place, which will be there.
func (l *setLook) servedBy(servers *serverReader, w *webhook) serving {
	found := servers.read(w.service.Namespace, w.service.Name, w.port())
	if o := l.find("", "Service", w.service.Namespace, w.service.Name); o != nil {
		if service := serviceOf(o); service != nil {
			found.service, found.ofSet = service, true
		}
	}
	return found
}

func (w *webhook) unserved(asked []string, found serving) []Finding {
	where := fmt.Sprintf("the Service %s/%s", w.service.Namespace, w.service.Name)
	switch {
	case w.ofSet && found.ofSet: // it is registered when its Service has an endpoint
		return nil
	case !w.ofSet && len(asked) == 0:
		return nil
	case found.err != nil:
		return []Finding{notLooked(w.config, fmt.Sprintf("nobody looked whether %s, which the webhook %s of %s calls, can be reached: %v", where, w.name, w.config, found.err))}
	case found.lacks == "":
		return nil
	}
	advice := "bring up " + where + ", or delete " + w.config + " if it is a leftover"
	finding := Finding{Severity: Warn, Code: CodeWebhookUnserved, Object: w.config, Fix: advice}
	if kind, name, _ := strings.Cut(w.config, " "); found.lacks == lacksService { // what calls a Service that is gone is most likely left over
		finding.Fix = "kubectl delete " + strings.ToLower(kind) + " " + name
	}
	about := "the server will refuse " + few(asked)
	if w.ofSet {
		about = "the server refuses whatever it is asked about once it is registered"
		advice = "bring " + where + " with the set, or leave " + w.config + " out"
		finding.Fix = advice
	}
	if found.ofSet && !w.ofSet {
		about += " until the set has brought it up"
	}
	finding.Message = fmt.Sprintf("%s: the webhook %s fails closed and calls %s, which %s, so %s%s — %s", w.config, w.name, where, found.lacks, about, w.unless(&finding), advice)
	return []Finding{finding}
}

// blocksItself warns of workloads of the set that serve a webhook and can't be made while nobody serves it.
func (l *setLook) blocksItself(w *webhook, found serving) []Finding {
	if found.service == nil || len(found.service.Spec.Selector) == 0 {
		return nil
	}
	selector := labels.SelectorFromSet(found.service.Spec.Selector)
	var findings []Finding
	for _, work := range l.workloads {
		if work.namespace != w.service.Namespace || !selector.Matches(labels.Set(work.pod.Labels)) {
			continue
		}
		made := slices.DeleteFunc(madeBy(work), func(t target) bool {
			t.home = l.labelsOf(t)
			matches, _ := w.asks(t)
			return !matches
		})
		if len(made) == 0 {
			continue
		}
		finding := Finding{Severity: Warn, Code: CodeWebhookBlocksItself, Object: w.config}
		finding.Fix = fmt.Sprintf("leave the namespace out by its namespaceSelector (matchExpressions: [{key: %s, operator: NotIn, values: [%s]}]), or set failurePolicy: Ignore", corev1.LabelMetadataName, w.service.Namespace)
		finding.Message = fmt.Sprintf("%s: the webhook %s fails closed and is asked about %s, which serve it, so when none of them runs the server refuses each new one%s — %s",
			w.config, w.name, made[0].what, w.unless(&finding), finding.Fix)
		findings = append(findings, finding)
	}
	return findings
}

// unless makes a finding about a webhook with conditions a Note, and says why.
func (w *webhook) unless(f *Finding) string {
	if !w.conditional {
		return ""
	}
	f.Severity = Note
	return ", unless its matchConditions spare them, which nobody evaluated"
}
