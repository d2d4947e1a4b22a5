package apply_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// A historyKind is a kind of which histories have objects.
type historyKind struct {
	schema.GroupVersionKind
	resource string
	cluster  bool // its objects live in no namespace
	body     func(name string, value int64) map[string]any
}

func (k historyKind) gvr() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.resource)
}

// historyGroup is the group of the kinds that the test defines itself.
const historyGroup = "histories.example.com"

// historyKinds are kinds with data and without, of both scopes, of Kubernetes and of a definition.
func historyKinds() []historyKind {
	rules := func(_ string, value int64) map[string]any {
		return map[string]any{"rules": []any{map[string]any{
			"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get"},
			"resourceNames": []any{fmt.Sprint("v", value)},
		}}}
	}
	config := func(_ string, value int64) map[string]any {
		return map[string]any{"data": map[string]any{"value": fmt.Sprint(value)}}
	}
	account := func(string, int64) map[string]any { return nil }
	class := func(_ string, value int64) map[string]any {
		return map[string]any{"value": int64(7), "description": fmt.Sprint("v", value)}
	}
	spec := func(_ string, value int64) map[string]any {
		return map[string]any{"spec": map[string]any{"value": value}}
	}
	const rbac, scheduling = "rbac.authorization.k8s.io", "scheduling.k8s.io"
	return []historyKind{
		{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps", false, config},
		{schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "secrets", false, secretBody},
		{schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, "serviceaccounts", false, account},
		{schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, "persistentvolumeclaims", false, claimBody},
		{schema.GroupVersionKind{Group: rbac, Version: "v1", Kind: "Role"}, "roles", false, rules},
		{schema.GroupVersionKind{Group: rbac, Version: "v1", Kind: "ClusterRole"}, "clusterroles", true, rules},
		{schema.GroupVersionKind{Group: scheduling, Version: "v1", Kind: "PriorityClass"}, "priorityclasses", true, class},
		{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "deployments", false, deploymentBody},
		{schema.GroupVersionKind{Group: historyGroup, Version: "v1", Kind: "Gadget"}, "gadgets", false, spec},
		{schema.GroupVersionKind{Group: historyGroup, Version: "v1", Kind: "Tenant"}, "tenants", true, spec},
	}
}

// secretBody holds no data for some values: such a Secret is no loss.
func secretBody(_ string, value int64) map[string]any {
	body := map[string]any{"type": "Opaque"}
	if value%3 != 0 {
		body["data"] = map[string]any{"value": base64.StdEncoding.EncodeToString(fmt.Append(nil, value))}
	}
	return body
}

// claimBody names no class, so that the claim stays as it is.
func claimBody(string, int64) map[string]any {
	return map[string]any{"spec": map[string]any{
		"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "",
		"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	}}
}

func deploymentBody(name string, value int64) map[string]any {
	labels := map[string]any{"app": name}
	return map[string]any{"spec": map[string]any{
		"replicas": int64(0), "minReadySeconds": value, "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "registry.example/c:1"}}},
		},
	}}
}

// A slot is where an object of a history can be: one kind, namespace and name.
type slot struct{ kind, place, name int }

// A wanted is what a manifest says of an object.
type wanted struct {
	value int64
	keep  int // of keepWords; 0 for none
	// stray is a namespace that the manifest of a cluster-scoped kind names all the same; 0 for none.
	stray int
}

// keepWords are what the tools document for an object that is not to be pruned; the first is none.
func keepWords() [][2]string {
	return [][2]string{
		{},
		{"argocd.argoproj.io/sync-options", "Prune=false"},
		{"argocd.argoproj.io/sync-options", "Prune=confirm"},
		{"helm.sh/resource-policy", "keep"},
		{"kustomize.toolkit.fluxcd.io/prune", "disabled"},
	}
}

// historyLabel tells the objects of one history from those of others that are at work.
const historyLabel = "histories.example.com/of"

// manifest is an object as a file would hold it.
func (h *history) manifest(s slot, w wanted) *unstructured.Unstructured {
	kind, name := h.kinds[s.kind], h.name(s)
	labels := map[string]any{historyLabel: h.tag, "value": fmt.Sprint("v", w.value)}
	metadata := map[string]any{"name": name, "labels": labels}
	if !kind.cluster {
		metadata["namespace"] = h.places[s.place]
	} else if w.stray > 0 {
		metadata["namespace"] = h.places[w.stray-1]
	}
	if w.keep > 0 {
		word := keepWords()[w.keep]
		metadata["annotations"] = map[string]any{word[0]: word[1]}
	}
	o := &unstructured.Unstructured{Object: kind.body(name, w.value)}
	if o.Object == nil {
		o.Object = map[string]any{}
	}
	o.Object["metadata"] = metadata
	o.SetGroupVersionKind(kind.GroupVersionKind)
	return o
}

// name keeps the cluster-scoped names of histories apart.
func (h *history) name(s slot) string {
	if h.kinds[s.kind].cluster {
		return fmt.Sprintf("%s-n%d", h.tag, s.name)
	}
	return fmt.Sprintf("n%d", s.name)
}

// slotOf finds the slot of an object, and false for one that no history has.
func (h *history) slotOf(kind int, o *unstructured.Unstructured) (slot, bool) {
	s := slot{kind: kind}
	name, ours := strings.CutPrefix(o.GetName(), "n")
	if h.kinds[kind].cluster {
		name, ours = strings.CutPrefix(o.GetName(), h.tag+"-n")
	}
	for i, place := range h.places {
		if o.GetNamespace() == place {
			s.place = i
		}
	}
	if _, err := fmt.Sscan(name, &s.name); !ours || err != nil {
		return slot{}, false
	}
	return s, true
}

// say names a slot for a reader.
func (h *history) say(s slot) string {
	if h.kinds[s.kind].cluster {
		return fmt.Sprintf("%s n%d", h.kinds[s.kind].Kind, s.name)
	}
	return fmt.Sprintf("%s %d/n%d", h.kinds[s.kind].Kind, s.place+1, s.name)
}

// defineHistoryKinds installs the definitions and waits until their kinds are served.
func defineHistoryKinds(ctx context.Context, client dynamic.Interface) error {
	crds := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	for _, kind := range historyKinds() {
		if kind.Group != historyGroup {
			continue
		}
		definition := definitionOf(kind)
		_, err := crds.Apply(ctx, definition.GetName(), definition, metav1.ApplyOptions{FieldManager: "histories"})
		if err != nil {
			return err
		}
		served := client.Resource(kind.gvr())
		lists := func(ctx context.Context) (bool, error) {
			_, err := served.List(ctx, metav1.ListOptions{Limit: 1})
			return err == nil, nil
		}
		err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, lists)
		if err != nil {
			return fmt.Errorf("%s is not served: %w", definition.GetName(), err)
		}
	}
	return nil
}

func definitionOf(kind historyKind) *unstructured.Unstructured {
	scope := "Namespaced"
	if kind.cluster {
		scope = "Cluster"
	}
	object := func(properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "properties": properties}
	}
	schemaOf := object(map[string]any{"spec": object(map[string]any{"value": map[string]any{"type": "integer"}})})
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": kind.resource + "." + kind.Group},
		"spec": map[string]any{
			"group": kind.Group, "scope": scope, "names": map[string]any{"kind": kind.Kind, "plural": kind.resource},
			"versions": []any{map[string]any{
				"name": kind.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": schemaOf},
			}},
		},
	}}
}
