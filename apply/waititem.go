package apply

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// A waitEnd is how the wait for one object ended.
type waitEnd string

const (
	endReady  waitEnd = "ready"
	endFailed waitEnd = "unready"
)

// A waitItem is one object that is waited for.
type waitItem struct {
	ref  Ref
	uid  types.UID
	obj  *unstructured.Unstructured // as last seen; nil before
	gone string                     // why there is no object any more
	err  error                      // why it can't be looked at

	news  bool      // something changed since the last look
	again time.Time // when to look though nothing changed

	judge   progressJudge
	status  Status
	refused *refusal
	// excused is the progress deadline that was exceeded while the object waited for what it can't make itself.
	excused time.Time
	// held is since when it waits on something, and paused how long it did so before.
	held   time.Time
	since  time.Time // since when the cluster says so; zero when it does not tell
	paused time.Duration
	// doubted is since when its pods are refused for a cause that may end by itself.
	doubted time.Time

	kept    *PodEvidence   // of a Job's last failure
	read    map[string]int // by pod: how many of its failures were read
	reading bool

	end     waitEnd
	verdict string
	cause   error
}

// see takes in the object as it is now.
func (it *waitItem) see(o *unstructured.Unstructured) {
	switch {
	case it.end != "" || it.obj != nil && it.obj.GetResourceVersion() == o.GetResourceVersion():
		return
	case it.uid != "" && it.uid != o.GetUID():
		it.lose()
		return
	}
	it.obj, it.uid, it.news = o, o.GetUID(), true
}

// lose notes that the object is not there. One that was seen to end well before is over already.
func (it *waitItem) lose() {
	it.news = true
	switch {
	case it.obj == nil:
		it.gone = "it does not exist"
	case it.ends():
		it.gone = removedText
	default:
		it.gone = deletedText
	}
}

const (
	removedText = "it was removed before it finished"
	deletedText = "it was deleted while it was waited for"
)

func endsByItself(ref Ref) bool {
	return ref.Group == "batch" && ref.Kind == "Job" || ref.Group == "" && ref.Kind == "Pod"
}

// ends says that the object is one that ends, so that its end counts and not whether it is still there: a Job, a pod, or a hook of any
// kind, which its own controller may collect when it is done.
func (it *waitItem) ends() bool {
	return endsByItself(it.ref) || it.obj != nil && it.obj.GetAnnotations()[HookAnnotation] != ""
}

// makesPods says that the scene of the namespace tells more about an object than its own status.
func makesPods(ref Ref) bool {
	switch ref.Group + "/" + ref.Kind {
	case "apps/Deployment", "apps/StatefulSet", "apps/DaemonSet", "apps/ReplicaSet", "batch/Job":
		return true
	}
	return false
}

func (it *waitItem) fail(verdict string, cause error) {
	it.end, it.verdict, it.cause = endFailed, verdict, cause
}

// look judges an object.
func (w *waiter) look(it *waitItem, now time.Time) {
	switch {
	case it.err != nil && Classify(it.err) == ClassForbidden && readyAtOnce(it.ref.GroupVersionKind().GroupKind()):
		it.end = endReady // only a Reader could have told more
		return
	case it.err != nil:
		it.fail(it.err.Error(), it.err)
		return
	case it.gone != "":
		w.lookBack(it)
		return
	case it.obj == nil:
		return
	}
	status, again := it.judge.see(w.read(it.obj), now)
	if status.Failed && !status.FailedAt.IsZero() && status.FailedAt.Equal(it.excused) {
		status.Failed = false
	}
	it.again, it.since = time.Time{}, time.Time{}
	if c := conditionsOf(it.obj)[string(corev1.PodScheduled)]; c != nil {
		it.since = c.at
	}
	if again > 0 {
		it.again = now.Add(again)
	}
	if !status.Done && makesPods(it.ref) {
		status = w.lookAround(it, status, now)
	}
	w.note(it, status, now)
	switch {
	case status.Done:
		it.end = endReady
	case status.Failed:
		it.fail(status.Message, nil)
	default:
		w.clock(it, now)
	}
}

// lookBack judges an object that is gone: what was seen of one that ends by itself counts.
func (w *waiter) lookBack(it *waitItem) {
	if it.obj != nil && it.ends() {
		switch status := w.read(it.obj); {
		case status.Done:
			it.end = endReady
			return
		case status.Failed:
			it.fail(status.Message, nil)
			return
		}
	}
	it.fail(it.gone, nil)
}

// read is the object's status by the caller's readers, Ready, and what only another request can tell.
func (w *waiter) read(o *unstructured.Unstructured) Status {
	status, told := w.opts.status(o)
	if !told && o.GetKind() == "PersistentVolumeClaim" && o.GroupVersionKind().Group == "" && !status.Done && !status.Failed {
		return w.readClaim(o, status)
	}
	return status
}

// note tells a change of the status.
func (w *waiter) note(it *waitItem, status Status, now time.Time) {
	last := it.status
	it.status = status
	if status.On == "" && !it.held.IsZero() {
		it.paused += now.Sub(it.held)
		it.held = time.Time{}
	}
	if status.On != "" && it.held.IsZero() {
		it.held = now
	}
	if status == last || status.Done && status.Note == "" && last == (Status{}) { // ready at the first look is no news
		return
	}
	w.events.emit(Unready{Ref: it.ref, Status: status})
	if status.On != "" && (status.On != last.On || status.Message != last.Message) {
		w.events.emit(Waiting{Ref: it.ref, Reason: status.Message, Since: earliest(it.since, it.held)})
	}
}

// clock fails an object whose time is over, or sets the time at which it will be.
func (w *waiter) clock(it *waitItem, now time.Time) {
	limit, begun, what := max(w.opts.Timeout, w.care.limits[it.ref.key()]), w.begun.Add(it.paused), "timed out after %s: %s"
	if it.status.On != "" {
		if w.opts.Waiting == 0 {
			return
		}
		limit, begun, what = w.opts.Waiting, it.held.Add(-it.paused), "still waits after %s: %s"
		if limit < 0 {
			it.fail(fmt.Sprintf("it waits on a %s: %s", it.status.On, it.status.Message), nil)
			return
		}
	}
	end := begun.Add(limit)
	if !now.Before(end) {
		it.fail(fmt.Sprintf(what, limit, it.status.Message), context.DeadlineExceeded)
		return
	}
	it.again = earliest(it.again, end)
}
