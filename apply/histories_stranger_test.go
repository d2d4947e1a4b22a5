package apply_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"jr2.dev/jr2/apply"
)

// An act is what a stranger can do; it says what in words, or "" when there is nothing to do it to.
type act func(ctx context.Context, v view) string

// acts are what strangers do, each as often as it stands here.
func (h *history) acts() []act {
	return []act{
		h.makes, h.makes, h.makes, h.unmarks, h.replaces, h.makesAgain, h.makesAgain, h.edits, h.edits, h.deletes,
		h.holds, h.letsGo, h.letsGo, h.keeps, h.keeps, h.unkeeps, h.copies, h.copies, h.marks,
		h.forgesRecords, h.forgesRecords, h.datesRecords,
	}
}

const holdFinalizer = "stranger.example.com/hold"

// manager is the field manager of a stranger's writes.
func (h *history) manager() string { return []string{"kubectl", "helm"}[h.random.IntN(2)] }

func (h *history) client(s slot) dynamic.ResourceInterface {
	resource := h.strange.Resource(h.kinds[s.kind].gvr())
	if h.kinds[s.kind].cluster {
		return resource
	}
	return resource.Namespace(h.places[s.place])
}

func (h *history) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatalf("%s\na stranger's own request: %v", h.story(), err)
	}
}

// create makes an object by a create, or by a server-side apply.
func (h *history) create(ctx context.Context, s slot, o *unstructured.Unstructured, manager string) {
	h.t.Helper()
	var err error
	if h.chance(50) {
		_, err = h.client(s).Create(ctx, o, metav1.CreateOptions{FieldManager: manager})
	} else {
		_, err = h.client(s).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager})
	}
	h.must(err)
}

// update writes an object whole.
func (h *history) update(ctx context.Context, s *sight, manager string, change func(*unstructured.Unstructured)) {
	h.t.Helper()
	h.must(retry.RetryOnConflict(retry.DefaultRetry, func() error { // a controller may write as well
		o, err := h.client(s.slot).Get(ctx, s.object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(o)
		_, err = h.client(s.slot).Update(ctx, o, metav1.UpdateOptions{FieldManager: manager})
		return err
	}))
}

// one picks one of the objects for which it holds.
func (h *history) one(v view, which func(*sight, *thing) bool) *sight {
	all := slices.DeleteFunc(v.sorted(), func(s *sight) bool { return !which(s, h.things[s.uid]) })
	if len(all) == 0 {
		return nil
	}
	return all[h.random.IntN(len(all))]
}

func standing(s *sight, _ *thing) bool { return !s.deleting }

func ofASet(s *sight, t *thing) bool { return !s.deleting && t.owner != "" }

// freeSlot is one where nothing is, rather one that a set asks for or will.
func (h *history) freeSlot(v view, which func(slot) bool) (slot, bool) {
	var asked, all []slot
	for _, s := range h.slots() {
		if v.at(s) != nil || !which(s) {
			continue
		}
		all = append(all, s)
		if h.asks(s) {
			asked = append(asked, s)
		}
	}
	if len(asked) > 0 && h.chance(60) {
		all = asked
	}
	if len(all) == 0 {
		return slot{}, false
	}
	return all[h.random.IntN(len(all))], true
}

func (h *history) makes(ctx context.Context, v view) string {
	s, ok := h.freeSlot(v, func(slot) bool { return true })
	if !ok {
		return ""
	}
	w := wanted{value: int64(100 + h.random.IntN(9))}
	if h.chance(15) {
		w.keep = 1 + h.random.IntN(len(keepWords())-1)
	}
	h.create(ctx, s, h.manifest(s, w), h.manager())
	return fmt.Sprintf("makes %s=%s", h.say(s), sayWanted(w))
}

func (h *history) unmarks(ctx context.Context, v view) string {
	s := h.one(v, ofASet)
	if s == nil {
		return ""
	}
	h.update(ctx, s, h.manager(), func(o *unstructured.Unstructured) { setAnnotation(o, apply.SetAnnotation, "") })
	h.takenAway(s)
	return "takes the mark off " + h.say(s.slot)
}

func (h *history) takenAway(s *sight) {
	t := h.things[s.uid]
	t.owner, t.touched = "", true
}

func (h *history) replaces(ctx context.Context, v view) string {
	s := h.one(v, ofASet)
	if s == nil {
		return ""
	}
	w := wanted{value: int64(100 + h.random.IntN(9))}
	h.update(ctx, s, h.manager(), func(o *unstructured.Unstructured) {
		fresh := h.manifest(s.slot, w)
		fresh.SetResourceVersion(o.GetResourceVersion())
		fresh.SetFinalizers(o.GetFinalizers())
		if h.kinds[s.kind].resource == "persistentvolumeclaims" {
			fresh.Object["spec"] = o.Object["spec"]
		}
		o.Object = fresh.Object
	})
	h.takenAway(s)
	return fmt.Sprintf("replaces %s by one of its own, %s", h.say(s.slot), sayWanted(w))
}

func (h *history) makesAgain(ctx context.Context, v view) string {
	s := h.one(v, func(s *sight, t *thing) bool { return ofASet(s, t) && !s.held })
	if s == nil {
		return ""
	}
	h.things[s.uid].doomed = true
	h.must(h.client(s.slot).Delete(ctx, s.object.GetName(), metav1.DeleteOptions{}))
	gone := func(ctx context.Context) (bool, error) {
		o, err := h.client(s.slot).Get(ctx, s.object.GetName(), metav1.GetOptions{})
		return err != nil || o.GetUID() != s.uid, nil
	}
	h.must(wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, gone))
	o, how := h.manifest(s.slot, wanted{value: int64(100 + h.random.IntN(9))}), ""
	if h.chance(50) {
		o.SetAnnotations(s.object.GetAnnotations())
		how = " with all its annotations"
	}
	h.create(ctx, s.slot, o, h.manager())
	return fmt.Sprintf("deletes %s and makes it again%s", h.say(s.slot), how)
}

