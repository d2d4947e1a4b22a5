package jr2

import (
	"context"
	"fmt"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/preflight"
)

// reach makes the way to registries.
func (c *converge) reach(context.Context) error {
	if err := c.opts.RegistryMirrors.Check(); err != nil {
		return err
	}
	if c.transport = c.opts.RegistryTransport; c.transport != nil {
		return nil
	}
	var err error
	c.transport, err = images.Transport(c.opts.RegistryCA...)
	return err
}

// registries reads images as the options say.
func (c *converge) registries() *images.Registry {
	return &images.Registry{
		Keychain: c.opts.Keychain, Transport: c.transport, Insecure: c.opts.InsecureRegistries, Mirrors: c.opts.RegistryMirrors,
	}
}

// bundle refuses Workspaces whose image is turned off: a Sandbox could not be made for them.
func (c *converge) bundle(context.Context) error {
	bundle := c.opts.Bundle
	if err := bundle.Check(); err != nil {
		return err
	}
	var findings []preflight.Finding
	for _, workflow := range c.inst.Workflows {
		for _, workspace := range workflow.Workspaces {
			for _, seat := range []struct{ name, image string }{{"image", workspace.Image}, {"user", workspace.User}} {
				name, off := bundle.Refused(seat.image)
				if !off {
					continue
				}
				_, err := bundle.Ref(name)
				findings = append(findings, preflight.Finding{
					Severity: preflight.Refuse, Code: preflight.CodeBundledImageOff, Object: "Workflow " + workflow.Name,
					Message: fmt.Sprintf("refusing: workflow %q: %s %q: %v", workflow.Name, seat.name, seat.image, err),
					Fix:     fmt.Sprintf("write another %s than %q in workflows/%s.ts, or turn %s on again in the bundle", seat.name, seat.image, workflow.Name, name),
				})
			}
		}
	}
	return preflight.Refused(findings)
}
