package apply

import (
	"bytes"
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/internal/clip"
)

// markField is the set's mark as the server notes it among the fields of a manager.
const markField = `"f:` + SetAnnotation + `":{}`

// marked says that an object carries the mark of this set and that this engine wrote it there: whoever copies an object copies its annotations, and
// only the server's own notes of who set what tell the two apart.
func (r *run) marked(o metav1.Object) bool { return isMarked(o, r.set, r.opts.FieldManager) }

func isMarked(o metav1.Object, set *Set, manager string) bool {
	return o.GetAnnotations()[SetAnnotation] == set.ID() && wrote(o, markField, manager)
}

// wroteMark says that the mark which an object carries, of whichever set, was written by this engine.
func (r *run) wroteMark(o metav1.Object) bool { return wrote(o, markField, r.opts.FieldManager) }

// wrote says that the server notes a field as set by this engine, under the name that the caller gave it or the one for Secrets that are minted.
func wrote(o metav1.Object, field, manager string) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return (e.Manager == manager || e.Manager == mintManager) && notes(e, field)
	})
}

func notes(e metav1.ManagedFieldsEntry, field string) bool {
	return e.Subresource == "" && e.FieldsV1 != nil && bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(field))
}

// holds says that an object is the set's, so that it may be written: it is marked; or it carries the mark and is the recorded one, and only the
// server's notes of who set what were lost. The latter is not enough to delete it. Where the notes say that somebody else set the mark, it is a copy,
// and a record proves nothing: whoever may edit ConfigMaps may have written it.
func (r *run) holds(ref Ref, now metav1.Object) bool {
	if r.marked(now) {
		return true
	}
	others := slices.ContainsFunc(now.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager != unknownManager && notes(e, markField)
	})
	return !others && now.GetAnnotations()[SetAnnotation] == r.set.ID() && r.inv.records[ref.key()].UID == now.GetUID()
}

// unknownManager is whom the server notes for fields that were set before it noted anything, as after the notes were lost.
const unknownManager = "before-first-apply"

// claim says whether the set may write an object that is there: it is the set's, or it is adopted because that was asked for. An *OwnedError is
// another set's object, an *UnownedError one that no set made. A copy of another set's object carries that set's mark and was made by neither.
func (r *run) claim(ref Ref, now metav1.Object) error {
	owner := now.GetAnnotations()[SetAnnotation]
	switch {
	case owner != "" && owner != r.set.ID():
		if !slices.Contains(r.opts.AdoptFrom, owner) {
			return &OwnedError{Ref: ref, Owner: clip.Text(owner), Set: r.set.ID()}
		}
		if r.opts.Adopt || r.wroteMark(now) || now.GetDeletionTimestamp() != nil {
			return nil
		}
	case r.opts.Shared, r.opts.Adopt, r.holds(ref, now), r.isKin(now):
		return nil
	case ref.Group == "" && ref.Kind == "Namespace": // it is joined; whose it was shows when it is to be deleted
		return nil
	case now.GetDeletionTimestamp() != nil: // it is waited for, and another one is made
		return nil
	}
	return &UnownedError{Ref: ref, Set: r.set.ID(), Managers: managersOf(now)}
}

// isKin says that an object carries the labels by which a set knows its own from before there were marks.
func (r *run) isKin(now metav1.Object) bool {
	labels := now.GetLabels()
	for key, value := range r.opts.Kin {
		if labels[key] != value {
			return false
		}
	}
	return len(r.opts.Kin) > 0 && now.GetAnnotations()[SetAnnotation] == ""
}

// managersOf lists who set fields of an object other than its status, in the order in which the server notes them.
func managersOf(o metav1.Object) []string {
	var names []string
	for _, e := range o.GetManagedFields() {
		if e.Subresource == "" && !slices.Contains(names, e.Manager) {
			names = append(names, e.Manager)
		}
	}
	return names
}

// An UnownedError is an object that is there and that no set made, so that it is somebody else's. It is written only when that is asked for.
type UnownedError struct {
	Ref Ref
	// Set is the set that has an object of this name; empty for an object that is written outside of every set.
	Set string
	// Managers are the field managers of the object: who made it and who changed it.
	Managers []string
}

func (e *UnownedError) Error() string {
	by := ""
	if len(e.Managers) > 0 {
		by = " (field managers: " + strings.Join(e.Managers, ", ") + ")"
	}
	who := "the set " + e.Set + " did not make it"
	if e.Set == "" {
		who = "nothing shows that jr2 made it"
	}
	return e.Ref.String() + " is there already and " + who + by +
		"; give yours another name, delete the other one, or ask for its adoption (Options.Adopt)"
}

// CheckOwners looks whether Apply would refuse the set because of whose objects are there, and writes nothing: errors are *OwnedError, *UnownedError,
// *ConflictError of a Secret whose values would be replaced, *InventoryError, or several of them joined.
func CheckOwners(ctx context.Context, cfg *rest.Config, set *Set, opts Options) error {
	r, err := newRun(cfg, set, opts)
	if err != nil {
		return err
	}
	if err := r.readCluster(ctx); err != nil {
		return err
	}
	if err := r.settleHomes(ctx); err != nil {
		return err
	}
	return r.checkOwners(ctx)
}
