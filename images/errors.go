package images

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// An Attempt is one place at which a builder was looked for.
type Attempt struct {
	Place
	Err error
}

// A NoBuilderError says that an image has to be built and no builder answers.
type NoBuilderError struct{ Tried []Attempt }

func (e *NoBuilderError) Error() string {
	var b strings.Builder
	b.WriteString("no builder answers, and an image has to be built — start Docker or buildkitd, or set BUILDKIT_HOST to the address of one. Tried:")
	for _, t := range e.Tried {
		fmt.Fprintf(&b, "\n  %s: %v", t.Place, t.Err)
	}
	return b.String()
}

// Unwrap gives the reasons of all attempts.
func (e *NoBuilderError) Unwrap() []error {
	errs := make([]error, len(e.Tried))
	for i, t := range e.Tried {
		errs[i] = t.Err
	}
	return errs
}

// builderWords is what the builder says, without what each of its layers puts before.
func builderWords(err error) string {
	text := err.Error()
	for {
		shorter := text
		for _, prefix := range []string{"rpc error: code = Unknown desc = ", "failed to solve: ", "failed to solve with frontend dockerfile.v0: ", "failed to create LLB definition: "} {
			shorter = strings.TrimPrefix(shorter, prefix)
		}
		if shorter == text {
			return text
		}
		text = shorter
	}
}

// A Source is a place in a Dockerfile.
type Source struct {
	File string
	Line int    // from 1
	Text string // the line itself
}

// A BuildError says that a build failed. Nothing was pushed.
type BuildError struct {
	Name, Ref, Dir string
	// Sources are the places that the builder blames, the innermost first.
	Sources []Source
	// Step is the name of the first step that failed, such as "[2/3] RUN make"; empty when none did.
	Step string
	// Log is the end of the output of the steps that failed.
	Log []string
	Err error
}

func (e *BuildError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "sandbox image %q (%s) cannot be built: %s", e.Name, e.Dir, builderWords(e.Err))
	for _, s := range e.Sources {
		fmt.Fprintf(&b, "\n  %s:%d: %s", s.File, s.Line, s.Text)
	}
	if len(e.Sources) == 0 && e.Step != "" { // an old BuildKit names no place
		b.WriteString("\n  in step " + e.Step)
	}
	for _, line := range e.Log {
		b.WriteString("\n  | " + line)
	}
	return b.String()
}

func (e *BuildError) Unwrap() error { return e.Err }

// A PushError says that an image was built and its registry did not take it.
type PushError struct {
	Name, Ref string
	Err       error
}

func (e *PushError) Error() string {
	hint := ""
	if e.Unauthorized() {
		hint = " — log in first: docker login " + strings.Split(e.Ref, "/")[0]
	}
	return fmt.Sprintf("sandbox image %q was built and cannot be pushed as %s%s: %s", e.Name, e.Ref, hint, builderWords(e.Err))
}

// Unauthorized says whether the registry refused the credentials. The builder passes a registry's answer on as text alone.
func (e *PushError) Unauthorized() bool { return strings.Contains(e.Err.Error(), "401 Unauthorized") }

// Busy says whether the registry asked for patience.
func (e *PushError) Busy() bool { return strings.Contains(e.Err.Error(), "429 Too Many Requests") }

func (e *PushError) Unwrap() error { return e.Err }

// A RegistryError says that a registry did not let us read an image, or will not let us push one.
type RegistryError struct {
	Ref string
	// Host is the registry.
	Host string
	// Unauthorized says that the registry refused the credentials (or their absence) with 401.
	Unauthorized bool
	// Push says that the question was whether the credentials may push.
	Push bool
	// Mirrors are what the registry's mirrors said before, one error for each; none when it has none.
	Mirrors []error
	Err     error
}

func (e *RegistryError) Error() string {
	text := e.own()
	for _, err := range e.Mirrors {
		text += "; " + err.Error()
	}
	return text
}

func (e *RegistryError) own() string {
	if e.Unauthorized {
		return fmt.Sprintf("registry %s refuses the credentials for %s — log in first: docker login %s (%v)", e.Host, e.Ref, e.Host, e.Err)
	}
	switch {
	case e.Push && !hasStatus(e.Err, http.StatusForbidden):
		return fmt.Sprintf("registry %s cannot take %s, so nothing was built: %v", e.Host, e.Ref, e.Err)
	case e.Push:
		return fmt.Sprintf("registry %s does not let these credentials push %s, so nothing was built: %v", e.Host, e.Ref, e.Err)
	}
	return fmt.Sprintf("registry %s cannot be asked for %s: %v", e.Host, e.Ref, e.Err)
}

func (e *RegistryError) Unwrap() error { return e.Err }

// A PlatformError says that an image is not made for the platforms that it claims or should have.
type PlatformError struct {
	Ref string
	// Missing are wanted platforms for which there is no image.
	Missing []string
	// Wrong maps a platform to what was found in its place: the platform of the config, or of the base image of the last stage.
	Wrong map[string]string
	// Base says that Wrong is about the base image.
	Base bool
}

func (e *PlatformError) Error() string {
	var parts []string
	if len(e.Missing) > 0 {
		parts = append(parts, "it holds no image for "+strings.Join(e.Missing, ", "))
	}
	for _, p := range slices.Sorted(maps.Keys(e.Wrong)) {
		if e.Base {
			parts = append(parts, fmt.Sprintf("the last stage for %s stands on an image for %s (a --platform in its FROM, or a base tag without %s)", p, e.Wrong[p], p))
		} else {
			parts = append(parts, fmt.Sprintf("the image for %s says that it is for %s", p, e.Wrong[p]))
		}
	}
	return fmt.Sprintf("image %s would not run on every node: %s", e.Ref, strings.Join(parts, "; "))
}

// A UserError says that an image declares different USERs for different platforms, so that no one seat fits it.
type UserError struct {
	Ref string
	// Users maps each platform to its USER; "" for none.
	Users map[string]string
}

func (e *UserError) Error() string {
	var parts []string
	for _, p := range slices.Sorted(maps.Keys(e.Users)) {
		user := "none"
		if e.Users[p] != "" {
			user = fmt.Sprintf("%q", e.Users[p])
		}
		parts = append(parts, p+" declares "+user)
	}
	return fmt.Sprintf("image %s must declare the same USER for every platform: %s", e.Ref, strings.Join(parts, ", "))
}

// A ChangedError says that a folder was changed while it was built, so that its name would not name its content.
type ChangedError struct{ Dir, Ref string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("image context %s changed while %s was built; nothing was pushed — run again", e.Dir, e.Ref)
}
