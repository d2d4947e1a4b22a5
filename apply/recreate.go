package apply

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
)

// syncOptionsAnnotation is Argo CD's; with Replace=true or Force=true in it, an object may be deleted and made again.
const syncOptionsAnnotation = "argocd.argoproj.io/sync-options"

// immutable is the *ImmutableError for a refusal.
func immutable(ref Ref, err error) *ImmutableError {
	e := &ImmutableError{Ref: ref, Err: err}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil {
		for _, c := range status.Status().Details.Causes {
			if c.Field != "" && !slices.Contains(e.Fields, c.Field) {
				e.Fields = append(e.Fields, c.Field)
			}
		}
	}
	if (order{ref: ref}).isSecret() { // the server's words may quote what it holds
		e.Err = &ObjectError{Ref: ref, Class: ClassImmutable, Err: errors.New("the server refuses it")}
	}
	return e
}

// whyRecreated names the fields for which an object is made again.
func whyRecreated(fields []string) string {
	if len(fields) == 0 {
		return "a field of it can't be changed once it is made"
	}
	return strings.Join(fields, ", ") + " can't be changed once it is made"
}

// mayRecreate says that the object may be deleted and made again: it is the set's and holds no data; and that was allowed, by the options or by the
// object itself. One that says to keep it goes only when it says itself that it may be replaced.
func (r *run) mayRecreate(o order, now *metav1.PartialObjectMetadata) bool {
	if holdsData(o.ref) || !r.marked(now) {
		return false
	}
	for _, word := range words(o.body.GetAnnotations()[syncOptionsAnnotation]) {
		if word == "Replace=true" || word == "Force=true" {
			return true
		}
	}
	if keepMarkOf(now, false) != "" || keepMarkOf(o.body, false) != "" {
		return false
	}
	// The next release would make a hook again anyway.
	return slices.Contains(r.opts.Recreate, strings.TrimSuffix(o.ref.Kind+"."+o.ref.Group, ".")) || r.madeAsHook(now)
}

// provesNew has the server judge the object as a new one, under a name of its own. Nothing is deleted that can't be made again.
func (r *run) provesNew(ctx context.Context, o order) error {
	at, err := r.cluster.full(ctx, o.ref)
	if err != nil {
		return err
	}
	probe := o.body.DeepCopy()
	probe.SetName("")
	probe.SetGenerateName("probe-")
	_, err = at.Create(ctx, probe, metav1.CreateOptions{FieldManager: r.opts.FieldManager, FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}})
	switch c := Classify(err); {
	case c == ClassQuotaWait || c == ClassQuotaNever: // the old one goes first, and its share with it
		return nil
	case err != nil && strings.Contains(err.Error(), "already allocated"): // an address or a port, likewise
		return nil
	}
	return err
}

// losesData reads whether the old object takes volumes with it.
func (r *run) losesData(ctx context.Context, ref Ref) (bool, error) {
	if ref.Group != "apps" || ref.Kind != "StatefulSet" {
		return false, nil
	}
	at, err := r.cluster.full(ctx, ref)
	if err != nil {
		return false, err
	}
	live, err := at.Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	return dig(live.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted") == "Delete", nil
}

// recreatable returns nil when the server said of a field that it is immutable, and the object may be deleted and made again for that;
// else the error to tell.
func (r *run) recreatable(ctx context.Context, o order, now *metav1.PartialObjectMetadata, refusal error) error {
	cause := immutable(o.ref, refusal)
	if now == nil || !r.mayRecreate(o, now) {
		return cause
	}
	loses, err := r.losesData(ctx, o.ref)
	if err != nil {
		return err
	}
	if loses {
		return cause
	}
	if err := r.provesNew(ctx, o); err != nil {
		if Classify(err).Retryable() {
			return err
		}
		return final{&ObjectError{Ref: o.ref, Class: Classify(err), Err: errors.Join(errNotMadeAgain, err)}}
	}
	return nil
}

var errNotMadeAgain = errors.New("a field of it can't be changed, and it was not deleted, because the server would refuse the new one")

// refusedStill is nil when the server refuses the write for an immutable field in that very version of the object too.
func (r *run) refusedStill(ctx context.Context, o order, version string) error {
	at, err := r.cluster.full(ctx, o.ref)
	if err != nil {
		return err
	}
	if _, err = r.dryPatch(ctx, at, o, version, true); Classify(err) == ClassImmutable {
		return nil
	}
	if err == nil {
		err = errors.New("it was refused, and is not any more")
	}
	return &ObjectError{Ref: o.ref, Class: ClassStale, Err: err}
}

// recreate deletes an object of which the server said that a field can't be changed, waits until it is gone with its pods, because the
// old ones and the new ones are not to run at once, and makes it again. It deletes exactly what was refused: the server compares UID and
// version. A run that ends in between leaves an object that is gone or going, which the next one makes.
func (r *run) recreate(ctx context.Context, at metadata.ResourceInterface, o order, refusal error, d *deed) (*metav1.PartialObjectMetadata, error) {
	now, err := r.getMeta(ctx, at, o.ref)
	if err != nil {
		return nil, err
	}
	if err := r.recreatable(ctx, o, now, refusal); err != nil {
		return nil, err
	}
	if !r.plannedToBeMadeAgain(o.ref) {
		return nil, final{&movedObject{o.ref}}
	}
	if err := r.refusedStill(ctx, o, now.ResourceVersion); err != nil {
		return nil, err
	}
	foreground := metav1.DeletePropagationForeground
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &now.UID, ResourceVersion: &now.ResourceVersion}, PropagationPolicy: &foreground}
	if err := at.Delete(ctx, o.ref.Name, options); err != nil && Classify(err) != ClassNotFound {
		return nil, err
	}
	d.recreated, d.fields = true, immutable(o.ref, refusal).Fields
	r.forgetVersion(o.ref)
	r.events.emit(Waiting{Ref: o.ref, Reason: "it is deleted, to be made again", Since: time.Now()})
	if err := waitGone(ctx, at, o.ref, now.UID, r.opts.Retry.Limit); err != nil {
		return nil, final{err}
	}
	return r.patch(ctx, at, o, "", false)
}
