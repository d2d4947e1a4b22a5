package assembly

import (
	"context"
	"maps"
	"time"

	"k8s.io/client-go/kubernetes"
)

const (
	// chunkSize keeps a chunk well below what etcd takes as one value (1.5 MiB) and what a ConfigMap may hold (1 MiB).
	chunkSize = 768 << 10
	// orphanAge is how long a chunk that nobody points to is left alone: a publisher may be about to point to it.
	orphanAge = time.Hour
	// maxRaces bounds how often a publisher or a reader starts again because the pointer moved under it.
	maxRaces = 50

	fieldManager = "jr2"
)

// ClusterPublisher stores Assemblies as ConfigMaps in the namespace of the Instance: immutable chunks that are named by the content,
// and one pointer that names the current and the previous Assembly. It is the default Publisher. docs/assembly.md describes it all.
//
// A publish that is cut off at any request leaves the old or the new Assembly current, whole. Of two publishers at the same time the
// one that writes the pointer last wins; what is current is never a mix.
type ClusterPublisher struct {
	// Warn receives why a chunk that nobody needs could not be removed; a later Publish tries again. Nil discards.
	Warn func(error)
	// Adopt publishes over ConfigMaps of the Assembly's names that somebody else made. Without it each is a *ForeignError.
	Adopt bool

	client    kubernetes.Interface
	namespace string
	labels    map[string]string
	chunkSize int
	orphanAge time.Duration
	now       func() time.Time
}

var _ Publisher = (*ClusterPublisher)(nil)

// Cluster returns the Publisher of one namespace, which must exist. The labels go on every ConfigMap that it makes.
func Cluster(client kubernetes.Interface, namespace string, labels map[string]string) *ClusterPublisher {
	return &ClusterPublisher{
		client: client, namespace: namespace, labels: maps.Clone(labels),
		chunkSize: chunkSize, orphanAge: orphanAge, now: time.Now,
	}
}

// Current reads the pointer alone: it does not look whether the chunks are there. WaitCurrent does.
func (p *ClusterPublisher) Current(ctx context.Context) (hash string, found bool, err error) {
	pointer, err := getPointer(ctx, p.client, p.namespace)
	if err != nil || pointer == nil {
		return "", false, err
	}
	if err := p.claim(pointer); err != nil {
		return "", false, err
	}
	state, err := stateOf(pointer)
	if err != nil || state.Current == nil {
		return "", false, err
	}
	return state.Current.Hash, true, nil
}

// WaitCurrent reads the pointer and every chunk from the cluster, puts the archive together, checks it and returns the names of the
// Workflows in its manifest. It observes the store at once and waits for nothing, because a pointer moves in one write. Errors:
// *SupersededError; *BrokenError when what is current is not whole, which Publish repairs.
func (p *ClusterPublisher) WaitCurrent(ctx context.Context, hash string) ([]string, error) {
	a, err := Read(ctx, p.client, p.namespace)
	if err != nil {
		return nil, err
	}
	if a == nil {
		return nil, &SupersededError{Want: hash}
	}
	if a.Hash != hash {
		return nil, &SupersededError{Want: hash, Have: a.Hash}
	}
	return a.Manifest.Workflows, nil
}

// SupersededError says that another Assembly is current than the one that was waited for: another converge has published since.
type SupersededError struct {
	Want string
	Have string // empty when none is current
}

func (e *SupersededError) Error() string {
	if e.Have == "" {
		return "assembly: " + e.Want + " was published and no Assembly is current: something removed it"
	}
	return "assembly: " + e.Want + " was published and " + e.Have + " is current: another converge published it"
}
