package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"jr2.dev/jr2/internal/folder"
)

const workflowsDir = "workflows"

// maxEntries bounds how many files workflows/ may have.
const maxEntries = 10_000

// isWorkflowFile says whether an entry of workflows/ is a registered Workflow: it ends with .ts, but not with .d.ts, and does not
// start with "_", which marks a helper for import.
func isWorkflowFile(name string) bool {
	return strings.HasSuffix(name, ".ts") && !strings.HasSuffix(name, ".d.ts") && !strings.HasPrefix(name, "_")
}

// discover lists the Workflow files of an Instance, sorted; no folder means no Workflows. Only direct entries count.
func discover(f *fence) ([]string, error) {
	entries, err := f.places[0].ReadDir(workflowsDir, maxEntries)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if errors.Is(err, folder.ErrOutside) {
		return nil, &OutsideError{Importer: filepath.Join(f.root, ConfigFile), Path: filepath.Join(f.root, workflowsDir)}
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if isWorkflowFile(entry.Name()) {
			names = append(names, strings.TrimSuffix(entry.Name(), ".ts"))
		}
	}
	slices.Sort(names)
	return names, nil
}

// labelValue is what Kubernetes takes as the value of a label; the name of a Workflow becomes one on each of its Sandboxes.
var labelValue = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

const labelHint = "want at most 63 letters, digits, \".\", \"_\" and \"-\", with a letter or digit at both ends: the name becomes the label jr2.dev/workflow"

func checkWorkflowName(file, name string) error {
	if labelValue.MatchString(name) {
		return nil
	}
	return &ModuleError{File: file, Workflow: name, Rule: "name", Problem: "the file's name is no name for a Workflow — " + labelHint}
}

// defaultImage finds images/default: the folder with a Dockerfile is used, no folder means none, a folder without is an error.
func defaultImage(f *fence) (string, error) {
	dir := filepath.Join(f.root, "images", "default")
	real, info, err := f.stat(dir)
	if os.IsNotExist(err) || isNotDir(err) || err == nil && !info.IsDir() {
		return "", nil
	}
	var outside *OutsideError
	if errors.As(err, &outside) || err == nil && !within(f.root, real) {
		return "", &OutsideError{Importer: filepath.Join(f.root, ConfigFile), Path: dir}
	}
	if err != nil {
		return "", err
	}
	dockerfile := filepath.Join(dir, "Dockerfile")
	_, _, err = f.stat(dockerfile)
	switch {
	case os.IsNotExist(err):
		return "", fmt.Errorf("%s is missing — images/default is the image of every Workspace that names none; add the file or remove the folder", dockerfile)
	case errors.As(err, &outside):
		return "", &OutsideError{Importer: filepath.Join(f.root, ConfigFile), Path: dockerfile}
	case err != nil:
		return "", err
	}
	return dir, nil
}

func within(root, name string) bool {
	rel, err := filepath.Rel(root, name)
	return err == nil && filepath.IsLocal(rel)
}
