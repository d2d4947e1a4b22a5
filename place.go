package jr2

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/narrate"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/platforms"
	"jr2.dev/jr2/preflight"
)

// platforms resolves the set to build for. Nodes are read only when the configuration does not name the set.
func (c *converge) platforms(ctx context.Context) error {
	set, err := c.platformSet(ctx)
	if err != nil {
		return err
	}
	c.set, c.result.Platforms = set, set.Platforms
	c.tell(PlatformsResolved{Platforms: set.Platforms, Nodes: set.Nodes, Skipped: set.Skipped, FromConfig: set.FromConfig})
	return c.checkRegistry(set)
}

func (c *converge) platformSet(ctx context.Context) (platforms.Set, error) {
	if c.inst.Platforms != nil {
		return platforms.Named(c.inst.Platforms)
	}
	nodes, err := placement.Nodes(ctx, c.cluster.client.CoreV1().Nodes())
	if err != nil {
		return platforms.Set{}, err
	}
	c.nodes = nodes
	now, soon := placement.Schedulable(nodes, placement.Rules{}, c.sandboxRules())
	return platforms.FromNodes(now, soon...)
}

func (c *converge) sandboxRules() placement.Rules {
	return placement.Rules{NodeSelector: c.inst.Sandbox.NodeSelector, Tolerations: c.inst.Sandbox.Tolerations}
}

func (c *converge) registry() string {
	if c.inst.Registry == nil {
		return ""
	}
	return *c.inst.Registry
}

// sandboxNodes tells where a Sandbox can run and which Sizes fit nowhere. It never stops a converge: the node set moves.
func (c *converge) sandboxNodes(context.Context) error {
	if c.set.FromConfig || !c.inst.ComposesSandbox() {
		return nil
	}
	survey := placement.Look(c.nodes, c.sandboxRules())
	told := SandboxNodes{}
	for _, node := range survey.Nodes {
		told.Names = append(told.Names, node.Name)
	}
	for _, excluded := range survey.Excluded {
		told.Excluded = append(told.Excluded, ExcludedNode{Name: excluded.Node, Reason: excluded.Reason})
	}
	c.result.SandboxNodes = told.Names
	c.tell(told)
	if len(told.Names) == 0 {
		fix := cmp.Or(labeling(c.nodes, c.sandboxRules()), "label or add a node that sandbox.nodeSelector and sandbox.tolerations take")
		c.find(preflight.CodeNoSandboxNode, fix, told)
	}
	for _, large := range placement.TooLarge(survey.Nodes, c.demands()) {
		warning := SizeTooLarge{
			Memory:    config.FormatMemory(large.Size.Memory),
			CPU:       config.FormatCPU(large.Size.CPU),
			Workflows: large.Workflows,
		}
		c.tell(warning)
		c.find(preflight.CodeSizeTooLarge, lowerSize(survey.Nodes, large), warning)
	}
	return nil
}

// find keeps a warning that an event of its own has told, in the words of its lines.
func (c *converge) find(code, fix string, warning Event) {
	c.result.Findings = append(c.result.Findings, preflight.Finding{
		Severity: preflight.Warn, Code: code, Object: "cluster " + c.cluster.context, Fix: fix,
		Message: strings.TrimPrefix(strings.Join(narrate.Lines(warning), "\n"), "warning: "),
	})
}

func (c *converge) demands() []placement.Demand {
	var demands []placement.Demand
	for _, workspace := range c.sizes {
		demands = append(demands, placement.Demand{Size: workspace.Size, Workflows: []string{workspace.Workflow}})
	}
	return demands
}

// kitNames names the Kit's images.
func (c *converge) kitNames(context.Context) (err error) {
	c.input.Kit, err = render.KitOf(c.inst.KitVersion, c.inst.KitRegistry)
	return err
}

// platformNames checks platforms that the configuration names, before any cluster is asked.
func (c *converge) platformNames(context.Context) error {
	if c.inst.Platforms == nil {
		return nil
	}
	set, err := platforms.Named(c.inst.Platforms)
	if err != nil {
		return err
	}
	return c.checkRegistry(set)
}

// checkRegistry wants a registry where an image is built for several platforms.
func (c *converge) checkRegistry(set platforms.Set) error {
	if len(c.inst.ImageContexts()) == 0 {
		return nil
	}
	return platforms.CheckRegistry(set, c.inst.Registry)
}

// kit tells the images that the Kit brings.
func (c *converge) kit(context.Context) error {
	kit := c.input.Kit
	if kit.Home != render.KitHome {
		if note := images.HostNote("kitRegistry", kit.Home); note != "" {
			c.note(preflight.Finding{Severity: preflight.Warn, Code: preflight.CodeRegistryHost, Object: "Instance " + c.inst.Name, Message: note,
				Fix: fmt.Sprintf("write kitRegistry: %q in jr2.config.ts, or the registry's host in the place of docker.io", "docker.io/"+kit.Home)})
		}
	}
	c.tell(KitResolved{Version: kit.Version, Home: kit.Home, Custodian: kit.Custodian, Mirrored: kit.Home != render.KitHome})
	return nil
}

// priority tells which classes the configuration names; that they exist is not checked, because the first pod that names one shows it
// (source: seed, "Use the priority classes of the cluster").
func (c *converge) priority(context.Context) error {
	named := PriorityClassesNamed{Control: text(c.inst.PriorityClasses.Control), Sandbox: text(c.inst.PriorityClasses.Sandbox)}
	if named != (PriorityClassesNamed{}) {
		c.tell(named)
	}
	return nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
