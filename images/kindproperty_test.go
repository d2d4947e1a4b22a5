package images_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"jr2.dev/jr2/images"
)

// TestSweepKindKeepsExactlyWhatIsNeeded generates nodes: of every image of ours the tags that a root names stay, with all names of their image, and
// every other name goes. What is not ours stays.
func TestSweepKindKeepsExactlyWhatIsNeeded(t *testing.T) {
	t.Parallel()
	const seed = 20261130
	random := rand.New(rand.NewPCG(seed, seed))
	unlabelled := amd64("7")
	unlabelled.unlabelled = true
	for round := range 25 {
		engine, docker := newFakeEngine(t, "a", "b")
		roots, want := &images.Roots{}, map[string][]string{}
		for _, node := range engine.nodes {
			for i := range random.IntN(6) {
				kept := node.fill(t, random, roots, amd64("7"), fmt.Sprint(round, node.name, i))
				want[node.name] = append(want[node.name], kept...)
			}
			before := maps.Clone(node.names)
			node.fill(t, random, &images.Roots{}, unlabelled, fmt.Sprint(round, node.name, "not ours"))
			for name := range node.names {
				if _, ours := before[name]; !ours {
					want[node.name] = append(want[node.name], name)
				}
			}
		}
		kind := &images.Kind{Cluster: "dev", Docker: docker}
		would, err := images.SweepKind(t.Context(), kind, roots, images.SweepOptions{DryRun: true})
		must(t, err)
		done, err := images.SweepKind(t.Context(), kind, roots, images.SweepOptions{})
		must(t, err)
		must(t, kind.Close())
		for i, node := range engine.nodes {
			left := slices.Sorted(maps.Keys(node.names))
			slices.Sort(want[node.name])
			if !slices.Equal(left, want[node.name]) {
				t.Fatalf("round %d of %d: %s is left with %q\nwant %q", round, seed, node.name, left, want[node.name])
			}
			slices.Sort(would[i].Removed)
			slices.Sort(done[i].Removed)
			if !slices.Equal(would[i].Removed, done[i].Removed) || would[i].Bytes != done[i].Bytes || would[i].Images != done[i].Images {
				t.Fatalf("round %d of %d: would sweep %+v, swept %+v", round, seed, would[i], done[i])
			}
		}
	}
}

// fill puts one image on the node under some names, as imports, pulls and the kubelet's interface give them, makes some of its tags needed, and
// returns the names that must stay.
func (n *fakeNode) fill(t *testing.T, random *rand.Rand, roots *images.Roots, c child, content string) []string {
	t.Helper()
	repo := "docker.io/library/jr2-sandbox-a-b"
	if c.unlabelled {
		repo = "docker.io/library/stranger"
	}
	blobs, desc, err := blobsOf(layered(t, c, content))
	must(t, err)
	maps.Copy(n.blobs, blobs)
	tags, kept := []string{}, []string{}
	for i := range random.IntN(4) {
		tag := fmt.Sprintf("%s:%.6s-%d-amd64", repo, desc.Digest.Hex, i)
		n.names[tag] = desc
		tags = append(tags, tag)
		if random.IntN(3) == 0 {
			roots.Add(strings.TrimPrefix(tag, []string{"", "docker.io/library/"}[random.IntN(2)]))
			kept = append(kept, tag)
		}
	}
	var others []string
	add := func(name string, desc v1.Descriptor) {
		n.names[name] = desc
		others = append(others, name)
	}
	if random.IntN(2) == 0 { // the kubelet's interface
		config, err := layered(t, c, content).ConfigName()
		must(t, err)
		add(config.String(), desc)
	}
	if random.IntN(2) == 0 { // an import
		list := fmt.Sprintf(`{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [{"mediaType": %q, "digest": %q, "size": %d}]}`, desc.MediaType, desc.Digest, desc.Size)
		digest, size, err := v1.SHA256(strings.NewReader(list))
		must(t, err)
		n.blobs[digest.String()] = []byte(list)
		add("import-2026-11-30@"+digest.String(), v1.Descriptor{MediaType: "application/vnd.oci.image.index.v1+json", Digest: digest, Size: size})
	}
	pulled := fmt.Sprintf("%s@%s", repo, desc.Digest)
	if random.IntN(3) == 0 || len(tags)+len(others) == 0 { // a pull
		add(pulled, desc)
		if random.IntN(2) == 0 { // an image that is needed by its digest keeps all names
			roots.Add(pulled)
			return append(tags, others...)
		}
	}
	if len(kept) > 0 {
		return append(kept, others...)
	}
	return nil
}
