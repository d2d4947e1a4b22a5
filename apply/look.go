package apply

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"
)

// live is the metadata of the objects that exist, by key. A Ref that is not in it does not exist, or its kind is not served yet, or
// nobody could look.
type live struct {
	mu     sync.Mutex
	objs   map[Ref]*metav1.PartialObjectMetadata
	unseen map[Ref]error // why nobody could look
	listed map[place]bool
}

func newLive() *live {
	return &live{objs: map[Ref]*metav1.PartialObjectMetadata{}, listed: map[place]bool{}}
}

func (l *live) get(r Ref) *metav1.PartialObjectMetadata {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.objs[r.key()]
}

func (l *live) put(r Ref, o *metav1.PartialObjectMetadata) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.objs[r.key()] = o
	delete(l.unseen, r.key())
}

func (l *live) wasListed(p place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listed[p] = true
}

// hide notes that nobody could look at some objects.
func (l *live) hide(refs []Ref, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unseen == nil {
		l.unseen = map[Ref]error{}
	}
	for _, r := range refs {
		l.unseen[r.key()] = why
	}
}

// hidden says why nobody could look at an object; nil when somebody did.
func (l *live) hidden(r Ref) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unseen[r.key()]
}

// A place is where one list finds objects: a kind in one namespace, or a cluster-scoped kind.
type place struct {
	group, kind, namespace string
}

func (r Ref) place() place { return place{r.Group, r.Kind, r.Namespace} }

// lookAt reads the metadata of all the refs: one list for each kind and namespace, one get where there is a single object. A kind
// that is not served has no objects; whether that is an error shows when one is to be written. A group whose own server is away is no
// reason to leave the rest of the set alone: its objects are looked at when they are to be written.
//
// The lists ask for the newest state and not for the one that the server has at hand (resourceVersion "0"): what an older state shows as
// unchanged may have been changed. The server answers both from its memory. They are metadata alone, in protobuf.
func (r *run) lookAt(ctx context.Context, refs []Ref) error { return r.lookInto(ctx, refs, r.live) }

// lookInto is lookAt that keeps elsewhere what it finds.
func (r *run) lookInto(ctx context.Context, refs []Ref, found *live) error {
	places := map[place][]Ref{}
	var order []place
	for _, ref := range refs {
		p := ref.place()
		if found.listed[p] {
			continue
		}
		if places[p] == nil {
			order = append(order, p)
		}
		places[p] = append(places[p], ref)
	}
	return r.each(len(order), func(i int) error { return r.lookIn(ctx, places[order[i]], found) })
}

func (r *run) lookIn(ctx context.Context, refs []Ref, found *live) error {
	var mapping *meta.RESTMapping
	err := r.retry.do(ctx, refs[0], func(context.Context) (err error) {
		mapping, err = r.cluster.mapping(ctx, refs[0])
		if one := (*awayError)(nil); errors.As(err, &one) {
			found.hide(refs, err)
			return nil
		}
		if meta.IsNoMatchError(err) {
			return nil
		}
		return err
	})
	if err != nil || mapping == nil {
		return err
	}
	at, err := r.cluster.in(mapping, refs[0])
	if errors.Is(err, errNoNamespace) && !r.wanted[refs[0].key()] {
		return nil // a record from when its kind had no namespaces, or one that somebody wrote
	}
	if err != nil {
		return err
	}
	if len(refs) > 1 {
		err := r.retry.do(ctx, refs[0], func(ctx context.Context) error { return list(ctx, at, refs[0], found) })
		if err == nil {
			found.wasListed(refs[0].place())
		}
		if Classify(err) != ClassForbidden {
			return err
		}
	}
	former := 0
	for _, ref := range refs { // also where the caller may read these objects and not list all
		if !r.wanted[ref.key()] {
			if former++; former > mostGets {
				found.hide([]Ref{ref}, errTooManyPlaces)
				continue
			}
		}
		o, err := r.getMeta(ctx, at, ref)
		if r.mayStayUnseen(ref, err) || apierrors.IsForbidden(err) && !r.wanted[ref.key()] { // a record alone stops nothing
			found.hide([]Ref{ref}, err)
			continue
		}
		if err != nil {
			return err
		}
		if o != nil {
			found.put(ref, o)
		}
	}
	return nil
}

func list(ctx context.Context, at metadata.ResourceInterface, like Ref, found *live) error {
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return at.List(ctx, o) })
	return p.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		m, ok := o.(*metav1.PartialObjectMetadata)
		if !ok {
			return nil
		}
		like.Name = m.Name
		found.put(like, m)
		return nil
	})
}

// getMeta returns the metadata of an object, or nil when it does not exist.
func (r *run) getMeta(ctx context.Context, at metadata.ResourceInterface, ref Ref) (*metav1.PartialObjectMetadata, error) {
	var got *metav1.PartialObjectMetadata
	err := r.retry.do(ctx, ref, func(ctx context.Context) (err error) {
		got, err = at.Get(ctx, ref.Name, metav1.GetOptions{})
		if Classify(err) == ClassNotFound && apierrors.IsNotFound(err) {
			got = nil
			return nil
		}
		return err
	})
	return got, err
}

// seen looks at an object that nobody could look at before, and refuses it when it is another set's.
func (r *run) seen(ctx context.Context, ref Ref) error {
	if r.live.hidden(ref) == nil {
		return nil
	}
	var at metadata.ResourceInterface
	err := r.retry.do(ctx, ref, func(context.Context) (err error) {
		if at, err = r.cluster.at(ctx, ref); meta.IsNoMatchError(err) {
			return nil // the write has its own way with these
		}
		return err
	})
	if err != nil || at == nil {
		return err
	}
	now, err := r.getMeta(ctx, at, ref)
	if err != nil {
		return err
	}
	r.live.put(ref, now)
	if now == nil {
		return nil
	}
	return r.claim(ref, now)
}
