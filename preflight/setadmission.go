package preflight

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"golang.org/x/sync/errgroup"
)

// Admission asks whether the pods that workloads will make are let in. That a workload is valid says nothing about it: a Deployment
// whose pods are refused is accepted, and sits at zero replicas.
//
// A pod is made from each template by dry run, so that the server names container and field. Where the namespace, or its Pod
// Security level, arrives with the set, the server cannot know, and the pod is evaluated here at the level and version of those labels.
// A level that arrives on a living namespace also warns of the pods that run there and violate it: they survive, and what replaces
// them is refused.
//
// What is against the namespace's rules refuses: its Pod Security level, its LimitRange, a quota that no pod of this size ever fits. So does a
// namespace that is being deleted, whatever goes there.
// What may still arrive from elsewhere, or answers to who asks, warns: a priority class, a service account, a full quota, a
// webhook or a policy. Service accounts, priority classes and RuntimeClasses of the set count as there.
func Admission(ctx context.Context, objs []*unstructured.Unstructured, facts SetFacts) []Finding {
	l := lookAt(objs, facts)
	return append(l.unread, l.admission(ctx)...)
}

// admission checks each workload, several at a time; the findings come in the order of the workloads.
func (l *setLook) admission(ctx context.Context) []Finding {
	levels := l.levels()
	findings := append(l.terminations(), l.labelFaults()...)
	perWorkload := make([][]Finding, len(l.workloads))
	unread := make([]string, len(l.workloads))
	asked := make([]bool, len(l.workloads))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, w := range l.workloads {
		group.Go(func() error {
			perWorkload[i], asked[i], unread[i] = l.admit(ctx, w, levels[w.namespace])
			return nil
		})
	}
	group.Wait() //nolint:errcheck // what went wrong is in the findings
	unasked := false
	for i := range l.workloads {
		for _, f := range perWorkload[i] {
			if f.Code != CodeNamespaceTerminating || !slices.Contains(findings, f) { // once for all that is to go there
				findings = append(findings, f)
			}
		}
		unasked = unasked || !asked[i]
	}
	if unasked && l.facts.DryRun == nil {
		findings = append(findings, notLooked("API server", "the API server was not asked to make a pod of each workload by dry run, so nobody looked whether their namespaces let them in"))
	}
	findings = append(findings, unreadOnce(l.workloads, unread)...)
	return append(findings, l.runningViolations(levels)...)
}

// unreadOnce says once for each namespace why its pods could not be tried.
func unreadOnce(workloads []*workload, unread []string) []Finding {
	var findings []Finding
	told := map[string]bool{}
	for i, w := range workloads {
		if unread[i] == "" || told[w.namespace] {
			continue
		}
		told[w.namespace] = true
		findings = append(findings, notLooked("Namespace "+w.namespace, fmt.Sprintf("nobody could look whether namespace %s lets the pods of this set in: %s", w.namespace, unread[i])))
	}
	return findings
}

// admit checks one workload. asked says that it was answered as far as it can be; unread is why not, when there is something to say.
func (l *setLook) admit(ctx context.Context, w *workload, level level) (findings []Finding, asked bool, unread string) {
	if leaves(l.facts.Namespaces[w.namespace]) { // which is a finding of its own
		return nil, true, ""
	}
	if level.arrives {
		// Here the server would answer for what is there now. Its other answers still count, where there is a namespace to ask in.
		findings = append(findings, level.refuse(w)...)
		if level.fresh {
			return findings, true, ""
		}
	}
	if l.facts.DryRun == nil {
		return findings, false, ""
	}
	refusals, pod, err := l.dryRun(ctx, w)
	w.admitted = pod
	secured := pod != nil
	for _, r := range refusals {
		if r.class == refusedPodSecurity {
			secured = true
			if level.arrives {
				continue
			}
		}
		findings = append(findings, r.finding(l, w)...)
	}
	if !secured && !level.arrives && level.known { // something else stopped the server first
		findings = append(findings, level.refuse(w)...)
	}
	if err != nil {
		return findings, true, err.Error()
	}
	return findings, true, ""
}

// dryRun makes the pod by dry run. What is missing is told and taken out of the pod, so that it does not hide what else is wrong.
func (l *setLook) dryRun(ctx context.Context, w *workload) (refusals []refusal, admitted *corev1.Pod, err error) {
	pod := l.withoutArriving(w)
	for range 4 { // service account, its default, priority class, RuntimeClass
		made, err := createDryRun(ctx, l.facts.DryRun(w.namespace), pod)
		if err == nil {
			return refusals, made, nil
		}
		r, ok := refusalOf(err)
		if !ok {
			return refusals, nil, err
		}
		again := r.without(pod)
		if !(again && r.class == refusedServiceAccount && l.expectsAccount(w, r)) {
			refusals = append(refusals, r)
		}
		if !again {
			break
		}
	}
	return refusals, nil, nil
}

// withoutArriving is the pod without what the set brings: the server does not have it yet, and would refuse the pod for it.
func (l *setLook) withoutArriving(w *workload) *corev1.Pod {
	pod := w.pod.DeepCopy()
	spec := &pod.Spec
	if l.find("", "ServiceAccount", w.namespace, spec.ServiceAccountName) != nil {
		spec.ServiceAccountName, spec.DeprecatedServiceAccount = "", ""
	}
	if l.find("scheduling.k8s.io", "PriorityClass", "", spec.PriorityClassName) != nil {
		spec.PriorityClassName = ""
	}
	if name := spec.RuntimeClassName; name != nil {
		missing := l.facts.RuntimeClasses != nil && l.runtimeClass(name) == nil // which is a finding of its own
		if missing || l.find("node.k8s.io", "RuntimeClass", "", *name) != nil {
			spec.RuntimeClassName = nil
		}
	}
	return pod
}

// expectsAccount says whether a service account that is not there is about to be: the default one is made with its namespace.
func (l *setLook) expectsAccount(w *workload, r refusal) bool {
	return r.names == "" || r.names == "default" || l.find("", "ServiceAccount", w.namespace, r.names) != nil
}
