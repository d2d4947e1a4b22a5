package apply

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// heldAlready says that an object which belongs to no set is as it is asked for, so that nobody writes it: who made it may be an admin, and the
// caller one who may not change it. Of such an object no inventory says what it was, so it is read whole.
func (r *run) heldAlready(ctx context.Context, o order, now *metav1.PartialObjectMetadata) bool {
	if !r.opts.Shared || o.isSecret() || now == nil || now.DeletionTimestamp != nil {
		return false
	}
	at, err := r.cluster.full(ctx, o.ref)
	if err != nil {
		return false // the write tells
	}
	var live *unstructured.Unstructured
	err = r.retry.do(ctx, o.ref, func(ctx context.Context) (err error) {
		live, err = at.Get(ctx, o.ref.Name, metav1.GetOptions{})
		return err
	})
	return err == nil && Holds(live, o.body) && !ownsMore(live, r.opts.FieldManager, o.body)
}

// Holds says that an object has every field that is asked for, with the value that is asked for. What it has besides is no difference. Lists
// must be equal, and so must the spelling of quantities.
func Holds(live, asked *unstructured.Unstructured) bool { return holds(live.Object, asked.Object) }

func holds(live, asked any) bool {
	wanted, ok := asked.(map[string]any)
	if !ok {
		return reflect.DeepEqual(live, asked)
	}
	has, ok := live.(map[string]any)
	if !ok {
		return len(wanted) == 0 && live == nil // the server drops what is empty
	}
	for k, v := range wanted {
		if !holds(has[k], v) {
			return false
		}
	}
	return true
}

// ownsMore says that the manager once asked for a field that it does not ask for now: only a write takes that back.
func ownsMore(live metav1.Object, manager string, asked *unstructured.Unstructured) bool {
	for e := range appliedBy(live, manager) {
		var owned map[string]any
		if json.Unmarshal(e.FieldsV1.GetRawBytes(), &owned) != nil || beyond(owned, asked.Object) {
			return true
		}
	}
	return false
}

// beyond walks a field set: "f:name" is a field, "." the object itself; keys of lists are not told apart.
func beyond(owned map[string]any, asked map[string]any) bool {
	for key, below := range owned {
		name, field := strings.CutPrefix(key, "f:")
		if !field {
			continue
		}
		value, there := asked[name]
		if !there {
			return true
		}
		deeper, _ := below.(map[string]any)
		if inner, ok := value.(map[string]any); ok && beyond(deeper, inner) {
			return true
		}
	}
	return false
}
