package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// SetAnnotation is the mark of the set that an object belongs to: "<namespace>/<name>".
	SetAnnotation = "jr2.dev/set"
	// wantAnnotation holds, on a Secret only, the hash of what was asked for. A hash of a short value gives the value away to one who
	// guesses, so it lies where only those can read it who can read the Secret, and not in the inventory.
	wantAnnotation = "jr2.dev/want"
)

// An order is an object as it is sent, and the hash of what is asked for.
type order struct {
	ref Ref
	// body is not to be changed: it shares parts with the object of the set.
	body *unstructured.Unstructured
	want string
	pos  position
	mint *declaration // of a Secret whose values are made; nil for all others
	// joined says that it is a Namespace which is there, is not the set's, and holds all that is asked: it is left alone. See settleHomes.
	joined bool
}

// newOrder marks a copy of the object as one of the set, unless it is shared. The copy shares with the object what marks don't touch.
func newOrder(o *unstructured.Unstructured, set *Set, shared bool) (order, error) {
	body := &unstructured.Unstructured{Object: maps.Clone(o.Object)}
	if metadata, ok := body.Object["metadata"].(map[string]any); ok {
		body.Object["metadata"] = maps.Clone(metadata)
	}
	unrelease(body)
	if !shared {
		annotate(body, SetAnnotation, set.ID())
	}
	ord := order{ref: RefOf(o), body: body}
	var err error
	if ord.want, err = wantOf(body.Object); err != nil {
		return order{}, fmt.Errorf("%s: %w", ord.ref, err)
	}
	ord.pos, _ = positionOf(o) // NewSet found the faults
	if ord.mint, err = declare(body); err != nil {
		return order{}, err
	}
	if ord.mints() {
		ord.want = ord.mint.want()
		return ord, nil
	}
	if ord.isSecret() {
		annotate(body, wantAnnotation, ord.want)
	}
	return ord, nil
}

func (o order) isSecret() bool { return o.ref.isSecret() }

// unrelease takes off the marks of a hook and of a Namespace that a set made, which a manifest has that was read out of a cluster: what carries one
// may be deleted.
func unrelease(o *unstructured.Unstructured) {
	a := o.GetAnnotations()
	for _, key := range []string{releaseAnnotation, MadeAnnotation} {
		if _, has := a[key]; has {
			delete(a, key)
			o.SetAnnotations(a)
		}
	}
}

func annotate(o *unstructured.Unstructured, key, value string) {
	a := o.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a[key] = value
	o.SetAnnotations(a)
}

func hash(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// appliedBy yields what the server notes about the fields that a manager applied, those of subresources aside.
func appliedBy(m metav1.Object, manager string) iter.Seq[metav1.ManagedFieldsEntry] {
	return func(yield func(metav1.ManagedFieldsEntry) bool) {
		for _, e := range m.GetManagedFields() {
			if e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" && e.FieldsV1 != nil && !yield(e) {
				return
			}
		}
	}
}

// entryOf is the hash of what the server notes about the manager's fields of an object: which they are, and when it last changed one.
// It changes exactly when somebody changes a value that the manager owns: another manager's change takes the field out, a change
// under the same name moves the time, in steps of a second (see seenOf). "" means that the manager owns nothing.
func entryOf(m metav1.Object, manager string) string {
	for e := range appliedBy(m, manager) {
		var at string
		if e.Time != nil {
			at = e.Time.UTC().Format("20060102T150405")
		}
		return hash([]byte(e.APIVersion), []byte(at), e.FieldsV1.GetRawBytes())
	}
	return ""
}

// asAsked says that nothing changed on an object since the run that wrote the record, and that the same is asked for now.
func (o order) asAsked(m *metav1.PartialObjectMetadata, rec record, manager string) bool {
	if o.mints() {
		return o.mintedAsAsked(m, rec)
	}
	entry := entryOf(m, manager)
	return m.DeletionTimestamp == nil && o.wantedBefore(m, rec) && entry == rec.Entry && entry != "" && rec.stands(m, manager)
}

// seenOf tells two states of an object apart that have the same entry, because the same manager wrote twice within a second: by a run that
// was cut off before it could note what it did, say. It is the object's resourceVersion, its generation, and the hash of what the server
// notes of all others: a version that moved is theirs when that did, and the status's when the generation did not.
func seenOf(m metav1.Object, manager string) string {
	var others [][]byte
	for _, e := range m.GetManagedFields() {
		if e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" {
			continue
		}
		others = append(others, []byte(fmt.Sprint(e.Manager, e.Operation, e.Subresource, e.Time)))
		if e.FieldsV1 != nil {
			others = append(others, e.FieldsV1.GetRawBytes())
		}
	}
	return fmt.Sprintf("%s %d %s", m.GetResourceVersion(), m.GetGeneration(), hash(others...))
}

// settledAfter is how much older than now the time of an entry must be to be over for sure. It covers clocks that differ by some seconds.
const settledAfter = 10 * time.Second

// newRecord is what the inventory keeps of an object that is as asked. A Secret's want lies on the Secret.
func (o order) newRecord(m metav1.Object, manager string) record {
	rec := record{Ref: o.ref, UID: m.GetUID(), Entry: entryOf(m, manager), Keep: keepMarkOf(o.body, false)}
	if !o.isSecret() {
		rec.Want = o.want
	}
	for _, e := range m.GetManagedFields() {
		if e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Time != nil && time.Since(e.Time.Time) < settledAfter {
			rec.Seen = seenOf(m, manager)
		}
	}
	return rec
}

// stands says that an entry which is the same means that the object is.
func (rec record) stands(m metav1.Object, manager string) bool {
	if rec.Seen == "" {
		return true
	}
	was, is := strings.Fields(rec.Seen), strings.Fields(seenOf(m, manager))
	return len(was) != len(is) || was[0] == is[0] || was[1] == is[1] && is[1] != "0" || was[2] != is[2]
}

// wantedBefore says that the last run asked the same of this very object, and that it is the set's still. The mark is compared by itself: the run of
// another set writes it under the same manager, and within the same second the server's notes look the same.
func (o order) wantedBefore(m *metav1.PartialObjectMetadata, rec record) bool {
	want := rec.Want
	if o.isSecret() {
		want = m.Annotations[wantAnnotation]
	}
	return rec.UID != "" && m.UID == rec.UID && want == o.want && m.Annotations[SetAnnotation] == o.body.GetAnnotations()[SetAnnotation]
}

// spent says that an object is gone, or going, because its time was over: a Job with a time to live that the set made and of which it asks
// the same still. It is not run again unasked.
func (o order) spent(now *metav1.PartialObjectMetadata, rec record) bool {
	if now != nil && (now.DeletionTimestamp == nil || now.UID != rec.UID) {
		return false
	}
	return o.ref.Group == "batch" && o.ref.Kind == "Job" && dig(o.body.Object, "spec", "ttlSecondsAfterFinished") != nil &&
		rec.UID != "" && rec.Want == o.want
}

const whySpent = "it was made before, and a Job with a time to live is not run again when it is gone"
