package assembly

import "context"

// A Publisher makes an Assembly the one that an Instance runs.
type Publisher interface {
	// Current names the hash of the current Assembly; found is false when there is none yet.
	Current(ctx context.Context) (hash string, found bool, err error)
	// Publish makes the Assembly current. Until it returns nil either the old or the new Assembly is current, whole.
	// Publishing what is current already checks and repairs what is stored.
	Publish(ctx context.Context, a *Assembly) error
	// WaitCurrent observes that the Assembly of this hash is current and whole, and returns the names of its Workflows, sorted.
	// It returns a *SupersededError when another one has become current.
	WaitCurrent(ctx context.Context, hash string) (workflows []string, err error)
}
