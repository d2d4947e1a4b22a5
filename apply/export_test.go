package apply

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

// WriteInventory stores records of refs in parts of at most limit bytes, and returns the number of objects that it takes.
func WriteInventory(ctx context.Context, client kubernetes.Interface, set *Set, limit int, refs []Ref) (int, error) {
	inv, err := loadInventory(ctx, client, set)
	if err != nil {
		return 0, err
	}
	inv.limit = limit
	records := map[Ref]record{}
	for _, r := range refs {
		records[r.key()] = record{Ref: r}
	}
	if err := inv.write(ctx, records); err != nil {
		return 0, err
	}
	names, err := chunkNames(inv.head)
	return 1 + len(names), err
}

// ReadInventory counts the records that are stored.
func ReadInventory(ctx context.Context, client kubernetes.Interface, set *Set) (int, error) {
	inv, err := loadInventory(ctx, client, set)
	if err != nil {
		return 0, err
	}
	return len(inv.records), nil
}

// Diff is what a plan says about an object that becomes another one.
func Diff(before, after *unstructured.Unstructured) []FieldChange { return diff(before, after) }

// ForgetHooks has the inventory forget which hooks succeeded, as a run that ended before that was written leaves it.
func ForgetHooks(ctx context.Context, client kubernetes.Interface, set *Set) error {
	inv, err := loadInventory(ctx, client, set)
	if err != nil {
		return err
	}
	inv.release.Done = nil
	return inv.write(ctx, inv.records)
}

// CheapSums are options with which the sum of a set costs nothing. It costs a hundred times more with the race detector than without.
func CheapSums(o Options) Options {
	o.sumWork = 1
	return o
}

// Most has a lock believe no Lease longer than that.
func (o LockOptions) Most(most time.Duration) LockOptions {
	o.most = most
	return o
}
