package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// The records that recorder/walk.js makes.
type (
	walked struct {
		Name       string            `json:"name"`
		MachineID  string            `json:"machineId"`
		HasDoor    bool              `json:"hasDoor"`
		Agents     []Agent           `json:"agents"`
		Workspaces []walkedWorkspace `json:"workspaces"`
		RepoParts  []OpenPart        `json:"repoParts"`
		AgentParts []OpenPart        `json:"agentParts"`
		Notes      []string          `json:"notes"`
	}
	walkedWorkspace struct {
		Path     []string   `json:"path"`
		Image    string     `json:"image"`
		User     string     `json:"user"`
		Size     walkedSize `json:"size"`
		UserSize walkedSize `json:"userSize"`
		Repos    []RepoSlot `json:"repos"`
	}
	walkedSize struct {
		Memory any `json:"memory"`
		CPU    any `json:"cpu"`
	}
)

// decodeWorkflows reads what the walk recorded. The text comes out of the evaluator, so its shape is checked like any input. A Workflow at fault is
// left out.
func decodeWorkflows(inst *Instance, text json.RawMessage) error {
	if text == nil {
		return nil // nothing could be walked, which is told
	}
	var records []walked
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.UseNumber()
	if err := reader.Decode(&records); err != nil {
		return fmt.Errorf("%s: the walk gave no records: %w", inst.Root, err)
	}
	var errs []error
	for _, record := range records {
		wf, err := record.workflow(inst.Root)
		if err != nil {
			errs = append(errs, &ModuleError{File: wf.File, Workflow: wf.Name, Rule: "W11", Problem: err.Error()})
			continue
		}
		for _, note := range record.Notes {
			inst.Notes = append(inst.Notes, fmt.Sprintf("workflow %q: %s", wf.Name, note))
		}
		inst.Workflows = append(inst.Workflows, wf)
	}
	return together(errs...)
}

func (record walked) workflow(root string) (wf Workflow, err error) {
	wf = Workflow{
		Name: record.Name, File: workflowFile(root, record.Name), MachineID: record.MachineID, HasDoor: record.HasDoor,
		Agents: record.Agents, OpenParts: slices.Concat(record.RepoParts, record.AgentParts),
	}
	for _, seat := range record.Workspaces {
		ws := Workspace{Path: seat.Path, Image: seat.Image, User: seat.User, Repos: seat.Repos}
		if ws.Size, err = seat.Size.limits(); err != nil {
			return wf, err
		}
		if ws.UserSize, err = seat.UserSize.limits(); err != nil {
			return wf, err
		}
		wf.Workspaces = append(wf.Workspaces, ws)
	}
	return wf, nil
}

func (s walkedSize) limits() (Limits, error) {
	var out Limits
	if s.Memory != nil {
		n, err := ParseMemory(s.Memory)
		if err != nil {
			return out, fmt.Errorf("resources.limits.memory: %w", err)
		}
		out.Memory = &n
	}
	if s.CPU != nil {
		n, err := ParseCPU(s.CPU)
		if err != nil {
			return out, fmt.Errorf("resources.limits.cpu: %w", err)
		}
		out.CPU = &n
	}
	return out, nil
}
