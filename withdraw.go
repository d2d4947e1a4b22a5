package jr2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/occupants"
	"jr2.dev/jr2/placement/v1alpha1"
)

// withdrawRounds bounds how often a removal looks for what came while it removed: an Orchestrator that runs still makes Sandboxes.
const withdrawRounds = 5

// withdraw removes the objects of the Instance from a namespace that stays: its Sandboxes and Repos first, while the operator can let go of them, then
// what the set lists, then whatever else of it there is. Each is deleted as the object that was looked at, by its UID, and waited for.
func (d *down) withdraw(ctx context.Context, look *homeLook) error {
	defer func() { d.tellRemoved() }()
	for round := range withdrawRounds {
		if err := look.blind(); err != nil {
			return err
		}
		custom, rest := parted(look.found.Own, d.kept)
		if err := d.removeOwn(ctx, custom); err != nil {
			return err
		}
		if round == 0 || slices.ContainsFunc(look.found.Own, func(o occupants.Occupant) bool { return isInventory(o.Ref) }) {
			if err := d.withdrawSet(ctx); err != nil { // the list goes when all that it lists was seen to be gone
				return err
			}
		}
		if round > 0 && len(custom)+len(rest) == 0 {
			return nil
		}
		_, rest = parted(look.found.Own, d.kept)
		if err := d.removeOwn(ctx, rest); err != nil {
			return err
		}
		now, err := d.cluster.readNamespace(ctx)
		if err != nil || now == nil {
			return err
		}
		if look, err = d.lookHome(ctx, now); err != nil {
			return err
		}
	}
	return fmt.Errorf("objects of instance %q keep coming into namespace %q on %s: stop what makes them, and run it again", d.name, d.cluster.namespace, d.cluster.context)
}

// parted takes Sandboxes, Repos and what they own from the rest of the Instance's objects. The lock is in use; what is kept stays.
func parted(own []occupants.Occupant, kept map[types.UID]bool) (custom, rest []occupants.Occupant) {
	of := map[types.UID]bool{}
	for _, o := range own {
		if o.Group == v1alpha1.Group {
			of[o.UID] = true
		}
	}
	for _, o := range own {
		held := slices.ContainsFunc(o.Meta.OwnerReferences, func(owner metav1.OwnerReference) bool { return kept[owner.UID] })
		switch {
		case isLock(o.Ref) || isInventory(o.Ref) || kept[o.UID] || held:
		case of[o.UID] || slices.ContainsFunc(o.Meta.OwnerReferences, func(owner metav1.OwnerReference) bool { return of[owner.UID] }):
			custom = append(custom, o)
		default:
			rest = append(rest, o)
		}
	}
	return custom, rest
}

// isInventory says that an object is the list of what the set has, which goes with the last of it.
func isInventory(ref occupants.Ref) bool {
	return ref.Group == "" && ref.Kind == "ConfigMap" && strings.HasPrefix(ref.Name, apply.InventoryName(setInstance))
}

// withdrawSet removes what the inventory of the Instance's set lists.
func (d *down) withdrawSet(ctx context.Context) error {
	outcome, err := apply.Withdraw(ctx, d.cluster.config, setInstance, d.cluster.namespace, apply.Options{
		Ready: apply.WaitOptions{Timeout: d.opts.Timeout}, Events: d.tellApply,
	})
	for _, result := range outcome.Objects {
		if result.Action == apply.Kept {
			d.kept[types.UID(result.UID)] = true
		}
		d.record(result)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", layerInstance, err)
	}
	return nil
}

func (d *down) removeOwn(ctx context.Context, objects []occupants.Occupant) error {
	removed, err := d.removeExactly(ctx, objects)
	for _, result := range removed {
		d.record(result)
	}
	return err
}

// record keeps what became of an object, the last word last said.
func (d *down) record(result apply.ObjectResult) {
	at := slices.IndexFunc(d.result.Removed, func(other apply.ObjectResult) bool { return other.UID == result.UID && result.UID != "" })
	switch {
	case result.Action == apply.Absent:
	case at >= 0:
		d.result.Removed[at] = result
	default:
		d.result.Removed = append(d.result.Removed, result)
	}
}

// removeExactly deletes these objects, and no others that have their names by now, and waits until they are gone. What another of them owns is left to the
// garbage collector, and waited for.
func (d *down) removeExactly(ctx context.Context, objects []occupants.Occupant) (removed []apply.ObjectResult, err error) {
	if len(objects) == 0 {
		return nil, nil
	}
	client, err := metadata.NewForConfig(d.cluster.config)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		d.dependents[o.UID] = true
	}
	background := metav1.DeletePropagationBackground
	for _, o := range objects {
		if o.Owned && !o.Orphan || o.Terminating {
			continue
		}
		exactly := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.UID}, PropagationPolicy: &background}
		err := client.Resource(o.Resource).Namespace(o.Namespace).Delete(ctx, o.Name, exactly)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // gone, or another one has its name
			ref := apply.Ref(o.Ref)
			return nil, fmt.Errorf("remove %s: %w", ref, &apply.ObjectError{Ref: ref, Class: apply.Classify(err), Err: err})
		}
	}
	for _, o := range objects {
		if err := d.waitObjectGone(ctx, client, o); err != nil {
			return removed, err
		}
		if !o.Owned {
			removed = append(removed, apply.ObjectResult{Ref: apply.Ref(o.Ref), UID: string(o.UID), Action: apply.Pruned})
		}
	}
	return removed, nil
}

// waitObjectGone waits until the object is gone, or another one has its name. One that stays is a *HeldError that names its finalizers.
func (d *down) waitObjectGone(ctx context.Context, client metadata.Interface, o occupants.Occupant) error {
	var holders []string
	told := ""
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, d.opts.Timeout, true, func(ctx context.Context) (bool, error) {
		now, err := client.Resource(o.Resource).Namespace(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.UID != o.UID {
			return true, nil
		}
		if err != nil {
			if apply.Classify(err).Retryable() {
				return false, nil
			}
			return false, err
		}
		holders = now.Finalizers
		if text := strings.Join(holders, ", "); text != "" && text != told {
			told = text
			d.tell(ObjectWaiting{Object: o.Ref.String(), Reason: "held by " + text})
		}
		return false, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !wait.Interrupted(err):
		return fmt.Errorf("wait for the end of %s: %w", o.Ref, err)
	}
	text := fmt.Sprintf("it is still being deleted after %s", d.opts.Timeout)
	if len(holders) > 0 {
		text += ", held by " + strings.Join(holders, ", ")
	}
	ref := apply.Ref(o.Ref)
	return &HeldError{Object: ref.String(), Err: &apply.ObjectError{Ref: ref, Class: apply.ClassBeingDeleted, Err: errors.New(text)}}
}

// tellRemoved tells what a removal took out of a namespace that stays, also when it was ended.
func (d *down) tellRemoved() {
	told := InstanceRemoved{Namespace: d.cluster.namespace, Changes: []Change{}}
	for _, result := range d.result.Removed {
		told.Changes = append(told.Changes, Change{Action: string(result.Action), Object: result.Ref.String(), Why: result.Why})
	}
	d.tell(told)
}
