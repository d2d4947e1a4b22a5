package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/placement/quota"
)

// AwaitDeletion is the command that waits until a namespace is gone.
func AwaitDeletion(namespace string) string {
	return "kubectl wait --for=delete --timeout=10m namespace/" + namespace
}

// LowerPodSecurity is the command that lets every pod into a namespace.
func LowerPodSecurity(namespace string) string {
	return "kubectl label --overwrite namespace " + namespace + " pod-security.kubernetes.io/enforce=privileged"
}

// RaiseQuota is the command that gives a quota the room which a refusal says that it lacks: what is used and what was asked for. It is empty where the
// words tell no amounts.
func RaiseQuota(namespace, words string) string {
	refused, ok := quota.ParseRefusal(words)
	if !ok || namespace == "" || len(refused.Requested) == 0 {
		return ""
	}
	var hard []string
	for _, resource := range slices.Sorted(maps.Keys(refused.Requested)) {
		wanted := refused.Requested[resource].DeepCopy()
		used := refused.Used[corev1.ResourceName(resource)]
		wanted.Add(used)
		hard = append(hard, fmt.Sprintf("%q:%q", resource, wanted.String()))
	}
	return fmt.Sprintf(`kubectl -n %s patch resourcequota %s --type merge -p '{"spec":{"hard":{%s}}}'`, namespace, refused.Quota, strings.Join(hard, ","))
}
