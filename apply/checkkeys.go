package apply

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A keyField is a field by which a list is merged, and its value when it is not stated.
type keyField struct{ name, absent string }

// checkKeys checks the lists that the server merges by keys: those of pods, Services, accounts, webhooks and policies, as the API's own
// schema keys them (client-go's applyconfigurations/internal, "elementRelationship: associative"). Lists that only the server writes are
// left out.
func checkKeys(o *unstructured.Unstructured, faults *[]fault) {
	name := keyField{name: "name"}
	switch gvk := o.GroupVersionKind(); gvk.Group {
	case "":
		switch gvk.Kind {
		case "Service":
			checkList(dig(o.Object, "spec", "ports"), "spec.ports", faults, keyField{name: "port"}, keyField{"protocol", "TCP"})
		case "ServiceAccount":
			checkList(o.Object["secrets"], "secrets", faults, name)
		}
	case "admissionregistration.k8s.io":
		checkList(o.Object["webhooks"], "webhooks", faults, name)
		hooks, _ := o.Object["webhooks"].([]any)
		for i, h := range hooks {
			checkList(dig(h, "matchConditions"), fmt.Sprintf("webhooks[%d].matchConditions", i), faults, name)
		}
		for _, list := range []string{"matchConditions", "variables"} {
			checkList(dig(o.Object, "spec", list), "spec."+list, faults, name)
		}
	}
	if path := podSpecPath(o); path != nil {
		checkPodKeys(dig(o.Object, path...), strings.Join(path, "."), faults)
	}
}

func checkPodKeys(pod any, at string, faults *[]fault) {
	name := keyField{name: "name"}
	checkList(dig(pod, "volumes"), at+".volumes", faults, name)
	checkList(dig(pod, "imagePullSecrets"), at+".imagePullSecrets", faults, name)
	checkList(dig(pod, "hostAliases"), at+".hostAliases", faults, keyField{name: "ip"})
	checkList(dig(pod, "topologySpreadConstraints"), at+".topologySpreadConstraints", faults, keyField{name: "topologyKey"}, keyField{name: "whenUnsatisfiable"})
	checkList(dig(pod, "schedulingGates"), at+".schedulingGates", faults, name)
	checkList(dig(pod, "resourceClaims"), at+".resourceClaims", faults, name)
	checkList(dig(pod, "resources", "claims"), at+".resources.claims", faults, name)
	for _, kind := range []string{"initContainers", "containers"} {
		checkList(dig(pod, kind), at+"."+kind, faults, name)
		list, _ := dig(pod, kind).([]any)
		for i, c := range list {
			at := fmt.Sprintf("%s.%s[%d]", at, kind, i)
			checkList(dig(c, "ports"), at+".ports", faults, keyField{name: "containerPort"}, keyField{"protocol", "TCP"})
			checkList(dig(c, "env"), at+".env", faults, name)
			checkList(dig(c, "volumeMounts"), at+".volumeMounts", faults, keyField{name: "mountPath"})
			checkList(dig(c, "volumeDevices"), at+".volumeDevices", faults, keyField{name: "devicePath"})
			checkList(dig(c, "resources", "claims"), at+".resources.claims", faults, name)
		}
	}
}

func checkList(list any, path string, faults *[]fault, keys ...keyField) {
	items, _ := list.([]any)
	if len(items) < 2 {
		return
	}
	seen := map[string]bool{}
	for i, item := range items {
		parts := make([]string, len(keys))
		for j, k := range keys {
			value := dig(item, k.name)
			if value == nil {
				value = k.absent
			}
			if s, ok := value.(string); ok {
				value = fmt.Sprintf("%q", s)
			}
			parts[j] = fmt.Sprintf("%s=%v", k.name, value)
		}
		key := strings.Join(parts, ",")
		if seen[key] {
			*faults = append(*faults, fault{fmt.Sprintf("%s[%d]", path, i), "duplicate entries for key [" + key + "]"})
		}
		seen[key] = true
	}
}
