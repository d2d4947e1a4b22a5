package jr2

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/preflight"
)

// load reads .env and the Instance, and opens the converge. What is wrong with Workflows alone is told after the typecheck, because a type
// error explains more than what it leads to; a field at fault ends a converge here, with all that was found. A check goes on with what could be read.
func (c *converge) load(ctx context.Context) error {
	if err := c.readInstance(ctx); err != nil {
		return err
	}
	c.faults = faultyFields(c.unread)
	if len(c.faults) > 0 && !c.whole {
		return c.unread
	}
	c.input.Instance = c.inst
	if c.faulty("name") {
		return nil // of no cluster's namespace can anybody say that it is this Instance's
	}
	return c.start()
}

// readInstance reads the Instance, in part when that is all that can be read.
func (c *converge) readInstance(ctx context.Context) error {
	if c.opts.Instance != nil {
		c.env, c.inst = c.opts.Env, withDefaults(c.opts.Instance)
		c.unread = config.Validate(c.inst)
		return nil
	}
	root, err := config.FindRoot(c.opts.Dir)
	if err != nil {
		return err
	}
	if err := c.readEnv(root); err != nil {
		return err
	}
	c.inst, c.unread = config.Load(ctx, config.LoadOptions{Dir: root, Env: c.env, Outermost: c.opts.Outermost, Isolate: c.opts.Isolate})
	if c.inst == nil {
		return c.unread
	}
	return nil
}

// withDefaults fills in what Load would: the caller's value stays as it is.
func withDefaults(given *config.Instance) *config.Instance {
	instance := *given
	if instance.KitVersion == "" {
		instance.KitVersion = config.DefaultKitVersion
	}
	return &instance
}

// readEnv fills in what the caller's environment lacks from .env, which is read before anything evaluates the configuration.
func (c *converge) readEnv(root string) error {
	file, err := config.ReadDotEnv(filepath.Join(root, ".env"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf(".env: %w", err)
	}
	merged, applied := config.MergeEnv(file, c.opts.Env)
	c.env = merged
	if len(applied) > 0 {
		c.tell(EnvApplied{Names: applied})
	}
	return nil
}

// start names the cluster and the namespace, and opens the converge.
func (c *converge) start() error {
	found, err := resolve(c.opts)
	if err != nil {
		return err
	}
	c.cluster = found
	c.cluster.namespace = c.inst.Namespace(c.opts.Namespace)
	c.input.Instance, c.input.Namespace = c.inst, c.cluster.namespace
	c.result.Instance, c.result.Context, c.result.Namespace = c.inst.Name, found.context, c.cluster.namespace
	if err := preflight.Refused(preflight.NamespaceName(c.cluster.namespace)); err != nil {
		return err
	}
	c.tell(Started{Instance: c.inst.Name, Context: found.context, Namespace: c.cluster.namespace})
	return nil
}

// typecheck runs the Instance's own compiler; an Instance without a tsconfig.json, or without a folder, has none.
func (c *converge) typecheck(ctx context.Context) error {
	if c.inst.Root == "" {
		return nil
	}
	checked, err := preflight.Typecheck(ctx, c.inst.Root, preflight.TypecheckOptions{
		Trusted: c.opts.Trusted, Started: func() { c.tell(TypecheckStarted{}) },
	})
	if checked.Skipped != "" {
		c.tell(TypecheckSkipped{Reason: checked.Skipped})
	}
	if checked.Untrusted {
		c.note(preflight.Finding{
			Severity: preflight.Note, Code: preflight.CodeTypesUnchecked, Object: "Instance " + c.inst.Name,
			Message: "the types of this instance were not checked: its compiler is a program that the folder brings",
		})
	}
	return err
}

// readWhole refuses Workflows that could not be read, and tells the notes of the reading.
func (c *converge) readWhole(context.Context) error {
	if c.unread != nil {
		return c.unread
	}
	c.noteReading()
	return nil
}

// noteReading tells the notes of the reading.
func (c *converge) noteReading() {
	for _, note := range c.inst.Notes {
		c.note(preflight.Finding{Severity: preflight.Note, Code: preflight.CodeInstanceNote, Object: "Instance " + c.inst.Name, Message: note})
	}
}

// partsBound refuses parts of Workflows that nobody bound.
func (c *converge) partsBound(context.Context) error { return preflight.Refused(openParts(c.inst)) }

// sizesFit refuses Sizes that leave the Harness too little.
func (c *converge) sizesFit(context.Context) (err error) {
	c.sizes, err = config.Sizes(c.inst)
	return err
}

// heldRules refuses held secrets that the configuration alone shows to be wrong.
func (c *converge) heldRules(context.Context) error { return config.CheckHeldSecrets(c.inst) }

// walked tells what the Workflows need.
func (c *converge) walked(context.Context) error {
	c.result.Workflows = c.inst.WorkflowNames()
	c.tell(Walked{Agents: c.inst.AgentNames(), Workflows: c.inst.WorkflowNames()})
	return nil
}

// openParts turns each part that nobody bound into a finding with the line to write.
func openParts(inst *config.Instance) []preflight.Finding {
	var findings []preflight.Finding
	for _, open := range inst.OpenParts() {
		fix := open.Part.Fix(open.Workflow.Name)
		findings = append(findings, preflight.Finding{
			Severity: preflight.Refuse,
			Code:     preflight.CodeOpenPart,
			Object:   "Workflow " + open.Workflow.Name,
			Message: fmt.Sprintf("refusing: workflow %q leaves %s open — bind it: %s (%s). Nothing was applied.",
				open.Workflow.Name, open.Part.Describe(), fix, open.Part.ADR()),
			Fix: fix,
		})
	}
	return findings
}

// environ looks a variable up for the git tokens.
func (c *converge) environ(name string) (string, bool) {
	value, ok := c.env[name]
	return value, ok
}
