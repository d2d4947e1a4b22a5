package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// imageNotes warns of an image that looks like a path: it is taken for a registry ref, and nothing is built.
func imageNotes(inst *Instance) []string {
	var notes []string
	seats(inst, func(wf Workflow, seat, image string) {
		if strings.HasPrefix(image, "/") || strings.HasPrefix(image, ".") {
			notes = append(notes, fmt.Sprintf("workflow %q: %s %q looks like a path but is taken for a registry ref, so nothing is built — "+
				"for a folder write import.meta.resolve(\"./folder\")", wf.Name, seat, shownURL(image)))
		}
	})
	return notes
}

// repoNotes warns of a password in a url that a Workflow binds: it is readable for everyone who reads the Workflow or the cluster.
func repoNotes(inst *Instance) []string {
	var notes []string
	for _, wf := range inst.Workflows {
		for _, ws := range wf.Workspaces {
			for _, slot := range ws.Repos {
				if shown := RedactURL(slot.URL); slot.State == SlotBound && shown != slot.URL {
					notes = append(notes, fmt.Sprintf("workflow %q: Repo Slot %q: %q carries a password, which travels in the clear — name an environment variable "+
						"with the token in git.credentials instead", wf.Name, slot.Slot, clip(shown)))
				}
			}
		}
	}
	return notes
}

// ignoredNotes warns of entries of workflows/ that look like Workflows and are none.
func ignoredNotes(f *fence) []string {
	entries, err := f.places[0].ReadDir(workflowsDir, maxEntries)
	if err != nil {
		return nil // discover told it, or there is no folder
	}
	var notes []string
	for _, entry := range entries {
		switch filepath.Ext(entry.Name()) {
		case ".js", ".mjs", ".cjs", ".mts", ".cts", ".tsx", ".jsx":
			if !strings.HasPrefix(entry.Name(), "_") {
				notes = append(notes, fmt.Sprintf("%s/%s is no Workflow: the name of one ends with .ts", workflowsDir, clip(entry.Name())))
			}
		}
	}
	return notes
}

// checkInside refuses each file: image whose folder lies outside the Instance folder.
func checkInside(inst *Instance, f *fence) (errs []error) {
	seats(inst, func(wf Workflow, seat, image string) {
		if !strings.HasPrefix(image, "file:") {
			return
		}
		dir, ok := ImageFolder(image)
		if real, failed := f.real(dir); failed == nil {
			dir = real
		} else if !os.IsNotExist(failed) {
			ok = false
		}
		if !ok || !within(inst.Root, dir) {
			errs = append(errs, &ModuleError{File: wf.File, Workflow: wf.Name, Rule: "image", Err: &OutsideError{Importer: wf.File, Path: dir},
				Problem: fmt.Sprintf("%s %q is a folder outside the Instance folder", seat, shownURL(image))})
		}
	})
	return errs
}

// seats calls with every image of every Workspace.
func seats(inst *Instance, f func(wf Workflow, seat, image string)) {
	for _, wf := range inst.Workflows {
		for _, ws := range wf.Workspaces {
			f(wf, "image", ws.Image)
			f(wf, "user", ws.User)
		}
	}
}
