package platforms

import (
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	corev1 "k8s.io/api/core/v1"
)

// referenceType is the annotation by which BuildKit marks an index entry that tells about an image and is none: attestations.
// https://docs.docker.com/build/metadata/attestations/attestation-storage/
const referenceType = "vnd.docker.reference.type"

// FromIndex returns the platforms for which an index holds an image, in normal form, sorted. Entries that are no image do not
// count: attestations, artifacts, entries whose platform is unknown or not given. One result means a single-platform image, however
// many entries the index has.
func FromIndex(index *v1.IndexManifest) []string {
	if index == nil {
		return nil
	}
	var found []string
	for _, entry := range index.Manifests {
		// OCI lets a descriptor repeat its config's media type as the artifact type, and go-containerregistry does: still an image.
		artifact := entry.ArtifactType != "" && !types.MediaType(entry.ArtifactType).IsConfig()
		if !entry.MediaType.IsImage() || artifact || entry.Annotations[referenceType] != "" || entry.Platform == nil {
			continue
		}
		name := strings.Trim(entry.Platform.OS+"/"+entry.Platform.Architecture+"/"+entry.Platform.Variant, "/")
		platform, err := Normalize(name)
		if err != nil || strings.HasPrefix(platform, "unknown") {
			continue
		}
		found = append(found, platform)
	}
	return unique(found)
}

// A Need is an architecture that nodes have and an image lacks.
type Need struct {
	Architecture string   `json:"architecture"`
	Nodes        []string `json:"nodes"` // names, in the order of the nodes
}

// Unserved returns, for an image that offers these platforms, the architectures of nodes that could not run it, sorted, with the
// nodes. A node that reports no architecture is left out.
func Unserved(nodes []corev1.Node, offered []string) []Need {
	var needs []Need
	for _, node := range nodes {
		platform, shown := ofNode(node)
		if shown == "" || len(Missing([]string{platform}, offered)) == 0 {
			continue
		}
		at, found := slices.BinarySearchFunc(needs, shown, func(n Need, a string) int { return strings.Compare(n.Architecture, a) })
		if !found {
			needs = slices.Insert(needs, at, Need{Architecture: shown})
		}
		needs[at].Nodes = append(needs[at].Nodes, node.Name)
	}
	return needs
}
