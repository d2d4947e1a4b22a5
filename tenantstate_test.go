package jr2_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

// A clusterState is every object of a cluster, by its kind, namespace and name: what stands in it and who it is, and not how often it was written.
type clusterState map[string]string

// An object of a cluster, as far as a record could name it.
type loot struct {
	group, version, kind, namespace, name, uid string
}

// heard are kinds that a cluster writes by itself: notes of what happens, and signs of life.
var heard = []string{"Event", "Lease", "Endpoints", "EndpointSlice", "ComponentStatus"}

// stateOf reads all objects of a cluster but those of some namespaces, which have a state of their own.
func stateOf(t *testing.T, client discovery.DiscoveryInterface, objects dynamic.Interface, but ...string) (clusterState, []loot) {
	t.Helper()
	lists, err := discovery.ServerPreferredResources(client)
	must(t, err)
	state, all := clusterState{}, []loot{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") || slices.Contains(heard, r.Kind) || strings.Contains(r.Name, "/") {
				continue
			}
			found, err := objects.Resource(gv.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{})
			must(t, err)
			for i := range found.Items {
				o := &found.Items[i]
				where := o.GetNamespace()
				if r.Kind == "Namespace" {
					where = o.GetName()
				}
				for _, of := range []string{"claimRef", "parentRef"} { // a volume and an address are those of a claim and of a Service
					if home, _, _ := unstructured.NestedString(o.Object, "spec", of, "namespace"); where == "" { //nolint:errcheck // it has none
						where = home
					}
				}
				if slices.Contains(but, where) {
					continue
				}
				text := standing(t, o)
				state[fmt.Sprintf("%s.%s %s/%s", r.Kind, gv.Group, o.GetNamespace(), o.GetName())] = text
				all = append(all, loot{group: gv.Group, version: gv.Version, kind: r.Kind, namespace: o.GetNamespace(), name: o.GetName(), uid: string(o.GetUID())})
			}
		}
	}
	return state, all
}

// standing is what an object says, without what the server notes of its writes and what its controllers note of its state.
func standing(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	o = o.DeepCopy()
	for _, field := range []string{"resourceVersion", "managedFields", "generation"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	delete(o.Object, "status")
	raw, err := json.Marshal(o.Object)
	must(t, err)
	return string(raw)
}

// changes lists what is gone, new or other.
func (before clusterState) changes(after clusterState) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(before)) {
		switch now, there := after[key]; {
		case !there:
			all = append(all, "gone: "+key)
		case now != before[key]:
			all = append(all, "other: "+key+"\n  was "+before[key]+"\n  is  "+now)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if _, was := before[key]; !was {
			all = append(all, "new: "+key)
		}
	}
	return all
}

func ignoreAbsent(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
