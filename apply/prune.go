package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/internal/clip"
)

// A departure is an object that the inventory lists and the set no longer holds, and what becomes of it.
type departure struct {
	record
	now    *metav1.PartialObjectMetadata // as it was last seen; nil when it is not there
	action Action                        // Pruned for one that goes
	why    string
	forget bool // the inventory need not keep it
	stage  stage
	inside map[types.UID]bool // of what takes others along: what was in it when it was judged, and no reason to keep it
}

func (d departure) result() ObjectResult {
	result := ObjectResult{Ref: d.Ref, Action: d.action, Why: d.why}
	switch {
	case d.now != nil:
		result.UID = string(d.now.UID)
	case d.action == Kept:
		result.UID = string(d.record.UID)
	}
	return result
}

// departures judges what left the set, in the order in which it goes. It writes nothing.
func (r *run) departures(ctx context.Context, records map[Ref]record) ([]departure, error) {
	held := r.heldUIDs()
	var all []departure
	for _, rec := range slices.SortedFunc(maps.Values(records), func(a, b record) int { return compareRefs(a.Ref, b.Ref) }) {
		if !r.wanted[rec.key()] {
			all = append(all, departure{record: rec})
		}
	}
	err := r.each(len(all), func(i int) (err error) {
		rec := all[i].record
		all[i], err = r.judgeLeaving(ctx, rec, r.live.get(rec.Ref), held)
		return err
	})
	if err == nil {
		err = r.judgeWhole(ctx, all, all)
	}
	if err != nil {
		return nil, err
	}
	inOrder(all)
	return all, nil
}

// heldUIDs are the objects that the set holds now, whatever their names: none of them leaves, though a record may know it under another one.
func (r *run) heldUIDs() map[types.UID]Ref {
	held := map[types.UID]Ref{}
	for _, o := range r.orders {
		if now := r.live.get(o.ref); now != nil {
			held[now.UID] = o.ref
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.results {
		if x.UID != "" {
			held[types.UID(x.UID)] = x.Ref
		}
	}
	return held
}

// judgeLeaving says what becomes of an object that left the set. It goes only when it is this set's own by its mark, nobody said to keep it, and it
// holds no data, or is named.
func (r *run) judgeLeaving(ctx context.Context, rec record, now *metav1.PartialObjectMetadata, held map[types.UID]Ref) (departure, error) {
	d := departure{record: rec, now: now}
	keep := func(forget bool, why string, args ...any) (departure, error) {
		d.action, d.why, d.forget = Kept, fmt.Sprintf(why, args...), forget
		return d, nil
	}
	if why := r.live.hidden(rec.Ref); why != nil {
		return keep(false, "nobody can tell whether it is there: %v", why)
	}
	if _, err := r.cluster.at(ctx, rec.Ref); meta.IsNoMatchError(err) {
		return keep(false, "its kind is not served, so nobody can tell whether it is there")
	} else if err != nil && !errors.Is(err, errNoNamespace) { // without a namespace it names nothing
		return d, err
	}
	if now == nil {
		d.action, d.forget = Absent, true
		return d, nil
	}
	d.stage = stageOf(rec.Ref, now)
	owner := now.Annotations[SetAnnotation]
	mark := keepMarkOf(now, r.opts.withdraw)
	if mark == "" {
		mark = rec.Keep
	}
	other, isHeld := held[now.UID]
	switch {
	case isHeld:
		return keep(true, "the set holds it as %s", other)
	case owner != "" && owner != r.set.ID():
		return keep(true, "it belongs to the set %s now", clip.Text(owner))
	case !r.marked(now) && owner == "" && rec.UID != "" && rec.UID != now.UID:
		return keep(true, "another object has its name now")
	case !r.marked(now) && owner == "":
		return keep(true, "it does not carry the mark of this set, so nothing shows that the set made it; to delete it: %s", deleteCommand(rec.Ref))
	case len(now.ManagedFields) == 0:
		return keep(true, "the server's notes of who set its fields are gone (metadata.managedFields), so nothing shows that the set made it; to delete it: %s",
			deleteCommand(rec.Ref))
	case !r.marked(now):
		return keep(true, "its mark was written by somebody else (%s), as in a copy; to delete it: %s", strings.Join(fewOf(managersOf(now)), ", "), deleteCommand(rec.Ref))
	case now.DeletionTimestamp != nil:
		d.action, d.why = Terminating, whyTerminating(now)
		return d, nil
	case mark != "":
		return keep(false, "%s; to delete it all the same: %s", whyKept(mark), deleteCommand(rec.Ref))
	case !r.plannedToGo(rec.Ref):
		return keep(false, "the plan did not say that it goes")
	}
	if why := r.whyNotDeleted(ctx, rec); why != "" {
		return keep(false, "%s", why)
	}
	d.action = Pruned
	return d, nil
}

// prune deletes what left the set, stage by stage. It returns the results and takes out of records what is gone or is not ours. What may serve an
// object that is still being deleted stays until that is gone; an object that can't be deleted stops no other of its stage.
func (r *run) prune(ctx context.Context, records map[Ref]record) ([]ObjectResult, error) {
	all, err := r.departures(ctx, records)
	if err != nil {
		return nil, err
	}
	whole, results, errs := all, []ObjectResult{}, []error{}
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(d departure) bool { return d.stage != all[0].stage })
		if n < 0 {
			n = len(all)
		}
		stage, later := all[:n], all[n:]
		if !r.opts.DryRun {
			if err := r.judgeWhole(ctx, whole, stage); err != nil {
				return results, errors.Join(append(errs, err)...)
			}
		}
		err := r.each(n, func(i int) error { return r.deleteLeaving(ctx, &stage[i]) })
		errs = append(errs, err)
		if (stage[0].stage.first() || r.opts.withdraw) && !r.opts.DryRun {
			held, err := r.awaitGone(ctx, stage, later)
			errs = append(errs, err)
			keepFor(later, held)
		}
		for _, d := range stage {
			results = r.tellLeaving(d, records, results)
		}
		all = later
		if ctx.Err() != nil {
			break
		}
	}
	return results, errors.Join(errs...)
}

