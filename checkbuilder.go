package jr2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/platforms"
	"jr2.dev/jr2/preflight"
)

// builderPatience bounds the whole look at builders, unless Options.Buildkit has a bound of its own.
const builderPatience = 5 * time.Second

// A slowBuilderError says that no builder had answered when the look ended, which is no proof that there is none.
type slowBuilderError struct{ after time.Duration }

func (e *slowBuilderError) Error() string { return fmt.Sprintf("no answer within %s", e.after) }

// buildsWith looks, where an image is to be built, for a builder and asks what it can build for, as a converge does before its first build. It
// starts none. For a plan it is a warning, which may be carried out where there is one.
func (p *planning) buildsWith(ctx context.Context) error {
	if !slices.ContainsFunc(p.plan.Images, func(image PlannedImage) bool { return image.Intent == WillBuild }) {
		return nil
	}
	bound := cmp.Or(p.opts.Buildkit.Timeout, builderPatience)
	within, cancel := context.WithTimeoutCause(ctx, bound, &slowBuilderError{bound})
	defer cancel()
	findings := p.builderFindings(within)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	for _, f := range findings {
		if !p.whole && f.Severity == preflight.Refuse {
			f.Severity = preflight.Warn
		}
		if f.Severity != preflight.Refuse {
			p.note(f)
		}
	}
	if !p.whole {
		return nil
	}
	return preflight.Refused(findings)
}

func (p *planning) builderFindings(ctx context.Context) []preflight.Finding {
	builder := p.builder()
	switch {
	case builder.given != nil:
		offered, err := builder.given.Platforms(ctx)
		if err != nil {
			return []preflight.Finding{silentBuilder("the builder that was given", err)}
		}
		return p.emulates(offered)
	case builder.natives == nil:
		found, err := images.Find(ctx, patiently(builder.connect))
		if err != nil {
			return []preflight.Finding{unbuildable(err, found, builder.connect, "BUILDKIT_HOST")}
		}
		return p.emulates(found.Platforms)
	}
	var findings []preflight.Finding
	var offered []string
	for _, platform := range slices.Sorted(maps.Keys(builder.natives)) {
		at := builder.natives[platform]
		found, err := images.Find(ctx, patiently(at))
		if err != nil {
			findings = append(findings, unbuildable(err, found, at, "the address for "+platform))
		}
		if err != nil || platforms.CheckBuilder([]string{platform}, found.Platforms) == nil {
			offered = append(offered, platform) // one that is away is told already
		}
	}
	return append(findings, p.emulates(offered)...)
}

// patiently leaves the bound to the look as a whole.
func patiently(opts images.ConnectOptions) images.ConnectOptions {
	opts.Timeout = time.Hour
	return opts
}

// emulates compares what a builder offers with what is to be built.
func (p *planning) emulates(offered []string) []preflight.Finding {
	err := platforms.CheckBuilder(p.decision.Platforms, offered)
	if err == nil {
		return nil
	}
	_, fix, _ := strings.Cut(err.Error(), "\n")
	return []preflight.Finding{{
		Severity: preflight.Refuse, Code: preflight.CodeEmulation, Object: "Instance " + p.inst.Name, Message: err.Error(),
		Fix: strings.TrimSpace(fix),
	}}
}

// unbuildable is the finding of a look at builders that failed. One that has not answered yet may do so later.
func unbuildable(err error, found images.Found, at images.ConnectOptions, named string) preflight.Finding {
	none := (*images.NoBuilderError)(nil)
	if !errors.As(err, &none) {
		return silentBuilder(found.Place.String(), err)
	}
	f := preflight.Finding{Severity: preflight.Refuse, Code: preflight.CodeNoBuilder, Object: "builder", Message: err.Error(),
		Fix: "start Docker or buildkitd, or set BUILDKIT_HOST to the address of one"}
	if at.Address != "" {
		f.Code, f.Object = preflight.CodeBuilderUnreachable, "builder "+at.Address
		f.Fix = "start the builder, or correct " + named
		f.Message = fmt.Sprintf("an image has to be built, and its builder does not answer: %s: %v — %s", none.Tried[0].Place, none.Tried[0].Err, f.Fix)
	}
	if errors.As(err, new(*slowBuilderError)) {
		f.Severity = preflight.Warn
	}
	return f
}

// silentBuilder is there, and has not said what it can build for: then the build tells.
func silentBuilder(which string, err error) preflight.Finding {
	return preflight.Finding{Severity: preflight.Note, Code: preflight.CodeNotLookedAt, Object: "builder",
		Message: fmt.Sprintf("nobody could ask %s for which platforms it builds: %v", which, err)}
}
