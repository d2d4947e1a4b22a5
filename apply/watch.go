package apply

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// A source is a list that can be watched. client-go's reflector does the same, but reports trouble to the process's log; here it ends
// in the caller's error or is ridden out.
type source struct {
	options metav1.ListOptions
	list    func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch   func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// named restricts a source to one object.
func named(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
}

// A look is what a watcher saw.
type look struct {
	done bool
	// again asks to look at the same objects again after that time, though nothing may have changed.
	again time.Duration
}

// watchUntil shows see the objects of the source, each time that they change, until it is done or returns an error. It resumes a
// broken watch where it ended, lists again when the server has forgotten that point, and rides out a server that is away until ctx
// ends; then the error is the cause of that end.
func watchUntil(ctx context.Context, src source, see func([]runtime.Object) (look, error)) error {
	w := watcher{src: src, see: see, delay: firstDelay}
	for {
		err := w.listAndWatch(ctx)
		var own seeError
		switch {
		case errors.As(err, &own):
			return own.error
		case w.last.done:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !Classify(err).Retryable():
			return err
		}
		if err := sleep(ctx, w.delay); err != nil {
			return err
		}
		w.delay = min(w.delay*2, lastDelay)
	}
}

type watcher struct {
	src   source
	see   func([]runtime.Object) (look, error)
	last  look
	objs  map[string]runtime.Object
	delay time.Duration
}

// A seeError is an error of the caller's own function, which is never retried.
type seeError struct{ error }

func (w *watcher) show() error {
	objs := make([]runtime.Object, 0, len(w.objs))
	for _, k := range slices.Sorted(maps.Keys(w.objs)) {
		objs = append(objs, w.objs[k])
	}
	var err error
	w.last, err = w.see(objs)
	if err != nil {
		return seeError{err}
	}
	return nil
}

func (w *watcher) listAndWatch(ctx context.Context) error {
	list, err := w.src.list(ctx, w.src.options)
	if err != nil {
		return err
	}
	w.objs = map[string]runtime.Object{}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	for _, o := range items {
		w.objs[keyOf(o)] = o
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	version := accessor.GetResourceVersion()
	if err := w.show(); err != nil || w.last.done {
		return err
	}
	for ctx.Err() == nil {
		options := w.src.options
		options.ResourceVersion, options.AllowWatchBookmarks = version, true
		stream, err := w.src.watch(ctx, options)
		if err != nil {
			if Classify(err) != ClassUnavailable && Classify(err) != ClassThrottled {
				return err
			}
		} else {
			err = w.follow(ctx, stream, &version)
			stream.Stop()
			if err != nil || w.last.done {
				return err
			}
		}
		if err := sleep(ctx, w.delay); err != nil {
			return err
		}
		w.delay = min(w.delay*2, lastDelay)
	}
	return context.Cause(ctx)
}

// follow reads one watch to its end; nil means that it can be resumed at version.
func (w *watcher) follow(ctx context.Context, stream watch.Interface, version *string) error {
	for {
		var again <-chan time.Time
		if w.last.again > 0 {
			again = time.After(w.last.again)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again:
		case e, open := <-stream.ResultChan():
			if !open {
				return nil
			}
			if e.Type == watch.Error {
				return apierrors.FromObject(e.Object)
			}
			w.delay = firstDelay
			o, err := meta.Accessor(e.Object)
			if err != nil {
				return err
			}
			*version = o.GetResourceVersion()
			switch e.Type {
			case watch.Bookmark:
				continue
			case watch.Deleted:
				delete(w.objs, keyOf(e.Object))
			default:
				w.objs[keyOf(e.Object)] = e.Object
			}
		}
		if err := w.show(); err != nil || w.last.done {
			return err
		}
	}
}

func keyOf(o runtime.Object) string {
	m, err := meta.Accessor(o)
	if err != nil {
		return ""
	}
	return m.GetNamespace() + "/" + m.GetName()
}
