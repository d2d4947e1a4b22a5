package jr2

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/preflight"
)

// DownResult is what a removal did; with an error, until then.
type DownResult struct {
	Instance  string `json:"instance"`
	Context   string `json:"context"`
	Namespace string `json:"namespace"`
	// Gone says that the namespace was seen to be gone.
	Gone bool `json:"gone"`
	// Stays is what of others is in a namespace that stays, and what nobody could look at; nil when the namespace goes.
	Stays *Occupants `json:"stays,omitempty"`
	// Removed is what became of the Instance's objects in a namespace that stays.
	Removed []apply.ObjectResult `json:"removed,omitempty"`
	// Others are the cluster's other Instances; read with All only.
	Others []Deployment `json:"others,omitempty"`
	// Operator is what became of the operator's objects.
	Operator []apply.ObjectResult `json:"operator,omitempty"`
	// LeftInPlace says what was not touched.
	LeftInPlace []string `json:"leftInPlace,omitempty"`
}

// Down removes an Instance, and with All the operator. It deletes the namespace with everything in it when a converge made it and it holds nothing of
// others; else the namespace stays with what is in it, and the objects of the Instance are removed from it one by one. It looks first, asks always,
// waits for a converge in flight, deletes exactly what it looked at, by UID, and waits until it is gone. A removal that was cut off is completed by the
// next one.
//
// The DownResult is never nil. Errors are *NotDeployedError, *Refusal (another Instance's namespace), *UnconfirmedError, ErrDeclined,
// *HeldError, *apply.RemovalError, *UnreachableError, or the server's own.
func Down(ctx context.Context, opts DownOptions) (*DownResult, error) {
	if opts.Timeout <= 0 {
		opts.Timeout = names.HarnessTimeout
	}
	run := &down{opts: opts, result: &DownResult{}, dependents: map[types.UID]bool{}, kept: map[types.UID]bool{}, converge: converge{result: &Result{}, opts: Options{
		Dir: opts.Dir, Env: opts.Env, Config: opts.Config, Kubeconfig: opts.Kubeconfig, Context: opts.Context,
		Namespace: opts.Namespace, Holder: opts.Holder, Events: opts.Events,
	}}}
	return run.result, in(ctx, []step{run.load, run.look, run.ask, run.instance, run.placeholderClasses, run.operator, run.finish})
}

// down is one removal. What it has in common with a converge, the cluster, the environment and the lock, it takes from there.
type down struct {
	converge
	opts   DownOptions
	result *DownResult

	name      string
	all       bool              // the operator goes, and may go
	namespace *corev1.Namespace // look: nil when it is gone already, or is no Instance's any more
	gone      bool              // look: there is no namespace
	home      *homeLook         // look: nil when the namespace is gone or going
	loose     Occupants         // look: Sandboxes and Repos in namespaces of no Instance
	operators map[types.UID]bool

	dependents map[types.UID]bool // what goes with objects that were deleted
	kept       map[types.UID]bool // objects of the set that stay, by a mark on them
}

func (d *down) load(ctx context.Context) error {
	inst, err := d.readInstance(ctx)
	if err != nil {
		return err
	}
	found, err := resolve(d.converge.opts)
	if err != nil {
		return err
	}
	d.inst, d.name, d.cluster = inst, inst.Name, found
	d.cluster.namespace = inst.Namespace(d.opts.Namespace)
	d.all = d.opts.All && render.ManagesOperator(render.Input{Instance: inst})
	d.result.Instance, d.result.Context, d.result.Namespace = d.name, found.context, d.cluster.namespace
	d.tell(DownStarted{Instance: d.name, Context: found.context, Namespace: d.cluster.namespace, All: d.opts.All})
	if d.opts.All && !d.all {
		d.tell(OperatorNotManaged{})
	}
	return d.cluster.dial()
}

