package preflight

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
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

// RaiseQuota is the command that gives a quota the room which a refusal says that it lacks: what is used and what was asked for. What further refusals
// of the same quota asked for is added. It is empty where the words tell no amounts.
func RaiseQuota(namespace, words string, further ...string) string {
	refused, ok := quota.ParseRefusal(words)
	if !ok || namespace == "" || len(refused.Requested) == 0 {
		return ""
	}
	hard := wanted(refused)
	for _, words := range further {
		if other, ok := quota.ParseRefusal(words); ok && other.Quota == refused.Quota {
			for resource, requested := range other.Requested {
				if sum, have := hard[resource]; have {
					sum.Add(requested)
					hard[resource] = sum
				} else {
					hard[resource] = wanted(other)[resource]
				}
			}
		}
	}
	return patchQuota(namespace, refused.Quota, hard)
}

// wanted is what a quota must have for what it refused: what is used and what was asked for.
func wanted(refused quota.Refusal) corev1.ResourceList {
	hard := corev1.ResourceList{}
	for resource, requested := range refused.Requested {
		sum := requested.DeepCopy()
		sum.Add(refused.Used[resource])
		hard[resource] = sum
	}
	return hard
}

func patchQuota(namespace, name string, wanted corev1.ResourceList) string {
	var hard []string
	for _, resource := range slices.Sorted(maps.Keys(wanted)) {
		amount := wanted[resource]
		hard = append(hard, fmt.Sprintf("%q:%q", resource, amount.String()))
	}
	return fmt.Sprintf(`kubectl -n %s patch resourcequota %s --type merge -p '{"spec":{"hard":{%s}}}'`, namespace, name, strings.Join(hard, ","))
}

// raising is the form of patchQuota.
var raising = regexp.MustCompile(`kubectl -n (\S+) patch resourcequota (\S+) --type merge -p '\{"spec":\{"hard":(\{[^{}']*\})\}\}'`)

// raiseTogether lets findings that raise one quota raise it to the same: typed one after the other, the last would else take back what another gave.
func raiseTogether(findings []Finding) {
	most := map[string]corev1.ResourceList{}
	for i := range findings {
		for _, words := range raising.FindAllStringSubmatch(findings[i].Fix, -1) {
			of, hard := words[1]+"/"+words[2], corev1.ResourceList{}
			if json.Unmarshal([]byte(words[3]), &hard) != nil {
				continue
			}
			if most[of] == nil {
				most[of] = corev1.ResourceList{}
			}
			for name, amount := range hard {
				if now, have := most[of][name]; !have || now.Cmp(amount) < 0 {
					most[of][name] = amount
				}
			}
		}
	}
	for i := range findings {
		f := &findings[i]
		fix := raising.ReplaceAllStringFunc(f.Fix, func(command string) string {
			words := raising.FindStringSubmatch(command)
			return patchQuota(words[1], words[2], most[words[1]+"/"+words[2]])
		})
		if fix != f.Fix {
			f.Message, f.Fix = strings.Replace(f.Message, f.Fix, fix, 1), fix
		}
	}
}

// DefaultLimits is the command that gives containers of a namespace defaults for what a quota wants stated and they do not state. It is empty where the
// words say nothing of it, and where no default can be right for others, such as devices.
func DefaultLimits(namespace, words string) string {
	refused, ok := quota.ParseRefusal(words)
	if !ok || namespace == "" || len(refused.Unstated) == 0 {
		return ""
	}
	limits, requests := map[string]string{}, map[string]string{}
	for _, resource := range refused.Unstated {
		of, bounded := strings.CutPrefix(resource, "limits.")
		of = strings.TrimPrefix(of, "requests.")
		limit, request := ordinary(of)
		if limit == "" {
			return ""
		}
		if requests[of] = request; bounded { // what the quota does not bound stays without a bound
			limits[of] = limit
		}
	}
	return fmt.Sprintf(`printf %%s '{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"jr2-defaults"},"spec":{"limits":[{"type":"Container"%s%s}]}}' | kubectl -n %s apply -f -`,
		amounts("default", limits), amounts("defaultRequest", requests), namespace)
}

// ordinary is what a container gets that states nothing: a limit, and a request that keeps little.
func ordinary(resource string) (limit, request string) {
	switch resource {
	case "cpu":
		return "1", "100m"
	case "memory":
		return "1Gi", "128Mi"
	case "ephemeral-storage":
		return "10Gi", "1Gi"
	}
	return "", ""
}

func amounts(field string, of map[string]string) string {
	var each []string
	for _, resource := range slices.Sorted(maps.Keys(of)) {
		each = append(each, fmt.Sprintf("%q:%q", resource, of[resource]))
	}
	if len(each) == 0 {
		return ""
	}
	return fmt.Sprintf(",%q:{%s}", field, strings.Join(each, ","))
}
