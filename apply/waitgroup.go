package apply

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// A waitGroup is the objects of one kind in one namespace, which share a list.
type waitGroup struct {
	items map[string]*waitItem // by name
	leave context.CancelFunc
}

// leaveWhenOver ends the watch of a group that has nothing left to wait for.
func (g *waitGroup) leaveWhenOver() {
	for _, it := range g.items {
		if it.end == "" {
			return
		}
	}
	g.leave()
}

// any is one of the group's objects.
func (g *waitGroup) any() (ref Ref) {
	for _, it := range g.items {
		return it.ref
	}
	return ref
}

func (w *waiter) watchGroup(g *waitGroup) {
	ctx, cancel := context.WithCancel(w.ctx)
	g.leave = cancel
	see := func(objs []runtime.Object) error { return w.tell(ctx, func() { g.see(objs) }) }
	w.running.Go(func() {
		defer cancel()
		at, err := w.resource(ctx, g.any())
		if err == nil {
			src := dynamicSource(at)
			if len(g.items) == 1 {
				src.options = named(g.any().Name)
			}
			err = w.follow(ctx, src, see)
		}
		if at != nil && Classify(err) == ClassForbidden {
			err = w.ask(ctx, g, at, see)
		}
		if err != nil && ctx.Err() == nil {
			_ = w.tell(ctx, func() { g.giveUp(err) })
		}
	})
}

// resource finds the resource of a kind. A kind that is not known may have come since the last look at what is served.
func (w *waiter) resource(ctx context.Context, ref Ref) (dynamic.ResourceInterface, error) {
	delay, again := firstDelay, true
	for {
		at, err := w.cluster.full(ctx, ref)
		switch c := Classify(err); {
		case c == ClassNoMatch && again:
			again = false
			w.cluster.mapper.reset()
			continue
		case c != ClassUnavailable && c != ClassThrottled:
			return at, err
		}
		if err := sleep(ctx, delay); err != nil {
			return nil, err
		}
		delay = min(delay*2, lastDelay)
	}
}

func dynamicSource(at dynamic.ResourceInterface) source {
	return source{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return at.List(ctx, o) },
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return at.Watch(ctx, o) },
	}
}

// follow watches a source until ctx ends, and takes turns with others for the lists.
func (w *waiter) follow(ctx context.Context, src source, see func([]runtime.Object) error) error {
	list := src.list
	src.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		select {
		case w.lists <- struct{}{}:
			defer func() { <-w.lists }()
			return list(ctx, o)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return watchUntil(ctx, src, func(objs []runtime.Object) (look, error) { return look{}, see(objs) })
}

// waitAsk is how often objects are read that the caller may get but not list or watch.
const waitAsk = 2 * time.Second

// ask reads the objects of a group one by one, again and again: the only way for a caller who may not list them.
func (w *waiter) ask(ctx context.Context, g *waitGroup, at dynamic.ResourceInterface, see func([]runtime.Object) error) error {
	for {
		objs, err := getAll(ctx, g, at)
		switch c := Classify(err); {
		case err == nil:
			err = see(objs)
		case c == ClassUnavailable || c == ClassThrottled:
			err = nil
		}
		if err != nil {
			return err
		}
		if err := sleep(ctx, waitAsk); err != nil {
			return err
		}
	}
}

func getAll(ctx context.Context, g *waitGroup, at dynamic.ResourceInterface) (objs []runtime.Object, err error) {
	for name := range g.items {
		o, err := at.Get(ctx, name, metav1.GetOptions{})
		if Classify(err) == ClassNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		objs = append(objs, o)
	}
	return objs, nil
}

// see takes in the list as it is now.
func (g *waitGroup) see(objs []runtime.Object) {
	there := make(map[string]bool, len(g.items))
	for _, o := range objs {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		if it := g.items[u.GetName()]; it != nil {
			there[u.GetName()] = true
			it.see(u)
		}
	}
	for name, it := range g.items {
		if it.end == "" && !there[name] {
			it.lose()
		}
	}
}

// giveUp ends the wait for objects that can't be looked at.
func (g *waitGroup) giveUp(err error) {
	for _, it := range g.items {
		it.err, it.news = errors.Join(it.err, err), true
	}
}
