package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// prune deletes what the inventory lists and the set no longer holds, the last tier first. It returns the results and takes out of
// records what is gone or is not ours.
func (r *run) prune(ctx context.Context, records map[Ref]record) ([]ObjectResult, error) {
	var tiers [tierCount][]record
	for _, rec := range slices.SortedFunc(maps.Values(records), func(a, b record) int { return compareRefs(a.Ref, b.Ref) }) {
		if !r.wanted[rec.key()] {
			w := tierOf(rec.Ref)
			tiers[w] = append(tiers[w], rec)
		}
	}
	var all []ObjectResult
	for w := tierCount - 1; w >= 0; w-- {
		results := make([]ObjectResult, len(tiers[w]))
		forget := make([]bool, len(tiers[w]))
		err := r.each(len(tiers[w]), func(i int) (err error) {
			results[i], forget[i], err = r.pruneOne(ctx, tiers[w][i])
			return err
		})
		for i, rec := range tiers[w] {
			if forget[i] {
				delete(records, rec.key())
			}
			if results[i].Action != "" && results[i].Action != Absent {
				all = append(all, results[i])
				r.events.emit(Removed{Ref: rec.Ref, Action: results[i].Action, Why: results[i].Why})
			}
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// pruneOne deletes one object if it is the one that the inventory means. forget says that the inventory need not keep it.
func (r *run) pruneOne(ctx context.Context, rec record) (result ObjectResult, forget bool, err error) {
	kept := func(why string, args ...any) ObjectResult {
		return ObjectResult{Ref: rec.Ref, UID: string(rec.UID), Action: Kept, Why: fmt.Sprintf(why, args...)}
	}
	if why := r.live.hidden(rec.Ref); why != nil {
		return kept("nobody can tell whether it is there: %v", why), false, nil
	}
	at, err := r.cluster.at(ctx, rec.Ref)
	if meta.IsNoMatchError(err) {
		return kept("its kind is not served, so nobody can tell whether it is there"), false, nil
	}
	if err != nil {
		return ObjectResult{}, false, err
	}
	now := r.live.get(rec.Ref)
	for {
		if now == nil {
			return ObjectResult{Ref: rec.Ref, Action: Absent}, true, nil
		}
		owner := now.Annotations[SetAnnotation]
		switch {
		case owner != "" && owner != r.set.ID():
			return kept("it belongs to the set %s now", owner), true, nil
		case rec.UID != "" && rec.UID != now.UID && owner == "": // one with our mark was made again by a run that was cut off
			return kept("another object has its name now"), true, nil
		case rec.UID == "" && owner == "":
			return kept("nothing shows that this set made it"), true, nil
		case now.DeletionTimestamp != nil:
			return terminatingResult(rec.Ref, now), false, nil
		case !r.plannedToGo(rec.Ref):
			return kept("the plan did not say that it goes"), false, nil
		case !r.mayDelete(ctx, rec.Ref):
			return kept("it holds data; name it to have it removed"), false, nil
		case r.opts.DryRun:
			return ObjectResult{Ref: rec.Ref, UID: string(now.UID), Action: Pruned}, false, nil
		}
		err := r.retry.do(ctx, rec.Ref, func(ctx context.Context) error {
			err := at.Delete(ctx, rec.Name, deleteExactly(now))
			if c := Classify(err); c == ClassNotFound || c == ClassStale {
				return nil // look again below
			}
			return err
		})
		if err != nil {
			return ObjectResult{}, false, err
		}
		uid := now.UID
		if now, err = r.getMeta(ctx, at, rec.Ref); err != nil {
			return ObjectResult{}, false, err
		}
		pruned := ObjectResult{Ref: rec.Ref, UID: string(uid), Action: Pruned}
		if now == nil || now.UID != uid {
			return pruned, true, nil
		}
		if now.DeletionTimestamp != nil && len(now.Finalizers) == 0 { // a grace period that ends by itself
			return pruned, true, nil
		}
	}
}

// deleteExactly deletes the object that was looked at and in the state in which its owner was read.
func deleteExactly(o *metav1.PartialObjectMetadata) metav1.DeleteOptions {
	background := metav1.DeletePropagationBackground
	return metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion},
		PropagationPolicy: &background,
	}
}

func terminatingResult(ref Ref, o *metav1.PartialObjectMetadata) ObjectResult {
	why := "it is being deleted"
	if len(o.Finalizers) > 0 {
		why += ", held by " + strings.Join(o.Finalizers, ", ")
	}
	return ObjectResult{Ref: ref, UID: string(o.UID), Action: Terminating, Why: why}
}

// mayDelete keeps what holds data, unless it is named. A Secret that can't be read is taken to hold data.
func (r *run) mayDelete(ctx context.Context, ref Ref) bool {
	if !holdsData(ref) {
		return true
	}
	if slices.ContainsFunc(r.opts.PruneData, func(x Ref) bool { return x.key() == ref.key() }) {
		return true
	}
	if ref.Kind != "Secret" {
		return false
	}
	secret, err := r.cluster.typed.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	return err == nil && len(secret.Data) == 0
}
