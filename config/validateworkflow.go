package config

import (
	"fmt"
	"regexp"
	"slices"
)

var slotName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*$`)

// checkWorkflows applies to Workflow values the rules that the authoring functions apply to code.
func checkWorkflows(inst *Instance) error {
	seen := map[string]bool{}
	for _, wf := range inst.Workflows {
		if err := checkWorkflowName(wf.File, wf.Name); err != nil {
			return err
		}
		if seen[wf.Name] {
			return wf.problem("name", "the name is there twice")
		}
		seen[wf.Name] = true
		for _, agent := range wf.Agents {
			if err := checkAgent(wf, agent); err != nil {
				return err
			}
		}
		for n, ws := range wf.Workspaces {
			if err := checkWorkspace(wf, n, ws); err != nil {
				return err
			}
		}
	}
	return nil
}

func (wf Workflow) problem(rule, format string, args ...any) error {
	return &ModuleError{File: wf.File, Workflow: wf.Name, Rule: rule, Problem: fmt.Sprintf(format, args...)}
}

func checkAgent(wf Workflow, agent Agent) error {
	open := slices.ContainsFunc(wf.OpenParts, func(p OpenPart) bool { return p.Kind == OpenAgent && p.Slot == agent.Name })
	if agent.Model == "" && !open {
		return wf.problem("model", "Agent %q has no model — \"<provider>/<model>\", or an OpenPart that says that nobody bound it", agent.Name)
	}
	if !slices.Contains([]string{AccessWrite, AccessRead, AccessNone}, agent.Access) {
		return wf.problem("model", "Agent %q has the access %q — write, read or none", agent.Name, clip(agent.Access))
	}
	if !slices.Contains([]string{"", "off", "minimal", "low", "medium", "high", "xhigh"}, agent.ThinkingLevel) {
		return wf.problem("model", "Agent %q has the thinking level %q — off, minimal, low, medium, high or xhigh", agent.Name, clip(agent.ThinkingLevel))
	}
	return nil
}

func checkWorkspace(wf Workflow, n int, ws Workspace) error {
	for _, size := range []struct {
		what   string
		limits Limits
	}{{"size", ws.Size}, {"userSize", ws.UserSize}} {
		if m := size.limits.Memory; m != nil && *m <= 0 {
			return wf.problem("W11", "workspaces[%d].%s.memory must be more than zero", n, size.what)
		}
		if c := size.limits.CPU; c != nil && *c <= 0 {
			return wf.problem("W11", "workspaces[%d].%s.cpu must be more than zero", n, size.what)
		}
	}
	if (ws.UserSize.Memory != nil || ws.UserSize.CPU != nil) && ws.User == "" {
		return wf.problem("W11", "workspaces[%d].userSize has no User Container to size", n)
	}
	if len(ws.Repos) == 0 {
		return wf.problem("W8", "workspaces[%d] has no Repo Slot", n)
	}
	for _, slot := range ws.Repos {
		if slot.Slot == "" && slot.State == SlotOpen && len(ws.Repos) == 1 {
			continue // the whole map is open
		}
		if !slotName.MatchString(slot.Slot) {
			return wf.problem("W9", "%q is no Repo Slot name — a letter, then letters, digits, \".\", \"_\", \"-\": it becomes /work/<slot>", clip(slot.Slot))
		}
		switch slot.State {
		case SlotBound:
			if _, err := ParseRepoURL(slot.URL); err != nil {
				return wf.problem("W10", "Repo Slot %q: %v", slot.Slot, err)
			}
		case SlotOpen, SlotPerRun:
		default:
			return wf.problem("W10", "Repo Slot %q has the state %q — bound, open or perRun", slot.Slot, clip(slot.State))
		}
	}
	return nil
}
