package apply

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TryLock makes the write of Lock by dry run, in one request: a create where now is nil, else the update of that Lease, whoever holds it. The error is an
// *ObjectError; nil also where somebody wrote the Lease meanwhile, because a Lock tries again then.
func TryLock(ctx context.Context, client kubernetes.Interface, namespace, name, identity string, now *coordinationv1.Lease) error {
	l := &lease{
		leases: client.CoordinationV1().Leases(namespace), namespace: namespace, name: name, holder: identity,
		opts: LockOptions{Duration: defaultLock}, dryRun: []string{metav1.DryRunAll},
	}
	write := l.create
	if now != nil {
		write = func(ctx context.Context) error { return l.take(ctx, now) }
	}
	ref := Ref{Group: coordinationv1.GroupName, Version: "v1", Kind: "Lease", Namespace: namespace, Name: name}
	return tried(ref, write(ctx))
}

// TryInventory makes by dry run, after one read, a write of the ConfigMap that lists the objects of a set: a create of its
// first part, or an update with the data that it has. The error is an *ObjectError; nil also where somebody wrote it meanwhile.
func TryInventory(ctx context.Context, client kubernetes.Interface, set *Set) error {
	inv, err := loadInventory(ctx, client, set)
	if err != nil {
		return fmt.Errorf("inventory of the set %s: %w", set.ID(), err)
	}
	texts, err := split(inv.records, inv.limit)
	if err != nil {
		return err
	}
	data := map[string]string{recordsKey: texts[0]}
	if inv.head == nil {
		_, err = inv.maps.Create(ctx, inv.object(InventoryName(set.Name), data), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return tried(inv.ref(), err)
	}
	next := inv.object(inv.head.Name, inv.head.Data) // it is not immutable, which an immutable one refuses
	next.ResourceVersion, next.UID = inv.head.ResourceVersion, inv.head.UID
	_, err = inv.maps.Update(ctx, next, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	return tried(inv.ref(), err)
}

func tried(ref Ref, err error) error {
	switch c := Classify(err); c {
	case ClassNone, ClassStale, ClassAlreadyExists:
		return nil
	default:
		return &ObjectError{Ref: ref, Class: c, Err: err}
	}
}