// tellLeaving keeps what became of an object.
func (r *run) tellLeaving(d departure, records map[Ref]record, results []ObjectResult) []ObjectResult {
	if d.forget {
		delete(records, d.key())
	}
	if d.action == "" || d.action == Absent {
		return results
	}
	r.events.emit(Removed{Ref: d.Ref, Action: d.action, Why: d.why})
	return append(results, d.result())
}

// deleteLeaving deletes an object that is to go, in the state in which that was decided; else it is judged anew.
func (r *run) deleteLeaving(ctx context.Context, d *departure) error {
	if r.opts.DryRun {
		return nil
	}
	refusedAsItIs := false
	for try := 0; d.action == Pruned; try++ {
		if try == deleteTries {
			return r.failLeaving(d, &ObjectError{Ref: d.Ref, Class: ClassStale, Err: errAlwaysChanged})
		}
		at, err := r.cluster.at(ctx, d.Ref)
		if err != nil {
			return r.failLeaving(d, err)
		}
		err = r.retry.do(ctx, d.Ref, func(ctx context.Context) error {
			options := deleteExactly(d.now)
			if refusedAsItIs {
				options.Preconditions.ResourceVersion = nil
			}
			err := at.Delete(ctx, d.Name, options)
			if c := Classify(err); c == ClassNotFound || c == ClassStale {
				return nil // look again below
			}
			return err
		})
		if err != nil {
			return r.failLeaving(d, err)
		}
		uid := d.now.UID
		now, err := r.getMeta(ctx, at, d.Ref)
		if err != nil {
			return r.failLeaving(d, err)
		}
		switch {
		case now == nil || now.UID != uid:
			d.forget = true
			return nil
		case now.DeletionTimestamp != nil && len(now.Finalizers) == 0: // a grace period, which ends by itself
			d.now, d.forget = now, true
			return nil
		case now.DeletionTimestamp != nil:
			d.now, d.action, d.why = now, Terminating, whyTerminating(now)
			return nil
		}
		// The server refuses any version of an object with the finalizer "orphan", which anybody may give it, when what it owns is to go too.
		refusedAsItIs = now.ResourceVersion == d.now.ResourceVersion
		if *d, err = r.judgeLeaving(ctx, d.record, now, nil); err != nil {
			return r.failLeaving(d, err)
		}
	}
	return nil
}

// deleteTries bounds how often an object that is to go is judged anew because it changed between the look and the delete.
const deleteTries = 20

var errAlwaysChanged = errors.New("somebody changed it each time it was to be deleted")

// failLeaving notes that an object could not be deleted, and stays.
func (r *run) failLeaving(d *departure, err error) error {
	d.action, d.why, d.forget = Kept, whyRefused, false
	return err
}

const whyRefused = "it could not be deleted"

// deleteExactly deletes the object that was looked at and in the state in which its owner was read.
func deleteExactly(o *metav1.PartialObjectMetadata) metav1.DeleteOptions {
	background := metav1.DeletePropagationBackground
	return metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion},
		PropagationPolicy: &background,
	}
}

func whyTerminating(o *metav1.PartialObjectMetadata) string {
	if len(o.Finalizers) == 0 {
		return "it is being deleted"
	}
	return "it is being deleted, held by " + strings.Join(o.Finalizers, ", ")
}

// whyNotDeleted says why an object of the set stays though it left: it holds data and is not named. A Secret that can't be read is taken to hold
// data.
func (r *run) whyNotDeleted(ctx context.Context, rec record) string {
	const unnamed = "it holds data; name it to have it removed (Options.PruneData; jr2 apply --prune-data)"
	named := r.opts.withdraw || slices.ContainsFunc(r.opts.PruneData, func(x Ref) bool { return r.scopes.identity(x).key() == rec.key() })
	switch {
	case named:
		return ""
	case !holdsData(rec.Ref):
		loses, err := r.losesData(ctx, rec.Ref)
		switch {
		case loses:
			return "its PersistentVolumeClaims go with it (persistentVolumeClaimRetentionPolicy), so " + unnamed
		case err != nil && Classify(err) != ClassNotFound:
			return "nobody could look whether its PersistentVolumeClaims go with it: " + err.Error()
		}
		return ""
	case rec.Kind == "Secret" && r.isEmptySecret(ctx, rec.Ref):
		return ""
	}
	return unnamed
}

func (r *run) isEmptySecret(ctx context.Context, ref Ref) bool {
	var secret *corev1.Secret
	err := r.retry.do(ctx, ref, func(ctx context.Context) (err error) {
		secret, err = r.cluster.typed.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		return err
	})
	return err == nil && len(secret.Data) == 0
}

// deleteCommand is what a person types to delete an object.
func deleteCommand(ref Ref) string {
	kind := strings.ToLower(ref.Kind)
	if ref.Group != "" {
		kind += "." + ref.Group
	}
	command := "kubectl delete " + kind + " " + shellWord(ref.Name)
	if ref.Namespace != "" {
		command += " -n " + ref.Namespace
	}
	return command
}

// shellWord is a word for a shell. Names of roles may hold anything, and who makes one is not who pastes the command.
func shellWord(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.:@", c)
	}
	if word != "" && word[0] != '-' && strings.IndexFunc(word, func(c rune) bool { return !plain(c) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
