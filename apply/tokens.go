package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

// awaitTokens waits until the token Secrets among those orders hold their token or are gone; the latter is a
// *TakenAwayError. It reads their metadata alone. The token controller does the one or the other, a moment after the
// write.
func (r *run) awaitTokens(ctx context.Context, indexes []int) error {
	groups := map[string]*tokenWait{}
	for _, i := range indexes {
		o := r.orders[i]
		uid := r.uidOf(i)
		if r.opts.DryRun || !o.isToken() || uid == "" {
			continue
		}
		g := groups[o.ref.Namespace]
		if g == nil {
			g = &tokenWait{r: r, opts: r.waitOptions().withDefaults(), left: map[string]*tokenItem{}}
			groups[o.ref.Namespace] = g
		}
		g.left[o.ref.Name] = &tokenItem{order: o, uid: uid}
	}
	all := slices.Sorted(maps.Keys(groups))
	return r.each(len(all), func(n int) error { return groups[all[n]].wait(ctx) })
}

// uidOf is the UID of what this run, or an earlier one, made of that order.
func (r *run) uidOf(i int) types.UID {
	r.mu.Lock()
	defer r.mu.Unlock()
	if uid := r.results[i].UID; uid != "" {
		return types.UID(uid)
	}
	return r.records[r.orders[i].ref.key()].UID
}

// A tokenWait waits for the token Secrets of one namespace.
type tokenWait struct {
	r     *run
	opts  WaitOptions
	begun time.Time
	left  map[string]*tokenItem // by name
	errs  []error
}

// A tokenItem is one Secret without a token.
type tokenItem struct {
	order order
	uid   types.UID
	why   string // why it is to go; "" when nothing says so
	told  string
}

func (w *tokenWait) wait(ctx context.Context) error {
	w.begun = time.Now()
	var one Ref
	for _, it := range w.left {
		one = it.order.ref
	}
	bounded, cancel := context.WithTimeout(ctx, w.opts.Timeout)
	defer cancel()
	at, err := w.r.cluster.at(bounded, one)
	if err == nil {
		src := metaSource(at, one.Name)
		if len(w.left) > 1 {
			ofType := fields.OneTermEqualSelector("type", string(corev1.SecretTypeServiceAccountToken))
			src.options.FieldSelector = ofType.String()
		}
		err = watchUntil(bounded, src, func(objs []runtime.Object) (look, error) { return w.see(bounded, objs), nil })
	}
	if Classify(err) == ClassForbidden {
		err = w.ask(bounded, at)
	}
	switch {
	case err == nil, Classify(err) == ClassForbidden: // one who may not read them can't be told
	case ctx.Err() != nil:
		w.errs = append(w.errs, w.late("the run ended: %s", context.Cause(ctx)))
	case bounded.Err() != nil:
		w.errs = append(w.errs, w.late("timed out after "+w.opts.Timeout.String()+": %s", context.DeadlineExceeded))
	default:
		w.errs = append(w.errs, err)
	}
	return errors.Join(w.errs...)
}

// ask reads the Secrets one by one, again and again, for a caller who may not list them.
func (w *tokenWait) ask(ctx context.Context, at metadata.ResourceInterface) error {
	for {
		var objs []runtime.Object
		for _, it := range w.left {
			now, err := w.r.getMeta(ctx, at, it.order.ref)
			if err != nil {
				return err
			}
			if now != nil {
				objs = append(objs, now)
			}
		}
		if w.see(ctx, objs).done {
			return nil
		}
		if err := sleep(ctx, waitAsk); err != nil {
			return err
		}
	}
}

// see takes in the Secrets as they are now.
func (w *tokenWait) see(ctx context.Context, objs []runtime.Object) look {
	there := map[string]*metav1.PartialObjectMetadata{}
	for _, o := range objs {
		if m, ok := o.(*metav1.PartialObjectMetadata); ok {
			there[m.Name] = m
		}
	}
	ties := w.r.newTies(func(Ref) bool { return false })
	patience := max(0, w.opts.Grace-time.Since(w.begun))
	var next look
	for _, name := range slices.Sorted(maps.Keys(w.left)) {
		it, now := w.left[name], there[name]
		switch {
		case now == nil || now.UID != it.uid:
			w.errs = append(w.errs, takenAway(it.order, now, ties.why(ctx, it.order, nil)))
		case hasToken(it.order, now):
			if it.told != "" {
				w.opts.Events(Unready{Ref: it.order.ref, Status: exists()})
			}
		default:
			// Of an account that the set has nothing else is known than that it was there a moment ago.
			named := it.order.body.GetAnnotations()[accountUID] != ""
			doubtful := named || !w.r.wanted[it.order.account().key()]
			if it.told == "" && doubtful || it.why != "" && patience == 0 {
				it.why = ties.why(ctx, it.order, now)
			}
			if it.why == "" || patience > 0 {
				w.tell(it)
				if it.why != "" {
					next.again = patience
				}
				continue
			}
			w.errs = append(w.errs, &TakenAwayError{Ref: it.order.ref, Going: true, Why: it.why})
		}
		delete(w.left, name)
	}
	next.done = len(w.left) == 0
	return next
}

// message is what the Secret waits for, and what would end that.
func (it *tokenItem) message() string {
	if it.why != "" {
		return it.why
	}
	return fmt.Sprintf("the token of %s is not made yet: the token controller of the cluster makes it, "+
		"or deletes the Secret when the account is not there", it.order.account())
}

// tell says what is waited for, when that is news.
func (w *tokenWait) tell(it *tokenItem) {
	if text := it.message(); it.told != text {
		it.told = text
		w.opts.Events(Unready{Ref: it.order.ref, Status: Status{Message: text}})
		w.opts.Events(Waiting{Ref: it.order.ref, Reason: text, Since: w.begun})
	}
}

// late joins an *UnreadyError for each Secret that still has no token.
func (w *tokenWait) late(verdict string, cause error) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(w.left)) {
		it := w.left[name]
		status, end := Status{Message: it.message()}, fmt.Sprintf(verdict, it.message())
		errs = append(errs, &UnreadyError{Ref: it.order.ref, Status: status, Verdict: end, Err: cause})
	}
	return errors.Join(errs...)
}

// hasToken reads from the metadata of a token Secret whether the token is there: whoever wrote it owns the field, and
// the token controller notes the UID of the account with it.
func hasToken(o order, now *metav1.PartialObjectMetadata) bool {
	for _, e := range now.ManagedFields {
		var owned struct {
			Data map[string]any `json:"f:data"`
		}
		if e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		if owned.Data["f:"+corev1.ServiceAccountTokenKey] != nil {
			return true
		}
	}
	return now.Annotations[accountUID] != "" && o.body.GetAnnotations()[accountUID] == ""
}
