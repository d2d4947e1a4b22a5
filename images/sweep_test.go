package images_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"jr2.dev/jr2/images"
)

// shelf is a Store in memory.
type shelf struct {
	held   []images.Stored
	fails  map[string]error
	listed error
}

func (s *shelf) Built(context.Context) ([]images.Stored, error) {
	return slices.Clone(s.held), s.listed
}

func (s *shelf) Remove(_ context.Context, ref string) error {
	if err := s.fails[ref]; err != nil {
		return err
	}
	for i, image := range s.held {
		if image.ID == ref {
			s.held = slices.Delete(s.held, i, i+1)
			return nil
		}
		if at := slices.Index(image.Tags, ref); at >= 0 {
			s.held[i].Tags = slices.Delete(slices.Clone(image.Tags), at, at+1)
			if len(s.held[i].Tags) == 0 {
				s.held = slices.Delete(s.held, i, i+1)
			}
			return nil
		}
	}
	return fmt.Errorf("no image %s", ref)
}

func (s *shelf) tags() []string {
	var out []string
	for _, image := range s.held {
		if len(image.Tags) == 0 {
			out = append(out, image.ID)
		}
		out = append(out, image.Tags...)
	}
	slices.Sort(out)
	return out
}

// TestSweepKeepsExactlyWhatIsNeeded generates clusters and shelves: what any root names stays, in whatever spelling, by its tag or its digest,
// be it a pod, the image map, a map of a newer version, what a map replaced or what the caller keeps; and all else goes.
func TestSweepKeepsExactlyWhatIsNeeded(t *testing.T) {
	const seed = 20261130
	random := rand.New(rand.NewPCG(seed, seed))
	repos := []string{"r.test/team/jr2-sandbox-a-b-c", "r.test/team/jr2-sandbox-a-b", "docker.io/library/jr2-sandbox-a", "docker.io/team/x", "localhost:5555/t/x", "r.test:5000/x"}
	local := images.LocalRegistry{Host: "localhost:5555", FromRuntime: "kind-registry:5000"}
	for round := range 300 {
		store, roots, want := &shelf{}, &images.Roots{}, []string{}
		replaced, keep := []string{}, []string{}
		roots.Alias(local)
		imageMap := map[string]any{"orchestrator": "r.test/kit:1", "sandbox": map[string]string{}, "numbers": 7, "later": map[string]any{"deep": map[string]string{"x": "y"}}}
		for i := range random.IntN(12) {
			image := images.Stored{ID: fmt.Sprintf("sha256:%064x", round*100+i), Bytes: 10}
			for j := range random.IntN(4) {
				tag := fmt.Sprintf("%s:%x-%d-amd64", repos[random.IntN(len(repos))], i, j)
				image.Tags = append(image.Tags, docker(tag))
				if random.IntN(3) > 0 {
					continue
				}
				want = append(want, docker(tag))
				named := spell(random, tag, local)
				switch random.IntN(5) {
				case 0:
					imageMap["sandbox"].(map[string]string)[fmt.Sprint(i, j)] = named
				case 1:
					imageMap[fmt.Sprint("newer", i, j)] = named
				case 2:
					replaced = append(replaced, named)
				case 3:
					keep = append(keep, named)
				default:
					roots.Add(named)
				}
			}
			if len(image.Tags) > 0 && random.IntN(6) == 0 { // needed by its digest, all its names stay
				digest := fmt.Sprintf("r.test/team/both@sha256:%064x", round*100+i)
				image.Digests = []string{docker(digest)}
				roots.Add([]string{digest, image.ID}[random.IntN(2)])
				want = append(want, image.Tags...)
			}
			if len(image.Tags) == 0 && random.IntN(3) == 0 { // known by a digest alone
				digest := fmt.Sprintf("r.test/only@sha256:%064x", i)
				image.Digests = []string{digest}
				roots.Add(digest)
				want = append(want, image.ID)
			}
			store.held = append(store.held, image)
		}
		text, err := json.Marshal(imageMap)
		must(t, err)
		must(t, roots.AddMap(text))
		text, err = json.Marshal(replaced)
		must(t, err)
		must(t, roots.AddList(text))
		before := store.tags()
		dry, err := images.Sweep(t.Context(), store, roots, images.SweepOptions{DryRun: true, Keep: keep})
		must(t, err)
		if !slices.Equal(before, store.tags()) {
			t.Fatalf("round %d: a dry run removed something", round)
		}
		done, err := images.Sweep(t.Context(), store, roots, images.SweepOptions{Keep: keep})
		must(t, err)
		slices.Sort(want)
		want = slices.Compact(want)
		if !slices.Equal(store.tags(), want) {
			t.Fatalf("round %d of %d: left %q\nwant %q\nof %q", round, seed, store.tags(), want, before)
		}
		if !slices.Equal(dry.Removed, done.Removed) || dry.Images != done.Images || dry.Bytes != done.Bytes || len(done.Removed)+len(want) != len(before) {
			t.Fatalf("round %d: the dry run said %+v, the sweep %+v", round, dry, done)
		}
	}
}

// docker spells a ref as Docker Engine lists it.
func docker(ref string) string {
	return strings.TrimPrefix(strings.TrimPrefix(ref, "docker.io/library/"), "docker.io/")
}

// spell gives one of the ways in which a cluster names a ref.
func spell(random *rand.Rand, ref string, local images.LocalRegistry) string {
	ref = local.PullName(ref)
	if random.IntN(2) == 0 {
		ref = docker(ref)
	}
	if random.IntN(3) == 0 {
		ref += "@sha256:" + strings.Repeat("ab", 32)
	}
	return ref
}

func TestSweepKeepsWhatItIsTold(t *testing.T) {
	store := &shelf{held: []images.Stored{{ID: "sha256:1", Tags: []string{"r.test/x:1-amd64", "r.test/x:2-amd64"}, Bytes: 1_250_000}, {ID: "sha256:2", Tags: []string{"r.test/x:3-amd64"}, Bytes: 2_000_000}, {ID: "sha256:3"}}}
	stuck := errors.New("it is used by a container")
	store.fails = map[string]error{"sha256:3": stuck}
	done, err := images.Sweep(t.Context(), store, &images.Roots{}, images.SweepOptions{Keep: []string{"r.test/x:2-amd64"}})
	if !errors.Is(err, stuck) || !slices.Equal(store.tags(), []string{"r.test/x:2-amd64", "sha256:3"}) {
		t.Errorf("%v, left %q", err, store.tags())
	}
	if text := done.String(); text != "images: swept 1 (up to 2.0 MB), 2 needed" {
		t.Errorf("%s", text)
	}
	store.listed = errors.New("no engine")
	if _, err := images.Sweep(t.Context(), store, &images.Roots{}, images.SweepOptions{}); !errors.Is(err, store.listed) {
		t.Errorf("%v", err)
	}
	if err := (&images.Roots{}).AddMap([]byte("[]")); err == nil {
		t.Error("an unreadable map passes")
	}
}
