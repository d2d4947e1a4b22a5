package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"jr2.dev/jr2/placement"
)

// Arrivals are what is made in one namespace.
type Arrivals struct {
	Namespace string
	// Objects are those that are not there yet. The pods that they make count with them.
	Objects []*unstructured.Unstructured
	// Also is what else is made, by the names by which quotas count it: "secrets", "count/leases.coordination.k8s.io".
	Also corev1.ResourceList
	// Quotas and LimitRanges are those of the namespace. Quotas that nobody has counted yet say nothing.
	Quotas      []corev1.ResourceQuota
	LimitRanges []corev1.LimitRange
}

// QuotaSums says which quotas have no room for all that arrives, though they may have it for each alone, which is all that a dry run can tell. It
// warns: what comes last waits for room. A DaemonSet makes a pod for each node that takes one.
func QuotaSums(arrivals Arrivals, facts SetFacts) []Finding {
	look := lookAt(arrivals.Objects, facts)
	var findings []Finding
	for i := range arrivals.Quotas {
		quota := &arrivals.Quotas[i]
		sum := look.sumFor(quota, &arrivals)
		wanted, short := corev1.ResourceList{}, []string{}
		for _, name := range slices.Sorted(maps.Keys(quota.Status.Hard)) {
			hard, more := quota.Status.Hard[name], sum[name]
			used, counted := quota.Status.Used[name]
			need := used.DeepCopy()
			need.Add(more)
			if !counted || more.IsZero() || need.Cmp(hard) <= 0 {
				continue
			}
			wanted[name] = need
			short = append(short, fmt.Sprintf("%s: %s more, %s used of %s", name, more.String(), used.String(), hard.String()))
		}
		if len(short) == 0 {
			continue
		}
		fix := patchQuota(arrivals.Namespace, quota.Name, wanted)
		findings = append(findings, Finding{
			Severity: Warn, Code: CodeQuotaFull, Object: "ResourceQuota " + arrivals.Namespace + "/" + quota.Name, Fix: fix,
			Message: fmt.Sprintf("quota %s of namespace %s has no room for all that is made there: %s — what comes last would wait for room; raise the quota: %s",
				quota.Name, arrivals.Namespace, strings.Join(short, "; "), fix),
		})
	}
	return findings
}

// sumFor is what all of it takes of one quota. Scopes select pods alone.
func (l *setLook) sumFor(quota *corev1.ResourceQuota, arrivals *Arrivals) corev1.ResourceList {
	sum := corev1.ResourceList{}
	bounds := placement.Facts{LimitRanges: arrivals.LimitRanges}
	for _, w := range l.workloads {
		pod := l.filledIn(w)
		pod, _ = bounds.Admit(pod) // what bounds refuse is told by the dry run
		addTimes(sum, placement.QuotaUse(quota, pod), l.podsOf(w))
	}
	if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
		return sum
	}
	for _, o := range l.objs {
		addTimes(sum, countOf(o), 1)
	}
	addTimes(sum, arrivals.Also, 1)
	return sum
}

func addTimes(sum, each corev1.ResourceList, times int) {
	for name, amount := range each {
		amount = amount.DeepCopy()
		amount.Mul(int64(times))
		amount.Add(sum[name])
		sum[name] = amount
	}
}

// podsOf is how many pods a workload makes.
func (l *setLook) podsOf(w *workload) int {
	if w.kind == "DaemonSet" && l.facts.Nodes != nil {
		return len(l.landing(w))
	}
	return w.replicas
}

// countOf is what an object itself takes of quotas (source: k8s.io/kubernetes, pkg/quota/v1/evaluator): one of its kind, by both names that some kinds
// have, a claim's storage, and the ReplicaSet of a Deployment.
func countOf(o *unstructured.Unstructured) corev1.ResourceList {
	one := resource.MustParse("1")
	gvk := o.GroupVersionKind()
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	counts := corev1.ResourceList{corev1.ResourceName("count/" + plural.GroupResource().String()): one}
	switch {
	case gvk.Group == "apps" && gvk.Kind == "Deployment":
		counts["count/replicasets.apps"] = one
	case gvk.Group == "":
		switch gvk.Kind {
		case "Secret", "ConfigMap", "Service", "PersistentVolumeClaim", "ReplicationController":
			counts[corev1.ResourceName(plural.Resource)] = one
		}
	}
	if gvk.Group == "" && gvk.Kind == "PersistentVolumeClaim" {
		text, _, _ := unstructured.NestedString(o.Object, "spec", "resources", "requests", "storage") //nolint:errcheck // the server refuses it in its own words
		if storage, err := resource.ParseQuantity(text); err == nil {
			counts[corev1.ResourceRequestsStorage] = storage
		}
	}
	return counts
}
