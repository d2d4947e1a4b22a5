package assembly

import (
	"path/filepath"
	"strings"

	"jr2.dev/jr2/config"
)

// placer takes the machine out of an Instance: what is left is the same wherever the folder lies.
type placer struct{ root string }

// contexts keys the digests by the paths of the folders, seen from the Instance folder.
func (p placer) contexts(digests map[string]string) map[string]string {
	if len(digests) == 0 {
		return nil
	}
	out := make(map[string]string, len(digests))
	for key, digest := range digests {
		out[p.image(key)] = digest
	}
	return out
}

// image gives the path of an image context, a file: URL or an absolute path, from the Instance folder; a registry reference stays as it is, and so does a folder of
// an Instance without one.
func (p placer) image(image string) string {
	if dir, ok := config.ImageFolder(image); ok {
		return p.relative(dir, image)
	}
	if filepath.IsAbs(image) {
		return p.relative(image, image)
	}
	return image
}

func (p placer) relative(dir, otherwise string) string {
	if p.root == "" || dir == "" {
		return otherwise
	}
	path, err := filepath.Rel(p.root, dir)
	if err != nil {
		return otherwise
	}
	return filepath.ToSlash(path)
}

// portable copies an Instance without values of secrets, paths of the machine, notes, and the fields that only a converge uses and
// that therefore may differ between machines: registry, kitRegistry, platforms.
func (p placer) portable(inst *config.Instance) config.Instance {
	out := *inst
	out.Root, out.File, out.Notes, out.Modules = "", "", nil, nil
	out.Registry, out.KitRegistry, out.Platforms = nil, nil, nil
	out.DefaultImage = p.relative(inst.DefaultImage, inst.DefaultImage)
	out.Secrets = append([]config.HeldSecret(nil), inst.Secrets...)
	for i := range out.Secrets {
		out.Secrets[i].Value = config.Secret{}
	}
	out.Harness.Env = append([]config.HarnessEnv(nil), inst.Harness.Env...)
	for i := range out.Harness.Env {
		out.Harness.Env[i].Value = config.Secret{}
	}
	if inst.Harness.Provider != nil {
		provider := *inst.Harness.Provider
		provider.APIKey = config.Secret{}
		out.Harness.Provider = &provider
	}
	out.Workflows = append([]config.Workflow(nil), inst.Workflows...)
	for i := range out.Workflows {
		w := &out.Workflows[i]
		w.File = p.relative(w.File, base(w.File))
		w.Workspaces = append([]config.Workspace(nil), w.Workspaces...)
		for j := range w.Workspaces {
			w.Workspaces[j].Image = p.image(w.Workspaces[j].Image)
			w.Workspaces[j].User = p.image(w.Workspaces[j].User)
		}
	}
	return out
}

func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
