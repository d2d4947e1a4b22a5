package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Store holds images that converges built: a Docker Engine's, or that of a node of a kind cluster.
type Store interface {
	// Built lists the images with a LabelKind. Images without it are none of ours.
	Built(ctx context.Context) ([]Stored, error)
	// Remove removes a tag, and with its last tag the image; or an image without tags by its id. What is gone already is no error.
	Remove(ctx context.Context, ref string) error
}

// A Stored is one image of a Store.
type Stored struct {
	ID   string
	Tags []string // each with its repository
	// Digests are the forms repository@digest under which it is known.
	Digests []string
	Bytes   int64
	// Instances are those for which it was built, by its LabelInstance; empty when it does not say.
	Instances []string
}

// SweepOptions of Sweep.
type SweepOptions struct {
	// DryRun removes nothing and says what would be removed.
	DryRun bool
	// Keep are refs that count as needed beside the roots: what a converge resolved, and what the map held that it replaced.
	Keep []string
}

// A Sweeping is what a Sweep did.
type Sweeping struct {
	// Removed are the tags, and ids of images without tags, that were removed; with DryRun, that would have been.
	Removed []string `json:"removed"`
	// Images counts the images of which nothing is left, and Bytes is what they held, as an upper bound: layers are shared.
	Images int   `json:"images"`
	Bytes  int64 `json:"bytes"`
	// Kept counts the images that are needed.
	Kept   int  `json:"kept"`
	DryRun bool `json:"dryRun,omitempty"`
	// Nodes are the nodes of a kind cluster, where they were swept too.
	Nodes []NodeSweeping `json:"nodes,omitempty"`
}

// Sweep removes from store what no root names. The caller has read all roots of the cluster: with some of them missing, images that are
// needed would go. One removal that fails stops no other; the joined errors come with the Sweeping.
func Sweep(ctx context.Context, store Store, roots *Roots, opts SweepOptions) (*Sweeping, error) {
	done := &Sweeping{Removed: []string{}, DryRun: opts.DryRun} // as JSON a list, also when empty
	held, err := store.Built(ctx)
	if err != nil {
		return done, fmt.Errorf("list the images that were built: %w", err)
	}
	slices.SortFunc(held, func(a, b Stored) int { return strings.Compare(a.ID, b.ID) }) // a store lists in any order
	// A converge keeps refs by the names that nodes know, as the roots do.
	keep := &Roots{local: roots.local}
	keep.Add(opts.Keep...)
	need := func(ref string) bool { return roots.Need(ref) || keep.Need(ref) }
	var errs []error
	for _, image := range held {
		if err := done.image(ctx, store, image, roots.spares, need); err != nil {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
	}
	return done, errors.Join(errs...)
}

// image removes the tags of one image that nobody needs.
func (s *Sweeping) image(ctx context.Context, store Store, image Stored, spares func(Stored) bool, need func(string) bool) error {
	if spares(image) || slices.ContainsFunc(append([]string{image.ID}, image.Digests...), need) {
		s.Kept++
		return nil
	}
	refs := image.Tags
	if len(refs) == 0 {
		refs = []string{image.ID}
	}
	var errs []error
	left := 0
	for _, ref := range refs {
		if need(ref) {
			left++
			continue
		}
		if !s.DryRun {
			if err := store.Remove(ctx, ref); err != nil {
				left++
				errs = append(errs, fmt.Errorf("remove image %s: %w", ref, err))
				continue
			}
		}
		s.Removed = append(s.Removed, ref)
	}
	if left > 0 {
		s.Kept++
		return errors.Join(errs...)
	}
	s.Images++
	s.Bytes += image.Bytes
	return nil
}

// String is one line.
func (s *Sweeping) String() string {
	switch {
	case len(s.Removed) == 0:
		return fmt.Sprintf("images: nothing to sweep (%d needed)", s.Kept)
	case s.DryRun:
		return fmt.Sprintf("images: would sweep %d (up to %s), %d needed", s.Images, size(s.Bytes), s.Kept)
	}
	return fmt.Sprintf("images: swept %d (up to %s), %d needed", s.Images, size(s.Bytes), s.Kept)
}

// size prints bytes in SI units.
func size(bytes int64) string {
	value, unit := float64(bytes), "B"
	for _, next := range []string{"kB", "MB", "GB", "TB"} {
		if value < 1000 {
			break
		}
		value, unit = value/1000, next
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}
