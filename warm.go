package jr2

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/warm"
	"jr2.dev/jr2/preflight"
)

// Warm says what a converge keeps ready for Sandboxes. The zero Warm keeps nothing.
type Warm struct {
	// Images keeps what every Sandbox of the Instance runs pulled on all Sandbox nodes: its Sandbox Images, the Harness and the Custodian.
	Images bool
	// Also are further images to keep pulled there, such as those of images.Bundle.Warm.
	Also []string
	// Capacity holds Sandbox nodes open.
	Capacity warm.Capacity
	// Sleeper is what the pods of both run, for clusters that can't pull warm.DefaultSleeper.
	Sleeper warm.Sleeper
}

func (w Warm) on() bool { return w.Images || len(w.Also) > 0 || w.Capacity.On() }

// warm checks what is to be kept warm.
func (c *converge) warm(ctx context.Context) error {
	keep := c.opts.Warm
	also, err := warm.Images(keep.Also).Check()
	if err == nil {
		err = keep.Capacity.Validate()
	}
	if err != nil || !keep.on() {
		return err
	}
	if !c.inst.ComposesSandbox() {
		c.note(preflight.Finding{Severity: preflight.Note, Code: preflight.CodeInstanceNote, Object: "Instance " + c.inst.Name,
			Message: "nothing is kept warm, because no registered Machine makes a Sandbox"})
		return nil
	}
	c.noteWarm(also)
	if !keep.Capacity.On() {
		return nil
	}
	around, err := c.warmSurroundings(ctx)
	if err != nil {
		return err
	}
	warnings, err := keep.Capacity.Check(c.warmHome(), c.warmSandboxes(), around)
	c.noteWarm(warnings)
	return err
}

func (c *converge) noteWarm(warnings []warm.Warning) {
	for _, w := range warnings {
		c.note(preflight.Finding{Severity: preflight.Warn, Code: w.Code, Object: w.Object, Message: w.Message, Fix: w.Fix})
	}
}

// warmSurroundings reads the class of Sandboxes and the namespace's quotas. What this user may not read is told and not judged.
func (c *converge) warmSurroundings(ctx context.Context) (around warm.Surroundings, err error) {
	if around.Class, err = c.sandboxPriority(ctx); err != nil {
		return around, err
	}
	quotas, err := c.cluster.client.CoreV1().ResourceQuotas(c.cluster.namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		c.noteUnread("quotas of namespace "+c.cluster.namespace, "whether they count placeholders", err)
		return around, nil
	}
	if err != nil {
		return around, fmt.Errorf("read the quotas of namespace %s: %w", c.cluster.namespace, err)
	}
	around.Quotas = quotas.Items
	return around, nil
}

// sandboxPriority is the class of Sandboxes as the cluster has it or, where this converge is to make it, as it will be; nil when nobody knows.
func (c *converge) sandboxPriority(ctx context.Context) (*schedulingv1.PriorityClass, error) {
	name := names.PrioritySandbox
	if own := c.inst.PriorityClasses.Sandbox; own != nil {
		name = *own
	}
	class, err := c.cluster.client.SchedulingV1().PriorityClasses().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		for _, ours := range render.PriorityClasses(c.input) {
			if ours.Name == name {
				return ours, nil
			}
		}
		return nil, nil
	case apierrors.IsForbidden(err):
		c.noteUnread("PriorityClass "+name, "whether Sandboxes can take the place of placeholders", err)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read PriorityClass %s: %w", name, err)
	}
	return class, nil
}

func (c *converge) noteUnread(what, so string, err error) {
	c.note(preflight.Finding{Severity: preflight.Note, Code: preflight.CodeNotLookedAt, Object: what,
		Message: fmt.Sprintf("nobody looked %s, because %s may not be read: %v", so, what, err)})
}

func (c *converge) warmHome() warm.Home {
	return warm.Home{Namespace: c.cluster.namespace, Labels: c.labels(), Sleeper: c.opts.Warm.Sleeper}
}

// warmSandboxes are Sandboxes that state no Size of their own.
func (c *converge) warmSandboxes() warm.Sandboxes {
	size := config.ResolveSize(config.Workspace{}, c.inst.Sandbox.Resources).Size
	return warm.Sandboxes{Share: placement.Share{CPU: size.CPU, Memory: size.Memory, Disk: config.WorkDisk}, Rules: c.sandboxRules()}
}

// warmObjects are part of the Instance's set, so that they go when they are no longer asked for.
func (c *converge) warmObjects() ([]runtime.Object, error) {
	if !c.inst.ComposesSandbox() {
		return nil, nil
	}
	keep := slices.Clone(c.opts.Warm.Also)
	if c.opts.Warm.Images {
		keep = append(keep, c.record.Harness, c.record.Custodian)
		keep = slices.AppendSeq(keep, maps.Values(c.record.Sandbox))
	}
	pulled, err := warm.Images(keep).Objects(c.warmHome(), c.warmSandboxes())
	if err != nil {
		return nil, err
	}
	held, err := c.opts.Warm.Capacity.Objects(c.warmHome(), c.warmSandboxes())
	return append(pulled, held...), err
}

// placeholderClasses removes what lies outside the namespace of what the Instance kept warm. Without the right to, it stays.
func (d *down) placeholderClasses(ctx context.Context) error {
	classes := d.cluster.client.SchedulingV1().PriorityClasses()
	list, err := classes.List(ctx, metav1.ListOptions{LabelSelector: warm.Label + "=" + warm.LabelPlaceholder})
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("read the PriorityClasses of placeholders: %w", err)
	}
	for i := range list.Items {
		class := &list.Items[i]
		priority, ours := strings.CutPrefix(class.Name, names.ManagedBy+"-placeholder-"+d.cluster.namespace+"-")
		if _, err := strconv.ParseUint(priority, 10, 32); !ours || err != nil || class.Labels[names.LabelInstance] != d.name || !setBy(class.ManagedFields, names.LabelInstance, ourManagers) {
			continue
		}
		err := classes.Delete(ctx, class.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &class.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return fmt.Errorf("remove PriorityClass %s: %w", class.Name, err)
		}
	}
	return nil
}
