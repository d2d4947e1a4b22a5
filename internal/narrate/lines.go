package narrate

import (
	"fmt"
	"strconv"
	"strings"

	"jr2.dev/jr2/internal/event"
	"jr2.dev/jr2/internal/seed"
)

func platforms(e event.PlatformsResolved) []string {
	list := strings.Join(e.Platforms, ", ")
	if e.FromConfig {
		return []string{fmt.Sprintf("platforms: %s (named by `platforms` in jr2.config.ts; the nodes were not read)", list)}
	}
	lines := []string{fmt.Sprintf(seed.PlatformsLine, list, e.Nodes)}
	for _, arch := range e.Skipped {
		lines = append(lines, fmt.Sprintf(seed.SkippingArch, arch))
	}
	return lines
}

func sandboxNodes(e event.SandboxNodes) []string {
	if len(e.Names) > 0 {
		return []string{fmt.Sprintf(seed.SandboxNodesLine, strings.Join(e.Names, ", "))}
	}
	lines := []string{seed.NoSandboxNode}
	for _, node := range e.Excluded {
		lines = append(lines, fmt.Sprintf(seed.NodeReason, node.Name, node.Reason))
	}
	return append(lines, seed.NoSandboxNodeHint)
}

func kit(e event.KitResolved) []string {
	line := fmt.Sprintf(seed.ImagesInstalledKit, e.Version, e.Home)
	if e.Mirrored {
		line += " (kitRegistry)"
	}
	return []string{line, "  custodian: " + e.Custodian}
}

func priority(e event.PriorityClassesNamed) []string {
	var classes []string
	if e.Control != "" {
		classes = append(classes, fmt.Sprintf(seed.PriorityOwnControl, e.Control))
	}
	if e.Sandbox != "" {
		classes = append(classes, fmt.Sprintf(seed.PriorityOwnSandbox, e.Sandbox))
	}
	return []string{fmt.Sprintf(seed.PriorityOwn, strings.Join(classes, ", "))}
}

// namespaceApplied has a line only for a change that no question told.
func namespaceApplied(e event.NamespaceApplied) []string {
	if e.Asked || e.Action == "unchanged" {
		return nil
	}
	return []string{fmt.Sprintf("namespace: %q %s", e.Name, e.Action)}
}

func user(e event.ImageUser) []string {
	if e.User == "" {
		return []string{seed.NoUserDeclared}
	}
	return []string{"  USER " + e.User}
}

func pushed(e event.ImagePushed) []string {
	line := fmt.Sprintf(seed.PushLine, e.Registry)
	if len(e.Platforms) > 1 {
		line += " (one manifest list: " + strings.Join(e.Platforms, ", ") + ")"
	}
	return []string{line}
}

func applied(e event.Applied) []string {
	if len(e.Changes) == 0 {
		return []string{fmt.Sprintf("%s: unchanged (%d objects)", e.Layer, e.Unchanged)}
	}
	lines := []string{fmt.Sprintf("%s: applied (%d changed, %d unchanged)", e.Layer, len(e.Changes), e.Unchanged)}
	for _, change := range e.Changes {
		line := fmt.Sprintf("  %s %s", change.Object, change.Action)
		if change.Why != "" {
			line += " — " + change.Why
		}
		lines = append(lines, line)
	}
	return lines
}

func certificateMade(e event.CertificateMade) []string {
	if e.Host == "" {
		return []string{"certificates: made the authority of held secrets (" + e.Why + ")"}
	}
	return []string{fmt.Sprintf("certificates: made that of %s (%s)", e.Host, e.Why)}
}

func modelAnswered(e event.ModelAnswered) []string {
	if e.Code != "" {
		return []string{fmt.Sprintf("model %q: %s", e.Model, e.Code)}
	}
	return []string{fmt.Sprintf("model %q: answers, and calls a tool", e.Model)}
}

func verified(e event.Verified) []string {
	if e.Pods == 0 {
		return []string{fmt.Sprintf(seed.UnverifiedForm, e.Layer, e.Selector)}
	}
	return []string{fmt.Sprintf("%s: verified — %d pod(s) run %s", e.Layer, e.Pods, e.Image)}
}

func converged(e event.Converged) []string {
	if e.Changed == 0 {
		return []string{"nothing changed: no image built, no object written, no pod rolled", seed.Converged}
	}
	return []string{seed.Converged}
}

func replaced(previous string) string {
	if previous == "" {
		return seed.AssemblyNoCurrent
	}
	return "replaces " + previous
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func quoted(names []string) string {
	quotes := make([]string, len(names))
	for i, name := range names {
		quotes[i] = strconv.Quote(name)
	}
	return strings.Join(quotes, ", ")
}
