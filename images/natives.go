package images

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"
)

// Natives is a Builder of several, one for each platform ("linux/arm64"), so that no platform has to be emulated. They build at the same
// time and push their images without a tag; then one list of all of them is put together and gets the tag. One builder may stand for
// several platforms. Each must take BuildRequest.ByDigest, as BuildKit does.
//
// Nothing is pushed before all have built and BeforePush has seen all of the images. A push that fails leaves images without a tag behind.
type Natives map[string]Builder

// Platforms are those of the map that their builder offers, or may offer.
func (n Natives) Platforms(ctx context.Context) ([]string, error) {
	var out []string
	for _, platform := range slices.Sorted(maps.Keys(n)) {
		offered, err := n[platform].Platforms(ctx)
		if err != nil {
			return nil, err
		}
		if len(offered) == 0 || slices.Contains(sorted(offered), sorted([]string{platform})[0]) {
			out = append(out, platform)
		}
	}
	return out, nil
}

// Place names all places.
func (n Natives) Place() Place {
	var whats []string
	for _, platform := range slices.Sorted(maps.Keys(n)) {
		what := "a builder"
		if placed, ok := n[platform].(interface{ Place() Place }); ok {
			what = placed.Place().String()
		}
		whats = append(whats, platform+" by "+what)
	}
	return Place{What: strings.Join(whats, ", ")}
}

// Build implements Builder. A platform without a builder is an error.
func (n Natives) Build(ctx context.Context, req BuildRequest) (BuildResult, error) {
	parts, err := n.parts(req)
	if err != nil {
		return BuildResult{}, err
	}
	if len(parts) == 1 {
		return parts[0].builder.Build(ctx, req)
	}
	meeting := &meeting{before: req.BeforePush, left: len(parts), over: make(chan struct{})}
	progress := serial(req.Progress)
	results := make([]BuildResult, len(parts))
	group, within := errgroup.WithContext(ctx)
	for i, part := range parts {
		group.Go(func() error {
			one, came := req, false
			one.Platforms, one.ByDigest, one.Progress = part.platforms, true, progress
			one.BeforePush = func(ctx context.Context, built []Built) error {
				came = true
				return meeting.join(ctx, built)
			}
			var err error
			results[i], err = part.builder.Build(within, one)
			if err == nil && !came { // it kept its part of the contract badly; the others are not to wait for it for ever
				err = meeting.join(within, nil)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		if ctx.Err() != nil {
			return BuildResult{}, context.Cause(ctx)
		}
		return BuildResult{}, err
	}
	digest, err := req.list(ctx, results)
	if err != nil {
		if ctx.Err() != nil {
			return BuildResult{}, context.Cause(ctx)
		}
		return BuildResult{}, &PushError{Name: req.Name, Ref: req.Ref, Err: err}
	}
	return BuildResult{Digest: digest, Users: users(meeting.built)}, nil
}

// A part is what one builder builds.
type part struct {
	builder   Builder
	platforms []string
}

func (n Natives) parts(req BuildRequest) ([]*part, error) {
	byPlatform := map[string]Builder{}
	for platform, builder := range n {
		byPlatform[sorted([]string{platform})[0]] = builder
	}
	var parts []*part
	for _, platform := range sorted(req.Platforms) {
		builder := byPlatform[platform]
		if builder == nil {
			return nil, &BuildError{Name: req.Name, Ref: req.Ref, Dir: req.Dir, Err: errors.New("no builder is named for " + platform)}
		}
		i := slices.IndexFunc(parts, func(p *part) bool { return same(p.builder, builder) })
		if i < 0 {
			i, parts = len(parts), append(parts, &part{builder: builder})
		}
		parts[i].platforms = append(parts[i].platforms, platform)
	}
	return parts, nil
}

// same says whether two are one builder; not for types that can't be compared.
func same(a, b Builder) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

// A meeting is where the builds of all parts wait for each other before they push.
type meeting struct {
	before func(context.Context, []Built) error
	over   chan struct{} // closed when the last has come and before has spoken

	mu    sync.Mutex
	left  int
	built []Built
	err   error
}

func (m *meeting) join(ctx context.Context, built []Built) error {
	m.mu.Lock()
	m.built = append(m.built, built...)
	m.left--
	last := m.left == 0
	m.mu.Unlock()
	if last {
		slices.SortFunc(m.built, func(a, b Built) int { return strings.Compare(a.Platform, b.Platform) })
		if m.before != nil {
			m.err = m.before(ctx, m.built)
		}
		close(m.over)
	}
	select {
	case <-m.over:
		return m.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serial lets several builds tell their progress one at a time.
func serial(tell func(Event)) func(Event) {
	if tell == nil {
		return nil
	}
	var mu sync.Mutex
	return func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		tell(e)
	}
}

// list puts what the builders pushed into one list, and gives it the tag.
func (req BuildRequest) list(ctx context.Context, results []BuildResult) (string, error) {
	target, err := req.target()
	if err != nil {
		return "", err
	}
	options := req.remote(ctx)
	var entries []mutate.IndexAddendum
	for _, result := range results {
		more, err := pushed(target.Context().Digest(result.Digest), options)
		if err != nil {
			return "", err
		}
		entries = append(entries, more...)
	}
	slices.SortStableFunc(entries, func(a, b mutate.IndexAddendum) int {
		return strings.Compare(a.Platform.String(), b.Platform.String())
	})
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), entries...)
	if err := remote.Put(target, index, options...); err != nil {
		return "", err
	}
	digest, err := index.Digest()
	return digest.String(), err
}

// pushed are the entries of a list for what one builder pushed: an image, or a list of its own.
func pushed(ref name.Digest, options []remote.Option) ([]mutate.IndexAddendum, error) {
	desc, err := remote.Get(ref, options...)
	if err != nil {
		return nil, err
	}
	if !desc.MediaType.IsIndex() {
		image, err := desc.Image()
		if err != nil {
			return nil, err
		}
		config, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		return []mutate.IndexAddendum{{Add: image, Descriptor: v1.Descriptor{Platform: config.Platform()}}}, nil
	}
	index, err := desc.ImageIndex()
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var entries []mutate.IndexAddendum
	for _, entry := range manifest.Manifests {
		image, err := index.Image(entry.Digest)
		if err != nil {
			return nil, err
		}
		entries = append(entries, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: entry.Platform}})
	}
	return entries, nil
}
