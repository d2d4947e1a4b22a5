package provision

import (
	"context"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"

	"jr2.dev/jr2/placement/v1alpha1"
)

// A look is a Sandbox as it was seen, nil when there is none, or the error that ended the looking.
type look struct {
	sandbox *v1alpha1.Sandbox
	err     error
}

// follow shows a Sandbox each time that it changes, beginning with what it is now, until ctx ends; then the channel is closed.
func (c *client) follow(ctx context.Context, name string) <-chan look {
	looks := make(chan look)
	go func() {
		defer close(looks)
		send := func(l look) bool {
			select {
			case looks <- l:
				return true
			case <-ctx.Done():
				return false
			}
		}
		list := func(options metav1.ListOptions) (string, error) {
			boxes, err := c.sandboxes.List(ctx, options)
			if err != nil {
				return "", err
			}
			var now *v1alpha1.Sandbox
			if len(boxes.Items) > 0 {
				now = &boxes.Items[0]
			}
			send(look{sandbox: now})
			return boxes.ResourceVersion, nil
		}
		see := func(e watch.Event) {
			box, ok := e.Object.(*v1alpha1.Sandbox)
			if !ok {
				return
			}
			if e.Type == watch.Deleted {
				box = nil
			}
			send(look{sandbox: box})
		}
		options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
		if err := listAndWatch(ctx, options, list, c.sandboxes.Watch, see); err != nil && ctx.Err() == nil {
			send(look{err: err})
		}
	}()
	return looks
}

type watchFunc func(context.Context, metav1.ListOptions) (watch.Interface, error)

// listAndWatch lists, and watches from there until ctx ends. A watch that breaks is resumed where it ended; when the server has forgotten
// that point the list is read again; a server that is away is waited for. The error is one that the server answers again and again, such as
// missing rights.
func listAndWatch(ctx context.Context, options metav1.ListOptions, list func(metav1.ListOptions) (string, error), open watchFunc, see func(watch.Event)) error {
	quiet := klog.NewContext(ctx, logr.Discard()) // client-go tells the process's log of what is ridden out here
	for delay := firstDelay; ctx.Err() == nil; delay = min(2*delay, lastDelay) {
		version, err := list(options)
		if err != nil && !away(err) {
			return err
		}
		if err == nil {
			stream := &resumable{options: options, open: open}
			watcher, err := watchtools.NewRetryWatcherWithContext(quiet, version, stream)
			if err != nil {
				return err
			}
			began := time.Now()
			for e := range watcher.ResultChan() {
				if e.Type != watch.Error {
					see(e)
				}
			}
			watcher.Stop()
			if stream.refused != nil {
				return stream.refused
			}
			if time.Since(began) > lastDelay {
				delay = firstDelay
			}
		}
		if !pause(ctx, delay) {
			break
		}
	}
	return context.Cause(ctx)
}

// How long is waited before a list is read again.
const (
	firstDelay = 100 * time.Millisecond
	lastDelay  = 5 * time.Second
)

// resumable opens the watches of a RetryWatcher.
type resumable struct {
	options metav1.ListOptions
	open    watchFunc
	// refused is an answer that no retry changes. It is read when the RetryWatcher has ended.
	refused error
}

// WatchWithContext implements cache.WatcherWithContext. A RetryWatcher tries for ever what it does not know: an answer of the server that is
// no sign of its being away ends it.
func (r *resumable) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.FieldSelector, options.LabelSelector = r.options.FieldSelector, r.options.LabelSelector
	stream, err := r.open(ctx, options)
	if err == nil || away(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		return stream, err
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		r.refused = err
	}
	ended := make(chan watch.Event, 1)
	ended <- watch.Event{Type: watch.Error, Object: &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired}}
	return watch.NewProxyWatcher(ended), nil
}
