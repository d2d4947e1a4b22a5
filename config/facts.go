package config

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// An ImageContext is a folder from which a converge builds a Sandbox Image.
type ImageContext struct {
	// Key is the file: URL as the Workflow spells it, under which the image map of the Instance holds the ref; for the default
	// image it is the URL of the folder.
	Key string `json:"key"`
	// Name is the base name of the folder; it becomes part of the image's repository.
	Name string `json:"name"`
	// Dir is the absolute path of the folder.
	Dir string `json:"dir"`
	// Default says that this is images/default, which every Workspace without an image uses.
	Default bool `json:"default,omitempty"`
}

// ComposesSandbox says whether any Machine of any Workflow makes a Workspace: the switch of the whole data plane.
func (i *Instance) ComposesSandbox() bool {
	return slices.ContainsFunc(i.Workflows, func(wf Workflow) bool { return len(wf.Workspaces) > 0 })
}

// ImageContexts are the folders to build, images/default first, then the file: images of both seats in walk order, each URL once.
// Empty when no Sandbox is composed: nothing would run such an image.
func (i *Instance) ImageContexts() []ImageContext {
	if !i.ComposesSandbox() {
		return nil
	}
	var out []ImageContext
	if i.DefaultImage != "" {
		out = append(out, ImageContext{Key: FileURL(i.DefaultImage), Name: path.Base(i.DefaultImage), Dir: i.DefaultImage, Default: true})
	}
	seen := map[string]bool{}
	for _, wf := range i.Workflows {
		for _, ws := range wf.Workspaces {
			for _, image := range []string{ws.Image, ws.User} {
				dir, ok := ImageFolder(image)
				if !ok || seen[image] {
					continue
				}
				seen[image] = true
				out = append(out, ImageContext{Key: image, Name: path.Base(dir), Dir: dir})
			}
		}
	}
	return out
}

// ImageFolder gives the folder that a file: image names, percent-decoded and without a trailing slash. ok is false for a registry
// ref, which is never built.
func ImageFolder(image string) (dir string, ok bool) {
	rest, ok := strings.CutPrefix(image, "file:")
	if !ok {
		return "", false
	}
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "//localhost"), "//")
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	plain, err := url.PathUnescape(rest)
	if err != nil || !strings.HasPrefix(plain, "/") {
		return "", false
	}
	return path.Clean(plain), true
}

// FileURL is the file: URL of an absolute path, percent-encoded as a JavaScript runtime spells it.
func FileURL(name string) string { return (&url.URL{Scheme: "file", Path: name}).String() }

// BoundRepos are the repositories that Workflows bind in code, each identity once, in the first spelling of the walk.
func (i *Instance) BoundRepos() []Repo {
	var out []Repo
	seen := map[string]bool{}
	for _, wf := range i.Workflows {
		for _, ws := range wf.Workspaces {
			for _, slot := range ws.Repos {
				address, err := ParseRepoURL(slot.URL)
				if slot.State != SlotBound || err != nil || seen[address.Identity] {
					continue
				}
				seen[address.Identity] = true
				out = append(out, Repo{URL: slot.URL, Ref: slot.Ref, Scheme: address.Scheme, Identity: address.Identity, Key: address.Key})
			}
		}
	}
	return out
}

// Models are the distinct models that Agents name, "<provider>/<model>", in walk order.
func (i *Instance) Models() []string {
	return i.agentWords(func(a Agent) string { return a.Model })
}

// AgentNames are the distinct names of Agents, in walk order.
func (i *Instance) AgentNames() []string {
	return i.agentWords(func(a Agent) string { return a.Name })
}

func (i *Instance) agentWords(word func(Agent) string) []string {
	var out []string
	for _, wf := range i.Workflows {
		for _, agent := range wf.Agents {
			if w := word(agent); w != "" && !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	return out
}

// NeedsInstanceHarness says whether any Agent works without a Workspace and so runs in the Instance Harness.
func (i *Instance) NeedsInstanceHarness() bool {
	return slices.ContainsFunc(i.Workflows, func(wf Workflow) bool {
		return slices.ContainsFunc(wf.Agents, func(a Agent) bool { return a.Access == AccessNone })
	})
}

// WorkflowNames are the names of the Workflows, sorted.
func (i *Instance) WorkflowNames() []string {
	names := make([]string, len(i.Workflows))
	for n, wf := range i.Workflows {
		names[n] = wf.Name
	}
	slices.Sort(names)
	return names
}

// Namespace is the namespace of the Instance: the given one, else its name.
func (i *Instance) Namespace(given string) string {
	if given != "" {
		return given
	}
	return i.Name
}

// An OpenWorkflowPart is an open part and the Workflow that carries it.
type OpenWorkflowPart struct {
	Workflow Workflow
	Part     OpenPart
}

// OpenParts are all parts that nobody bound, in the order of the Workflows; within one, Repo Slots come before Agents.
func (i *Instance) OpenParts() []OpenWorkflowPart {
	var out []OpenWorkflowPart
	for _, wf := range i.Workflows {
		for _, part := range wf.OpenParts {
			out = append(out, OpenWorkflowPart{wf, part})
		}
	}
	return out
}
