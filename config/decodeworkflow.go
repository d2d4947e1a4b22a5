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

// decodeWorkflows reads what the walk recorded. The text comes out of the evaluator, so its shape is checked like any input.
func decodeWorkflows(root string, text json.RawMessage, notes *[]string) ([]Workflow, error) {
	var records []walked
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.UseNumber()
	if err := reader.Decode(&records); err != nil {
		return nil, fmt.Errorf("%s: the walk gave no records: %w", root, err)
	}
	var out []Workflow
	for _, record := range records {
		wf := Workflow{
			Name: record.Name, File: workflowFile(root, record.Name), MachineID: record.MachineID, HasDoor: record.HasDoor,
			Agents: record.Agents, OpenParts: slices.Concat(record.RepoParts, record.AgentParts),
		}
		for _, seat := range record.Workspaces {
			ws := Workspace{Path: seat.Path, Image: seat.Image, User: seat.User, Repos: seat.Repos}
			var err error
			if ws.Size, err = seat.Size.limits(); err == nil {
				ws.UserSize, err = seat.UserSize.limits()
			}
			if err != nil {
				return nil, &ModuleError{File: wf.File, Workflow: wf.Name, Rule: "W11", Problem: err.Error()}
			}
			wf.Workspaces = append(wf.Workspaces, ws)
		}
		for _, note := range record.Notes {
			*notes = append(*notes, fmt.Sprintf("workflow %q: %s", wf.Name, note))
		}
		out = append(out, wf)
	}
	return out, nil
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