// readInstance needs the name and no more: Workflows that do not load must not keep an Instance in the cluster.
func (d *down) readInstance(ctx context.Context) (*config.Instance, error) {
	switch {
	case d.opts.Name != "":
		return &config.Instance{Name: d.opts.Name, KitVersion: config.DefaultKitVersion}, nil
	case d.opts.Instance != nil:
		return d.opts.Instance, config.Validate(d.opts.Instance)
	}
	root, err := config.FindRoot(d.opts.Dir)
	if err != nil {
		return nil, err
	}
	if err := d.readEnv(root); err != nil {
		return nil, err
	}
	inst, err := config.Load(ctx, config.LoadOptions{Dir: root, Env: d.env, Outermost: d.opts.Outermost, Isolate: d.opts.Isolate})
	faulty := converge{faults: faultyFields(err)}
	if inst == nil || faulty.faulty("name") || faulty.faulty("operator") { // whose it is, and whether the operator is its own, is not guessed
		return nil, err
	}
	return inst, nil
}

// look finds out whose the namespace is.
func (d *down) look(ctx context.Context) error {
	reach, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if _, err := d.cluster.version(reach); err != nil {
		return &UnreachableError{Context: d.cluster.context, Err: err}
	}
	namespace, err := d.cluster.readNamespace(ctx)
	if err != nil {
		return err
	}
	d.namespace = namespace
	unlabelled := namespace != nil && namespace.Labels[names.LabelInstance] == ""
	if namespace == nil || unlabelled && d.all {
		there := false
		if d.all {
			there, err = d.operatorThere(ctx)
		}
		switch {
		case err != nil:
			return err
		case !there:
			return d.notDeployed(unlabelled)
		}
		d.namespace, namespace = nil, nil // what is there is nobody's, as after a removal that left it: the operator alone is left
		d.gone = !unlabelled
	}
	if err := d.isOurs(namespace); err != nil {
		return err
	}
	if d.all {
		if d.result.Others, err = d.others(ctx); err != nil {
			return err
		}
		if d.loose, err = d.strays(ctx); err != nil {
			return err
		}
	}
	if namespace != nil && namespace.DeletionTimestamp == nil {
		d.home, err = d.lookHome(ctx, namespace)
	}
	return err
}

// isOurs refuses a namespace of another Instance and of nobody. One that does not exist is nobody's business.
func (d *down) isOurs(namespace *corev1.Namespace) error {
	if namespace == nil {
		return nil
	}
	if namespace.Labels[names.LabelInstance] == "" {
		return d.notDeployed(true)
	}
	_, findings := preflight.Ownership(d.cluster.context, d.cluster.namespace, d.name, namespace)
	for _, finding := range findings { // that it is being deleted is welcome
		if finding.Code == preflight.CodeNamespaceOwner {
			return preflight.Refused([]preflight.Finding{finding})
		}
	}
	return nil
}

func (d *down) notDeployed(unlabelled bool) error {
	return &NotDeployedError{Instance: d.name, Context: d.cluster.context, Namespace: d.cluster.namespace, Unlabelled: unlabelled}
}

func (d *down) ask(ctx context.Context) error {
	if d.opts.Yes {
		return nil
	}
	removal := Removal{
		Instance: d.name, Context: d.cluster.context, Namespace: d.cluster.namespace,
		Absent: d.namespace == nil, All: d.all, Others: d.result.Others, Strays: d.loose,
	}
	if d.home != nil && d.home.stays != "" {
		removal.Stays, removal.Objects, removal.Holds = d.home.stays, d.home.removes(), d.home.told()
	}
	if d.opts.Confirm == nil {
		return &UnconfirmedError{Removal: removal}
	}
	agreed, err := d.opts.Confirm(ctx, removal)
	if err == nil && !agreed {
		return ErrDeclined
	}
	return err
}

// instance removes the Instance and waits until it is gone.
func (d *down) instance(ctx context.Context) error {
	if d.namespace == nil {
		d.result.Gone = d.gone
		return nil
	}
	stays, err := d.removeInstance(ctx)
	if err != nil || stays {
		return err
	}
	err = d.waitGone(ctx, d.cluster.namespace, d.namespace.UID)
	d.result.Gone = err == nil
	return err
}

