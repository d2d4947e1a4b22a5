package platforms_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/platforms"
)

func image(system, architecture, variant string) v1.Descriptor {
	return v1.Descriptor{
		MediaType: types.OCIManifestSchema1,
		Platform:  &v1.Platform{OS: system, Architecture: architecture, Variant: variant},
	}
}

func attestation() v1.Descriptor {
	entry := image("unknown", "unknown", "")
	entry.Annotations = map[string]string{"vnd.docker.reference.type": "attestation-manifest"}
	return entry
}

func TestFromIndex(t *testing.T) {
	artifact := image("linux", "arm64", "")
	artifact.ArtifactType = "application/spdx+json"
	attestationWithPlatform := attestation()
	attestationWithPlatform.Platform = &v1.Platform{OS: "linux", Architecture: "arm64"}
	repeated := image("linux", "arm64", "")
	repeated.ArtifactType = string(types.OCIConfigJSON)
	nested := image("linux", "arm64", "")
	nested.MediaType = types.OCIImageIndex
	noPlatform := image("", "", "")
	noPlatform.Platform = nil

	for name, test := range map[string]struct {
		entries []v1.Descriptor
		want    []string
	}{
		"F13": {
			entries: []v1.Descriptor{image("linux", "amd64", ""), image("linux", "arm64", ""), image("linux", "arm", "v7"), attestation()},
			want:    []string{"linux/amd64", "linux/arm/v7", "linux/arm64"},
		},
		"F13: one platform and its attestation": {
			entries: []v1.Descriptor{image("linux", "amd64", ""), attestation()}, want: []string{"linux/amd64"},
		},
		"sibling: the variant is written out, and an old name is used": {
			entries: []v1.Descriptor{image("linux", "aarch64", ""), image("linux", "arm64", "v8"), image("linux", "x86_64", "")},
			want:    []string{"linux/amd64", "linux/arm64"},
		},
		"sibling: artifacts and attestations that carry a real platform": {
			entries: []v1.Descriptor{image("linux", "amd64", ""), artifact, attestationWithPlatform, nested, noPlatform},
			want:    []string{"linux/amd64"},
		},
		"an artifact type that repeats the config's media type": {
			entries: []v1.Descriptor{image("linux", "amd64", ""), repeated}, want: []string{"linux/amd64", "linux/arm64"},
		},
		"Docker's media type": {
			entries: []v1.Descriptor{{MediaType: types.DockerManifestSchema2, Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}},
			want:    []string{"linux/amd64"},
		},
		"a variant that is its own platform": {
			entries: []v1.Descriptor{image("linux", "amd64", "v3")}, want: []string{"linux/amd64/v3"},
		},
		"attestations alone": {entries: []v1.Descriptor{attestation()}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := platforms.FromIndex(&v1.IndexManifest{Manifests: test.entries}); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	if got := platforms.FromIndex(nil); got != nil {
		t.Errorf("no index: %v", got)
	}
}

// TestF13Found is the whole case: what is wanted, in three spellings, against what an index holds and what nodes report.
func TestF13Found(t *testing.T) {
	offered := platforms.FromIndex(&v1.IndexManifest{Manifests: []v1.Descriptor{
		image("linux", "amd64", ""), image("linux", "arm64", ""), image("linux", "arm", "v7"), attestation(),
	}})
	want, err := platforms.Named([]string{"linux/arm64/v8", "linux/arm64", "linux/amd64"})
	if err != nil || len(want.Platforms) != 2 {
		t.Fatalf("want two platforms, got %v, %v", want.Platforms, err)
	}
	if missing := platforms.Missing(want.Platforms, offered); missing != nil {
		t.Errorf("missing %v", missing)
	}
	nodes := []corev1.Node{node("one", "arm64"), node("two", "amd64"), node("three", "arm64"), node("four", "s390x"), node("five", "")}
	for name, test := range map[string]struct {
		offered []string
		want    []platforms.Need
	}{
		"the index":      {offered: offered, want: []platforms.Need{{Architecture: "s390x", Nodes: []string{"four"}}}},
		"another name":   {offered: []string{"linux/arm64/v8", "linux/x86_64", "linux/s390x"}},
		"nothing at all": {want: []platforms.Need{{"amd64", []string{"two"}}, {"arm64", []string{"one", "three"}}, {"s390x", []string{"four"}}}},
		"one platform with its attestation": {
			offered: platforms.FromIndex(&v1.IndexManifest{Manifests: []v1.Descriptor{image("linux", "amd64", ""), attestation()}}),
			want:    []platforms.Need{{"arm64", []string{"one", "three"}}, {"s390x", []string{"four"}}},
		},
	} {
		if got := platforms.Unserved(nodes, test.offered); fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
