package apply

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// takeOver decides about a conflict, for the version of the object for which it was found.
func (r *run) takeOver(ctx context.Context, at metadata.ResourceInterface, o order) (*metav1.PartialObjectMetadata, error) {
	now, err := at.Get(ctx, o.ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	// Somebody may have made it since the look. What is taken by force could not be given back.
	if err := r.claim(o.ref, now); err != nil {
		return nil, final{err}
	}
	got, err := r.patch(ctx, at, o, now.ResourceVersion, false)
	if Classify(err) != ClassConflict {
		return got, err
	}
	conflicts := conflictsOf(err)
	ruling, ok := r.rule(o, conflicts, now)
	if !ok {
		return nil, &ConflictError{Ref: o.ref, Conflicts: conflicts, Err: err}
	}
	return r.patch(ctx, at, ruling.order, now.ResourceVersion, ruling.force)
}

// ourOwn are the labels and annotations of jr2. Nobody else has a use for one, and an object whose notes somebody changed would else be out of
// reach of every run.
var ourOwn = regexp.MustCompile(`\.metadata\.(?:annotations|labels)\.jr2\.dev/`)

// A ruling is how an object is written in spite of conflicts.
type ruling struct {
	order order      // without the fields that are left to others
	force bool       // for fields that are taken
	left  []Conflict // the others
}

// rule decides about the conflicts of an object: fields are taken by force only when each of them is to be taken or left. False when the
// options have no rule for one of them. When the server named nobody, nobody allowed anything.
func (r *run) rule(o order, conflicts []Conflict, live metav1.Object) (ruling, bool) {
	decided := ruling{order: o}
	for _, c := range conflicts {
		manager, _, _ := strings.Cut(c.Manager, " (")
		switch {
		case ourOwn.MatchString(c.Field):
			decided.force = true // whoever wrote there: it is ours by its name
		case slices.Contains(r.opts.Conflicts.LeaveTo, manager):
			decided.left = append(decided.left, c)
		case slices.Contains(r.opts.Conflicts.TakeFrom, manager):
			decided.force = true
		default:
			return ruling{}, false
		}
	}
	if len(decided.left) > 0 {
		var ok bool
		if decided.order, ok = o.without(decided.left, live); !ok {
			return ruling{}, false
		}
	}
	return decided, len(conflicts) > 0
}

// without leaves fields out of what is sent. They are found by the text of their path among those that the managers of the live object own.
func (o order) without(left []Conflict, live metav1.Object) (order, bool) {
	paths := map[string]fieldpath.Path{}
	for _, e := range live.GetManagedFields() {
		var s fieldpath.Set
		if e.FieldsV1 == nil || s.FromJSON(e.FieldsV1.GetRawReader()) != nil {
			continue
		}
		s.Iterate(func(p fieldpath.Path) { paths[p.String()] = p.Copy() })
	}
	o.body = o.body.DeepCopy()
	done := map[string]bool{} // two managers may own one field
	for _, c := range left {
		if p, ok := paths[c.Field]; !done[c.Field] && (!ok || !drop(o.body.Object, p)) {
			return o, false
		}
		done[c.Field] = true
	}
	return o, true
}

// whyLeft names what is left to others.
func whyLeft(left []Conflict) string {
	var parts []string
	for _, c := range left {
		parts = append(parts, fmt.Sprintf("%s to %q", c.Field, c.Manager))
	}
	return "left: " + strings.Join(parts, ", ")
}

var conflictWith = regexp.MustCompile(`^conflict with "(.*?)"(?: with subresource "(.*?)")?`)

func conflictsOf(err error) []Conflict {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var all []Conflict
	for _, c := range status.Status().Details.Causes {
		if c.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		manager := c.Message
		if m := conflictWith.FindStringSubmatch(c.Message); m != nil {
			manager = m[1]
			if m[2] != "" {
				manager += " (" + m[2] + ")"
			}
		}
		all = append(all, Conflict{Manager: manager, Field: c.Field})
	}
	return all
}