func (h *history) edits(ctx context.Context, v view) string {
	s := h.one(v, standing)
	if s == nil {
		return ""
	}
	manager, value := h.manager(), fmt.Sprint("v", 200+h.random.IntN(9))
	h.things[s.uid].touched = true
	if h.chance(50) {
		h.update(ctx, s, manager, func(o *unstructured.Unstructured) {
			labels := o.GetLabels()
			labels["value"] = value
			o.SetLabels(labels)
		})
		return fmt.Sprintf("edits %s to %s", h.say(s.slot), value)
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(s.object.GroupVersionKind())
	o.SetName(s.object.GetName())
	o.SetNamespace(s.object.GetNamespace())
	o.SetLabels(map[string]string{"value": value, historyLabel: h.tag})
	options := metav1.ApplyOptions{FieldManager: manager + "-applies", Force: true}
	_, err := h.client(s.slot).Apply(ctx, o.GetName(), o, options)
	h.must(err)
	return fmt.Sprintf("applies %s with %s", h.say(s.slot), value)
}

func (h *history) holds(ctx context.Context, v view) string {
	s := h.one(v, func(s *sight, t *thing) bool { return ofASet(s, t) && !s.held })
	if s == nil {
		return ""
	}
	h.things[s.uid].touched = true
	h.update(ctx, s, h.manager(), func(o *unstructured.Unstructured) {
		o.SetFinalizers(append(o.GetFinalizers(), holdFinalizer))
	})
	return "puts a finalizer on " + h.say(s.slot)
}

func (h *history) letsGo(ctx context.Context, v view) string {
	s := h.one(v, func(s *sight, _ *thing) bool { return s.held })
	if s == nil {
		return ""
	}
	h.things[s.uid].touched = true
	h.update(ctx, s, h.manager(), func(o *unstructured.Unstructured) {
		o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == holdFinalizer }))
	})
	return "takes the finalizer off " + h.say(s.slot)
}

func (h *history) keeps(ctx context.Context, v view) string {
	s := h.one(v, func(s *sight, t *thing) bool { return ofASet(s, t) && s.keep == "" })
	if s == nil {
		return ""
	}
	word := keepWords()[1+h.random.IntN(len(keepWords())-1)]
	h.things[s.uid].touched = true
	h.update(ctx, s, h.manager(), func(o *unstructured.Unstructured) { setAnnotation(o, word[0], word[1]) })
	return fmt.Sprintf("puts %s: %s on %s", word[0], word[1], h.say(s.slot))
}

func (h *history) unkeeps(ctx context.Context, v view) string {
	s := h.one(v, func(s *sight, _ *thing) bool { return !s.deleting && s.keep != "" })
	if s == nil {
		return ""
	}
	h.things[s.uid].touched = true
	h.update(ctx, s, h.manager(), func(o *unstructured.Unstructured) {
		for _, word := range keepWords()[1:] {
			setAnnotation(o, word[0], "")
		}
	})
	return "takes the keep annotation off " + h.say(s.slot)
}

// copies makes another object like one of a set, with all its annotations, as a backup does or a person who starts from
// what is there.
func (h *history) copies(ctx context.Context, v view) string {
	s := h.one(v, ofASet)
	if s == nil {
		return ""
	}
	to, ok := h.freeSlot(v, func(f slot) bool { return f.kind == s.kind })
	if !ok {
		return ""
	}
	o := h.manifest(to, wanted{value: int64(100 + h.random.IntN(9))})
	o.SetAnnotations(s.object.GetAnnotations())
	if h.chance(50) {
		o.SetManagedFields(s.object.GetManagedFields())
		_, err := h.client(to).Create(ctx, o, metav1.CreateOptions{FieldManager: h.manager()})
		h.must(err)
	} else {
		h.create(ctx, to, o, h.manager())
	}
	return fmt.Sprintf("copies %s to %s", h.say(s.slot), h.say(to))
}

// marks writes the mark of a set itself: on what was taken away, on its own, or that of the other set.
func (h *history) marks(ctx context.Context, v view) string {
	s, side := h.one(v, standing), h.sides[h.random.IntN(len(h.sides))]
	if s == nil || h.things[s.uid].owner == side.id() {
		return ""
	}
	h.update(ctx, s, h.manager(), func(o *unstructured.Unstructured) { setAnnotation(o, apply.SetAnnotation, side.id()) })
	h.takenAway(s)
	return fmt.Sprintf("writes the mark of the set %s on %s", side.name, h.say(s.slot))
}

func (h *history) deletes(ctx context.Context, v view) string {
	s := h.one(v, standing)
	if s == nil {
		return ""
	}
	h.things[s.uid].doomed = true
	h.must(h.client(s.slot).Delete(ctx, s.object.GetName(), metav1.DeleteOptions{}))
	return "deletes " + h.say(s.slot)
}

// setAnnotation removes one that is to be empty.
func setAnnotation(o *unstructured.Unstructured, key, value string) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if annotations[key] = value; value == "" {
		delete(annotations, key)
	}
	o.SetAnnotations(annotations)
}
