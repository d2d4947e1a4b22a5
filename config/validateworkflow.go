package config

import (
	"fmt"
	"regexp"
	"slices"
)

var slotName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*$`)

// checkWorkflows applies to Workflow values the rules that the authoring functions apply to code.
func checkWorkflows(p *problems) {
	seen := map[string]bool{}
	for _, wf := range p.inst.Workflows {
		tell := func(rule, format string, args ...any) {
			p.errs = append(p.errs, &ModuleError{File: wf.File, Workflow: wf.Name, Rule: rule, Problem: fmt.Sprintf(format, args...)})
		}
		if err := checkWorkflowName(wf.File, wf.Name); err != nil {
			p.errs = append(p.errs, err)
		}
		if seen[wf.Name] {
			tell("name", "the name is there twice")
		}
		seen[wf.Name] = true
		for _, agent := range wf.Agents {
			checkAgent(wf, agent, tell)
		}
		for n, ws := range wf.Workspaces {
			checkWorkspace(n, ws, tell)
		}
	}
}

func checkAgent(wf Workflow, agent Agent, tell func(rule, format string, args ...any)) {
	open := slices.ContainsFunc(wf.OpenParts, func(p OpenPart) bool { return p.Kind == OpenAgent && p.Slot == agent.Name })
	if agent.Model == "" && !open {
		tell("model", "Agent %q has no model — \"<provider>/<model>\", or an OpenPart that says that nobody bound it", agent.Name)
	}
	if !slices.Contains([]string{AccessWrite, AccessRead, AccessNone}, agent.Access) {
		tell("model", "Agent %q has the access %q — write, read or none", agent.Name, clip(agent.Access))
	}
	if !slices.Contains([]string{"", "off", "minimal", "low", "medium", "high", "xhigh"}, agent.ThinkingLevel) {
		tell("model", "Agent %q has the thinking level %q — off, minimal, low, medium, high or xhigh", agent.Name, clip(agent.ThinkingLevel))
	}
}

func checkWorkspace(n int, ws Workspace, tell func(rule, format string, args ...any)) {
	for _, size := range []struct {
		what   string
		limits Limits
	}{{"size", ws.Size}, {"userSize", ws.UserSize}} {
		if m := size.limits.Memory; m != nil && *m <= 0 {
			tell("W11", "workspaces[%d].%s.memory must be more than zero", n, size.what)
		}
		if c := size.limits.CPU; c != nil && *c <= 0 {
			tell("W11", "workspaces[%d].%s.cpu must be more than zero", n, size.what)
		}
	}
	if (ws.UserSize.Memory != nil || ws.UserSize.CPU != nil) && ws.User == "" {
		tell("W11", "workspaces[%d].userSize has no User Container to size", n)
	}
	if len(ws.Repos) == 0 {
		tell("W8", "workspaces[%d] has no Repo Slot", n)
	}
	for _, slot := range ws.Repos {
		if slot.Slot == "" && slot.State == SlotOpen && len(ws.Repos) == 1 {
			continue // the whole map is open
		}
		if !slotName.MatchString(slot.Slot) {
			tell("W9", "%q is no Repo Slot name — a letter, then letters, digits, \".\", \"_\", \"-\": it becomes /work/<slot>", clip(slot.Slot))
		}
		switch slot.State {
		case SlotBound:
			if _, err := ParseRepoURL(slot.URL); err != nil {
				tell("W10", "Repo Slot %q: %v", slot.Slot, err)
			}
		case SlotOpen, SlotPerRun:
		default:
			tell("W10", "Repo Slot %q has the state %q — bound, open or perRun", slot.Slot, clip(slot.State))
		}
	}
}
