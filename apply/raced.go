package apply

import (
	"context"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

// giveBack undoes a write that was to make an object and met one that somebody made since the look. It does so by the answer to the write: an object
// that the write made has one field manager. The fields that only this engine set go again, and with them the mark; those that the other one set
// were not touched, because they would have been a conflict. The object is then refused as any other that is there already.
func (r *run) giveBack(ctx context.Context, at metadata.ResourceInterface, o order, d *deed, got *metav1.PartialObjectMetadata) error {
	if d.seen == got.UID || d.lost || d.recreated || r.opts.Shared || len(managersOf(got)) < 2 {
		return nil
	}
	if o.body.GetAnnotations()[MadeAnnotation] != "" {
		return r.ownUp(ctx, at, o, got)
	}
	before := *got
	before.Annotations, before.ManagedFields = nil, slices.Clone(got.ManagedFields)
	before.ManagedFields = slices.DeleteFunc(before.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == r.opts.FieldManager })
	claim := r.claim(o.ref, &before)
	if claim == nil {
		return nil
	}
	none, err := json.Marshal(map[string]any{
		"apiVersion": o.body.GetAPIVersion(), "kind": o.ref.Kind,
		"metadata": map[string]any{"name": o.ref.Name, "uid": got.UID, "resourceVersion": got.ResourceVersion},
	})
	if err != nil {
		return err
	}
	_, err = at.Patch(ctx, o.ref.Name, types.ApplyPatchType, none, r.patchOptions(false))
	if c := Classify(err); err != nil && c != ClassStale && c != ClassNotFound {
		return err
	}
	return final{claim}
}
