package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A fault is one thing that is wrong inside an object.
type fault struct{ path, text string }

// checkObject finds what the server would drop without a word (labels and annotations that are not strings) or refuse with an error
// that names no place (repeated keys of lists that are merged by key).
func checkObject(o *unstructured.Unstructured) []fault {
	var faults []fault
	if o.GetKind() == "CustomResourceDefinition" { // its schema holds the word metadata as a property
		checkStrings(o.Object["metadata"], "metadata", &faults)
		_, misplaced := positionOf(o)
		return append(faults, misplaced...)
	}
	checkMetadata(o.Object, &faults)
	checkTexts(o, &faults)
	checkKeys(o, &faults)
	_, misplaced := positionOf(o)
	faults = append(faults, misplaced...)
	_, unminted := declarationOf(o)
	return append(faults, unminted...)
}

// checkMetadata checks every metadata in the object: its own, of pod templates, of claim templates.
func checkMetadata(v any, faults *[]fault) {
	found := metadataFaults(v)
	slices.SortStableFunc(found, func(a, b fault) int { return strings.Compare(a.path, b.path) })
	*faults = append(*faults, found...)
}

// metadataFaults puts the path of a fault together on its way back: nearly always there is none, and then no path is made.
func metadataFaults(v any) []fault {
	var faults []fault
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if k == "metadata" {
				checkStrings(x, k, &faults)
				continue
			}
			for _, f := range metadataFaults(x) {
				faults = append(faults, fault{under(k, f.path), f.text})
			}
		}
	case []any:
		for i, x := range v {
			for _, f := range metadataFaults(x) {
				faults = append(faults, fault{under(fmt.Sprintf("[%d]", i), f.path), f.text})
			}
		}
	}
	return faults
}

// under is a path seen from one step higher.
func under(step, path string) string {
	if strings.HasPrefix(path, "[") {
		return step + path
	}
	return step + "." + path
}

func checkStrings(metadata any, path string, faults *[]fault) {
	for _, field := range []string{"annotations", "labels"} {
		value, ok := dig(metadata, field).(map[string]any)
		if !ok {
			if x := dig(metadata, field); x != nil {
				*faults = append(*faults, fault{join(path, field), "want object, got " + jsonType(x)})
			}
			continue
		}
		for _, k := range slices.Sorted(maps.Keys(value)) {
			if _, ok := value[k].(string); !ok {
				*faults = append(*faults, fault{join(join(path, field), k), "want string, got " + jsonType(value[k])})
			}
		}
	}
}

// checkTexts checks the values of a ConfigMap and of a Secret, where "y" and "1" without quotes are what people write. Of a Secret the
// server's words can't be told, because they may quote a value.
func checkTexts(o *unstructured.Unstructured, faults *[]fault) {
	if gvk := o.GroupVersionKind(); gvk.Group != "" || gvk.Kind != "ConfigMap" && gvk.Kind != "Secret" {
		return
	}
	for _, field := range []string{"data", "binaryData", "stringData"} {
		values, _ := o.Object[field].(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(values)) {
			if _, ok := values[k].(string); !ok && values[k] != nil { // the server takes null for nothing
				*faults = append(*faults, fault{join(field, k), "want string, got " + jsonType(values[k])})
			}
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func jsonType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case int, int64, uint64, float64:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// podSpecPath is where the pod spec of a workload is, or nil for kinds that hold none.
func podSpecPath(o *unstructured.Unstructured) []string {
	gvk := o.GroupVersionKind()
	switch {
	case gvk.Group == "" && gvk.Kind == "Pod":
		return []string{"spec"}
	case gvk.Group == "batch" && gvk.Kind == "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	case gvk.Group == "apps", gvk.Group == "batch", gvk.Group == "" && gvk.Kind == "ReplicationController":
		return []string{"spec", "template", "spec"}
	}
	return nil
}
