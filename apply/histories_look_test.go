package apply_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"jr2.dev/jr2/apply"
)

// A sight is an object as the server holds it.
type sight struct {
	slot
	uid    types.UID
	object *unstructured.Unstructured
	// mark is the set that the object belongs to as far as the server's notes show it: the annotation is there, and it
	// was written by the engine's own manager. A copy has the annotation alone.
	mark, annotation string
	deleting         bool
	held             bool   // by a finalizer that is not Kubernetes' own
	going            bool   // it is being deleted, and nothing but Kubernetes holds it
	keep             string // the annotation by which it is to be kept
	data             bool   // its loss is a loss of data
	// digest is what is written in it. Controllers write none of that.
	digest string
}

// A view is all that the server holds of a history.
type view map[types.UID]*sight

// at finds the object of a slot; nil when there is none.
func (v view) at(s slot) *sight {
	for _, seen := range v {
		if seen.slot == s {
			return seen
		}
	}
	return nil
}

// sorted is the same at each repetition of a history.
func (v view) sorted() []*sight {
	return slices.SortedFunc(maps.Values(v), func(a, b *sight) int { return compareSlots(a.slot, b.slot) })
}

func compareSlots(a, b slot) int {
	return slices.Compare([]int{a.kind, a.place, a.name}, []int{b.kind, b.place, b.name})
}

// look lists everything anew. What only Kubernetes' controllers hold is waited for: when it ends is nothing that a
// history is about.
func (h *history) look(ctx context.Context) view {
	h.t.Helper()
	for began := time.Now(); ; {
		seen, err := h.list(ctx)
		if err != nil {
			h.t.Fatalf("look: %v", err)
		}
		waits := slices.ContainsFunc(seen.sorted(), func(s *sight) bool { return s.going })
		if !waits || time.Since(began) > 20*time.Second {
			return seen
		}
		select {
		case <-ctx.Done():
			h.t.Fatal(ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (h *history) list(ctx context.Context) (view, error) {
	seen, mu := view{}, sync.Mutex{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	lists := func(kind int, at dynamic.ResourceInterface, options metav1.ListOptions) {
		group.Go(func() error {
			all, err := at.List(ctx, options)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range all.Items {
				if s, ok := h.slotOf(kind, &all.Items[i]); ok {
					seen[all.Items[i].GetUID()] = sightOf(s, &all.Items[i])
				}
			}
			return nil
		})
	}
	for i, kind := range h.kinds {
		resource := h.looker.Resource(kind.gvr())
		if kind.cluster {
			lists(i, resource, metav1.ListOptions{LabelSelector: historyLabel + "=" + h.tag})
			continue
		}
		for _, place := range h.places {
			lists(i, resource.Namespace(place), metav1.ListOptions{})
		}
	}
	return seen, group.Wait()
}

func sightOf(s slot, o *unstructured.Unstructured) *sight {
	seen := &sight{slot: s, uid: o.GetUID(), object: o, deleting: o.GetDeletionTimestamp() != nil}
	seen.annotation = o.GetAnnotations()[apply.SetAnnotation]
	if seen.annotation != "" && wroteTheMark(o) {
		seen.mark = seen.annotation
	}
	seen.held = len(foreignFinalizers(o)) > 0
	seen.going = seen.deleting && !seen.held
	for _, word := range keepWords()[1:] {
		if o.GetAnnotations()[word[0]] == word[1] {
			seen.keep = word[0]
		}
	}
	data, _, _ := unstructured.NestedMap(o.Object, "data")
	seen.data = o.GetKind() == "PersistentVolumeClaim" || o.GetKind() == "Secret" && len(data) > 0
	seen.digest = digestOf(o)
	return seen
}

// wroteTheMark says that the engine's manager owns the annotation.
func wroteTheMark(o *unstructured.Unstructured) bool {
	for _, e := range o.GetManagedFields() {
		var fields struct {
			Metadata struct {
				Annotations map[string]any `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if e.Manager != apply.DefaultFieldManager || e.FieldsV1 == nil {
			continue
		}
		if err := json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue
		}
		if _, ok := fields.Metadata.Annotations["f:"+apply.SetAnnotation]; ok {
			return true
		}
	}
	return false
}

// foreignFinalizers are those that Kubernetes' own controllers don't remove.
func foreignFinalizers(o *unstructured.Unstructured) []string {
	return slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return strings.HasPrefix(f, "kubernetes.io/") })
}

func digestOf(o *unstructured.Unstructured) string {
	o = o.DeepCopy()
	delete(o.Object, "status")
	for _, field := range []string{
		"managedFields", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds",
	} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	annotations := o.GetAnnotations()
	if delete(annotations, "deployment.kubernetes.io/revision"); len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
	o.SetFinalizers(foreignFinalizers(o))
	raw, err := json.Marshal(o.Object)
	if err != nil {
		return err.Error()
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
