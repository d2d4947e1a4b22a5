package apply

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

// MadeAnnotation, on a Namespace, is the set that made it. A mark does not say that: a set that asks something of a Namespace that is there marks it
// too. It counts, like a mark, only when the server's notes say that this engine wrote it. Without it a set never deletes a Namespace, whatever its
// record says, because whoever may edit ConfigMaps may write there that the set made it.
const MadeAnnotation = "jr2.dev/set-made"

const madeField = `"f:` + MadeAnnotation + `":{}`

func isNamespace(ref Ref) bool { return ref.Group == "" && ref.Kind == "Namespace" }

// madeIt says that the set made a Namespace, by what is on it.
func (r *run) madeIt(now metav1.Object) bool {
	return now.GetAnnotations()[MadeAnnotation] == r.set.ID() && wrote(now, madeField, r.opts.FieldManager)
}

// settleHomes decides about each Namespace of the set, once it was looked at: it is made and says so; or it is joined. One that is joined and holds all
// that is asked of it is left alone, without a mark, so that several sets may bring one Namespace. One of which more is asked is marked.
func (r *run) settleHomes(ctx context.Context) error {
	if r.opts.Shared {
		return nil
	}
	for i, o := range r.orders {
		if !isNamespace(o.ref) || o.pos.isHook() {
			continue
		}
		now := r.live.get(o.ref)
		if now == nil && r.live.hidden(o.ref) != nil || now != nil && now.DeletionTimestamp != nil {
			continue
		}
		if now == nil || r.madeIt(now) {
			annotate(o.body, MadeAnnotation, r.set.ID())
			want, err := wantOf(o.body.Object)
			if err != nil {
				return err
			}
			r.orders[i].want = want
			continue
		}
		if now.Annotations[SetAnnotation] != "" { // it is the set's, or another one's, which claim refuses
			continue
		}
		joined, err := r.holdsAll(ctx, o)
		if err != nil {
			return err
		}
		r.orders[i].joined = joined
	}
	return nil
}

// holdsAll says that an object that is there has everything that is asked of it, the mark aside.
func (r *run) holdsAll(ctx context.Context, o order) (bool, error) {
	at, err := r.cluster.full(ctx, o.ref)
	if err != nil {
		return false, err
	}
	var live *unstructured.Unstructured
	err = r.retry.do(ctx, o.ref, func(ctx context.Context) (err error) {
		live, err = at.Get(ctx, o.ref.Name, metav1.GetOptions{})
		return err
	})
	switch c := Classify(err); {
	case c == ClassNotFound:
		return false, nil
	case err != nil:
		return false, err
	}
	return Holds(live, without(o.body, SetAnnotation)), nil
}

// without is the object without an annotation.
func without(o *unstructured.Unstructured, key string) *unstructured.Unstructured {
	o = o.DeepCopy()
	annotations := o.GetAnnotations()
	delete(annotations, key)
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
	return o
}

// ownUp takes back that the set made a Namespace, which somebody made between the look and the write: it is joined.
func (r *run) ownUp(ctx context.Context, at metadata.ResourceInterface, o order, got *metav1.PartialObjectMetadata) error {
	body := without(o.body, MadeAnnotation)
	body.SetUID(got.UID)
	raw, err := json.Marshal(body.Object)
	if err != nil {
		return err
	}
	now, err := at.Patch(context.WithValue(ctx, refKey{}, o.ref), o.ref.Name, types.ApplyPatchType, raw, r.patchOptions(false))
	if err == nil {
		*got = *now
	}
	return err
}
