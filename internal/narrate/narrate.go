// Package narrate turns the events of a converge into the lines that a person reads.
//
// It decides layout and order within a line; the sentences that the source document fixes come from internal/seed. It reads no
// cluster and keeps no state: the same event always gives the same lines.
package narrate

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"jr2.dev/jr2/internal/event"
	"jr2.dev/jr2/internal/seed"
	"jr2.dev/jr2/internal/terminal"
)

// To returns a receiver of events that writes their lines to w. A write error is ignored: narration never stops a converge. Text of others in an event
// stays on its line, and can't do anything to a terminal.
func To(w io.Writer) func(event.Event) {
	return func(e event.Event) {
		for _, line := range Lines(e) {
			fmt.Fprintln(w, line)
		}
	}
}

// Lines returns the lines of one event, or none for an event that is told only in the JSON form. They are safe to show.
func Lines(e event.Event) []string {
	lines := linesOf(e)
	for i := range lines {
		lines[i] = terminal.Line(lines[i])
	}
	return lines
}

func linesOf(e event.Event) []string {
	if lines, ok := looked(e); ok {
		return lines
	}
	if lines, ok := did(e); ok {
		return lines
	}
	if lines, ok := deployKey(e); ok {
		return lines
	}
	if lines, ok := down(e); ok {
		return lines
	}
	if lines, ok := run(e); ok {
		return lines
	}
	return nil
}

// Error returns the text that reports why a converge stopped, one line for each thing that is wrong: refusals and unanswered questions
// stand as they are, everything else gets its prefix.
func Error(err error) string {
	var several interface{ Messages() []string }
	if !errors.As(err, &several) {
		return terminal.Below(prefixed(err.Error()))
	}
	lines := several.Messages()
	for i, line := range lines {
		lines[i] = terminal.Below(prefixed(line))
	}
	return strings.Join(lines, "\n")
}

func prefixed(text string) string {
	for _, bare := range []string{"refusing: ", "first contact: "} {
		if strings.HasPrefix(text, bare) {
			return text
		}
	}
	return "error: " + text
}

func looked(e event.Event) ([]string, bool) {
	switch e := e.(type) {
	case event.EnvApplied:
		return one(seed.EnvLine, strings.Join(e.Names, ", "))
	case event.Started:
		return one(seed.Header, e.Instance, e.Context, e.Namespace)
	case event.PlanStarted:
		return one("jr2 plan — instance %q → context %s / namespace %s", e.Instance, e.Context, e.Namespace)
	case event.TypecheckStarted:
		return one(seed.TypecheckLine)
	case event.TypecheckSkipped:
		return one("typecheck: skipped — %s", e.Reason)
	case event.Noted:
		return one("warning: %s", e.Message)
	case event.Walked:
		return one("workflows: %s — agents: %s", orNone(e.Workflows), orNone(e.Agents))
	case event.KubernetesFound:
		return one(seed.KubernetesLine, e.Version, e.Floor)
	case event.PlatformsResolved:
		return platforms(e), true
	case event.SandboxNodes:
		return sandboxNodes(e), true
	case event.SizeTooLarge:
		return one(seed.SizeTooLarge, e.Memory, e.CPU, quoted(e.Workflows))
	case event.KitResolved:
		return kit(e), true
	case event.PriorityClassesNamed:
		return priority(e), true
	}
	return nil, false
}

func did(e event.Event) ([]string, bool) {
	switch e := e.(type) {
	case event.NamespaceApplied:
		return namespaceApplied(e), true
	case event.LockWaiting:
		lines, ok := one("waiting: %s converges this Instance since %s", e.Holder, e.Since.UTC().Format(time.RFC3339))
		if e.Fix != "" {
			lines = append(lines, "  when nobody of that name is at work: "+e.Fix)
		}
		return lines, ok
	case event.ImagesNotNeeded:
		return one("sandbox images: none — %s", e.Reason)
	case event.ImageFresh:
		says := "says the " + e.Source
		if e.Source == "nodes" {
			says = "say the nodes"
		}
		return one("sandbox image %q: %s is delivered already, %s (--force rebuilds it)", e.Name, e.Ref, says)
	case event.ImageBuilding:
		return one(seed.SandboxImageBuild, e.Name, e.Ref)
	case event.ImageUser:
		return user(e), true
	case event.ImagePushed:
		return pushed(e), true
	case event.ImageLoaded:
		return one("  load → every node of kind cluster %s", e.Cluster)
	case event.Applied:
		return applied(e), true
	case event.ApplyWaiting:
		return one("  %s waits: %s", e.Object, e.Reason)
	case event.SecretHeld:
		return one("held secret %s: for %s, from %s", e.Name, strings.Join(e.Hosts, ", "), e.Source)
	case event.CertificateMade:
		return certificateMade(e), true
	case event.ModelsSkipped:
		return one("models: none asked — %s", e.Reason)
	case event.ModelAsked:
		return one("model %q: asking %s from a pod", e.Model, e.BaseURL)
	case event.ModelAnswered:
		return modelAnswered(e), true
	case event.OperatorLeftAlone:
		return one("operator: v%s runs here, newer than this Kit's v%s — left alone", e.Deployed, e.Kit)
	case event.OperatorNotManaged:
		return one("operator: not managed — operator.manage is false in jr2.config.ts")
	case event.RolloutWaiting:
		return one("  %s: %s", e.Layer, e.Message)
	case event.Verified:
		return verified(e), true
	case event.AssemblyPublishing:
		return one(seed.AssemblyPublishing, e.Hash, replaced(e.Previous))
	case event.AssemblyCurrent:
		return one(seed.AssemblyCurrent, e.Hash, strings.Join(e.Workflows, ", "))
	case event.WorkspacesOnOlderImages:
		return one("workspaces: %d live on %s — they keep it; new ones use this converge's images", e.Count, e.Image)
	case event.ReposBound:
		return one("repos: %d bound — the Repo cache clones them", e.Count)
	case event.Converged:
		return converged(e), true
	}
	return nil, false
}

func one(format string, args ...any) ([]string, bool) {
	return []string{fmt.Sprintf(format, args...)}, true
}
