package images

import (
	"bytes"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// checkBases refuses images for different architectures that start with one layer: they stand on one base. An engine of before 2022 does
// not say for which platform the base is. A last stage from scratch is let pass, since it may well begin with files for every platform.
func (e *engine) checkBases(req BuildRequest, images []v1.Image) error {
	if fromScratch(req.Dir) {
		return nil
	}
	first, wrong := map[v1.Hash]string{}, map[string]string{}
	for i, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			return err
		}
		if len(config.RootFS.DiffIDs) == 0 {
			continue
		}
		base, platform := config.RootFS.DiffIDs[0], req.Platforms[i]
		other, seen := first[base]
		switch {
		case !seen:
			first[base] = platform
		case architecture(other) == architecture(platform):
		case architecture(platform) == e.architecture: // what the engine runs itself is what the base is for
			wrong[other] = platform
		default:
			wrong[platform] = other
		}
	}
	if len(wrong) > 0 {
		return &PlatformError{Ref: req.Ref, Wrong: wrong, Base: true}
	}
	return nil
}

// fromScratch says whether the last stage of dir's Dockerfile stands on nothing, as far as its text tells.
func fromScratch(dir string) bool {
	for _, name := range dockerfiles() {
		path, info, err := inside(dir, name)
		if err != nil || info == nil {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return false
		}
		parsed, err := parser.Parse(bytes.NewReader(text))
		if err != nil {
			return false
		}
		stages, _, err := instructions.Parse(parsed.AST, nil)
		if err != nil || len(stages) == 0 {
			return false
		}
		return lastBase(stages) == "scratch"
	}
	return false
}

// lastBase follows the last stage down to an image. A stage can stand on those before it only.
func lastBase(stages []instructions.Stage) string {
	base := stages[len(stages)-1].BaseName
	for i := len(stages) - 2; i >= 0; i-- {
		if stages[i].Name != "" && strings.EqualFold(stages[i].Name, base) {
			base = stages[i].BaseName
		}
	}
	return base
}
