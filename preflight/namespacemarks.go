package preflight

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/internal/names"
)

// An ownershipMark is a label or an annotation by which a tool knows the Namespaces that it looks after.
type ownershipMark struct {
	label bool // else an annotation
	key   string
	not   string // a value that says nothing; else every value does
	tool  string // who looks after the namespace
	why   string // what that tool would do to an Instance there, or the Instance to it
}

// ownershipMarks are the marks that keep a namespace from being taken in a first contact, each as the tool's own documentation has it.
var ownershipMarks = []ownershipMark{
	{false, "meta.helm.sh/release-name", "", "a release of Helm", "helm uninstall deletes it"},
	{false, "argocd.argoproj.io/tracking-id", "", "an application of Argo CD", "Argo CD syncs and prunes it"},
	{true, "argocd.argoproj.io/instance", "", "an application of Argo CD", "Argo CD syncs and prunes it"},
	{true, "kustomize.toolkit.fluxcd.io/name", "", "a Kustomization of Flux", "Flux applies and prunes it"},
	{true, "helm.toolkit.fluxcd.io/name", "", "a HelmRelease of Flux", "Flux applies and prunes it"},
	{true, "kapp.k14s.io/app", "", "an app of kapp", "kapp deletes it with the app"},
	{true, "applyset.kubernetes.io/part-of", "", "an ApplySet of kubectl", "kubectl apply --prune deletes it"},
	{false, "configmanagement.gke.io/managed", "disabled", "Config Sync", "Config Sync applies and prunes it"},
	{false, "hnc.x-k8s.io/subnamespace-of", "", "the Hierarchical Namespace Controller", "it goes with its anchor in the parent namespace"},
	{true, "capsule.clastix.io/tenant", "", "a Tenant of Capsule", "it goes with the Tenant"},
	{true, "addonmanager.kubernetes.io/mode", "EnsureExists", "the addon manager of the cluster", "the addon manager reconciles it"},
	{true, "openshift.io/run-level", "", "the platform of OpenShift", "the cluster itself runs there, and pods are admitted by other rules"},
	{false, "jr2.dev/set", "", "a set of jr2 apply", "it leaves the cluster with the set"},
	{true, names.LabelManagedBy, names.ManagedBy, "another tool", "that tool changes and deletes it"},
}

// keptBy says which tool keeps a namespace, by which mark, and what that means; empty when no mark says so.
func keptBy(namespace *corev1.Namespace) (tool, mark, why string) {
	for _, m := range ownershipMarks {
		from, kind := namespace.Annotations, "annotation"
		if m.label {
			from, kind = namespace.Labels, "label"
		}
		if value, there := from[m.key]; there && (m.not == "" || value != m.not) {
			return m.tool, fmt.Sprintf("its %s %s is %q", kind, m.key, value), m.why
		}
	}
	if len(namespace.OwnerReferences) > 0 {
		owner := namespace.OwnerReferences[0]
		return owner.Kind + " " + owner.Name, "it is in its ownerReferences", "Kubernetes deletes it with that object"
	}
	return "", "", ""
}

// managed refuses a namespace that another tool keeps. Its owner may give it to the Instance, by the label that a first contact would set.
func managed(context, instance string, namespace *corev1.Namespace) []Finding {
	tool, mark, why := keptBy(namespace)
	if tool == "" {
		return nil
	}
	return []Finding{{
		Severity: Refuse, Code: CodeNamespaceManaged, Object: "Namespace " + namespace.Name,
		Message: fmt.Sprintf("refusing: namespace %q on %s is kept by %s — %s, and %s. Give a different namespace with -n; whoever owns this one may label it for the Instance (kubectl label namespace %s %s=%s). Nothing was applied.",
			namespace.Name, context, tool, mark, why, namespace.Name, names.LabelInstance, instance),
		Fix: fmt.Sprintf("kubectl label namespace %s %s=%s", namespace.Name, names.LabelInstance, instance),
	}}
}

// systemName says why a name is not an Instance's: "default", and those that Kubernetes keeps for itself by their prefix.
func systemName(name string) string {
	switch {
	case name == corev1.NamespaceDefault:
		return "it is the namespace of whatever names none, and Kubernetes lets nobody delete it"
	case strings.HasPrefix(name, systemPrefix):
		return "names that begin with " + systemPrefix + " are kept for Kubernetes itself"
	}
	return ""
}

const systemPrefix = "kube-"
