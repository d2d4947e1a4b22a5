package apply

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// keepsValues refuses to adopt a Secret of which a value would be replaced, unless its managers are ones to take fields from: the server finds a
// conflict only where it knows who set a value, and what was there may be known to nobody else. Where it may not be read the conflicts are all there
// is to go by.
func (r *run) keepsValues(ctx context.Context, o order, now metav1.Object) error {
	if !o.isSecret() || now == nil || r.opts.Shared || r.holds(o.ref, now) || now.GetDeletionTimestamp() != nil {
		return nil
	}
	var live *corev1.Secret
	err := r.retry.do(ctx, o.ref, func(ctx context.Context) (err error) {
		live, err = r.cluster.typed.CoreV1().Secrets(o.ref.Namespace).Get(ctx, o.ref.Name, metav1.GetOptions{})
		return err
	})
	switch Classify(err) {
	case ClassNone:
	case ClassNotFound, ClassForbidden:
		return nil
	default:
		return err
	}
	var replaced []Conflict
	asked, _ := dig(o.body.Object, "data").(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(asked)) {
		value, there := live.Data[key]
		wanted, err := base64.StdEncoding.DecodeString(text(asked[key]))
		if !there || err == nil && string(wanted) == string(value) {
			continue
		}
		managers := r.managersOfField(live, "data", key)
		if len(managers) == 0 {
			managers = []string{"nobody known"}
		}
		for _, manager := range managers {
			if !slices.Contains(r.opts.Conflicts.TakeFrom, manager) && !slices.Contains(r.opts.Conflicts.LeaveTo, manager) {
				replaced = append(replaced, Conflict{Manager: manager, Field: ".data." + key})
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(live.Data)) { // what another set asked for under our name goes when this one does not ask for it
		_, kept := asked[key]
		if !kept && slices.Equal(r.managersOfField(live, "data", key), []string{r.opts.FieldManager}) && !slices.Contains(r.opts.Conflicts.TakeFrom, r.opts.FieldManager) {
			replaced = append(replaced, Conflict{Manager: r.opts.FieldManager, Field: ".data." + key})
		}
	}
	if len(replaced) == 0 {
		return nil
	}
	return &ConflictError{Ref: o.ref, Conflicts: replaced, Err: fmt.Errorf("%s: %w", o.ref, errValueReplaced)}
}

var errValueReplaced = errors.New("its adoption would replace values of a Secret")

// managersOfField lists who set a field.
func (r *run) managersOfField(o metav1.Object, path ...string) []string {
	parts := make([]any, len(path))
	for i, p := range path {
		parts[i] = p
	}
	at := fieldpath.MakePathOrDie(parts...)
	var names []string
	for _, e := range o.GetManagedFields() {
		var s fieldpath.Set
		if e.FieldsV1 != nil && s.FromJSON(e.FieldsV1.GetRawReader()) == nil && s.Has(at) && !slices.Contains(names, e.Manager) {
			names = append(names, e.Manager)
		}
	}
	return names
}