// removeInstance removes under the lock. With the namespace the lock vanishes: after the delete it is no longer needed, because nobody converges into a
// namespace that is being deleted. In one that stays the lock goes last.
func (d *down) removeInstance(ctx context.Context) (stays bool, err error) {
	if d.namespace.DeletionTimestamp != nil {
		return false, nil
	}
	held, release, err := d.lock(ctx)
	if err != nil {
		now, readErr := d.cluster.readNamespace(ctx)
		if readErr == nil && (now == nil || now.DeletionTimestamp != nil) {
			return false, nil // another removal was faster
		}
		return false, err
	}
	defer release()
	now, err := d.cluster.readNamespace(held)
	if err != nil || now == nil || now.DeletionTimestamp != nil {
		return false, err
	}
	if err := d.isOurs(now); err != nil { // it may have changed hands during the wait
		return false, err
	}
	if now.UID != d.namespace.UID {
		return false, fmt.Errorf("namespace %q on %s was made anew since it was looked at: run it again", d.cluster.namespace, d.cluster.context)
	}
	look, err := d.lookHome(held, now)
	if err != nil {
		return false, err
	}
	if agreed := d.home; agreed != nil && agreed.stays != "" && look.stays == "" {
		look.stays = whyAgreed
	}
	if look.stays == "" {
		return false, d.deleteNamespace(held, d.cluster.namespace, d.namespace.UID)
	}
	return true, d.leave(ctx, held, release, now, look)
}

// leave takes the Instance out of a namespace that stays.
func (d *down) leave(ctx, held context.Context, release func(), namespace *corev1.Namespace, look *homeLook) error {
	stays := look.told()
	d.result.Stays = &stays
	d.tell(NamespaceStays{Name: namespace.Name, Why: look.stays, Others: stays})
	if err := in(held, []step{
		func(ctx context.Context) error { return d.withdraw(ctx, look) },
		func(ctx context.Context) error { return d.letGo(ctx, namespace.UID) },
	}); err != nil {
		return err
	}
	release()
	return d.deleteLock(ctx)
}

// deleteLock deletes the Lease of the lock, when nobody holds it by now.
func (d *down) deleteLock(ctx context.Context) error {
	leases := d.cluster.client.CoordinationV1().Leases(d.cluster.namespace)
	lease, err := leases.Get(ctx, lockName, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
		return ignoreNotFound(err)
	}
	err = leases.Delete(ctx, lockName, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("remove the lock %s/%s: %w", d.cluster.namespace, lockName, err)
	}
	return nil
}

// deleteNamespace deletes the namespace that was looked at and no other of that name.
func (d *down) deleteNamespace(ctx context.Context, name string, uid types.UID) error {
	exactly := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	err := d.cluster.client.CoreV1().Namespaces().Delete(ctx, name, exactly)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete namespace %q on %s: %w", name, d.cluster.context, err)
	}
	d.tell(NamespaceDeleting{Name: name})
	return nil
}

func (d *down) waitGone(ctx context.Context, name string, uid types.UID) error {
	err := apply.WaitNamespaceGone(ctx, d.cluster.client, name, uid, d.opts.Timeout, func(e apply.Event) {
		if waiting, ok := e.(apply.Waiting); ok {
			d.tell(NamespaceHeld{Name: name, Reason: waiting.Reason})
		}
	})
	if object := (*apply.ObjectError)(nil); errors.As(err, &object) && object.Class == apply.ClassBeingDeleted {
		return &HeldError{Object: object.Ref.String(), Err: err}
	}
	if err == nil {
		d.tell(NamespaceGone{Name: name})
	}
	return err
}

func (d *down) finish(context.Context) error {
	left := []string{"/var/lib/jr2/" + d.cluster.namespace + "/repos on the nodes", "images in the registry"}
	classes := "PriorityClasses " + names.PriorityControl + ", " + names.PrioritySandbox
	d.result.LeftInPlace = append([]string{classes}, left...)
	if d.result.Stays != nil || d.namespace == nil && !d.gone {
		d.result.LeftInPlace = append([]string{"namespace " + d.cluster.namespace}, d.result.LeftInPlace...)
	}
	d.tell(LeftInPlace{What: d.result.LeftInPlace})
	d.tell(Removed{Instance: d.name, Context: d.cluster.context})
	return nil
}

// operatorTimeout bounds the wait for objects of the operator within the caller's own bound.
func (d *down) operatorTimeout() time.Duration { return min(d.opts.Timeout, 2*time.Minute) }
