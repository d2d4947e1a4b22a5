package platforms

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Supported returns the platforms for which the kit releases its images, sorted. An image built for anything else could not share
// a pod with a Kit image.
func Supported() []string { return []string{"linux/amd64", "linux/arm64"} }

// Set is the platforms that a converge builds for, and where they come from.
type Set struct {
	// Platforms is never empty, sorted, without duplicates, in normal form, and a part of Supported.
	Platforms []string `json:"platforms"`
	// Nodes is how many schedulable nodes the set was read from, those with an unsupported architecture included. 0 when the
	// configuration named the set, and when each node that counts is one that is not schedulable yet.
	Nodes int `json:"nodes"`
	// Skipped is the architectures of nodes for which the kit releases nothing, sorted.
	Skipped []string `json:"skipped,omitempty"`
	// FromConfig says that the configuration named the set and no node was read.
	FromConfig bool `json:"fromConfig,omitempty"`
}

// Suffix is the end of an image tag that names the architectures: "-amd64-arm64". Architectures are sorted.
func (s Set) Suffix() string {
	var b strings.Builder
	for _, platform := range s.Platforms {
		b.WriteString("-" + architecture(platform))
	}
	return b.String()
}

// Named takes the set from the configuration. Equal platforms in different spelling count once. The error is an *UnsupportedError
// when the list is empty or names a platform that is not Supported.
func Named(list []string) (Set, error) {
	set := Set{FromConfig: true}
	var unsupported []string
	for _, entry := range list {
		platform, err := Normalize(entry)
		if err != nil || !slices.Contains(Supported(), platform) {
			unsupported = append(unsupported, strings.TrimSpace(entry))
			continue
		}
		set.Platforms = append(set.Platforms, platform)
	}
	if len(unsupported) > 0 || len(list) == 0 {
		return Set{}, &UnsupportedError{Entries: unique(unsupported)}
	}
	set.Platforms = unique(set.Platforms)
	return set, nil
}

// FromNodes reads the set from the nodes on which a pod can run. soon is nodes on which no pod can run at this moment but is
// expected to: a fresh node's startup taint says nothing about its architecture, so they add to the set, but they are not among
// the schedulable nodes that Set.Nodes counts. A node that reports no architecture counts and adds nothing.
//
// The error is a *NoneError when no node has a Supported platform.
func FromNodes(nodes []corev1.Node, soon ...corev1.Node) (Set, error) {
	set := Set{Nodes: len(nodes)}
	var reported []string
	for _, node := range slices.Concat(nodes, soon) {
		platform, shown := ofNode(node)
		switch {
		case shown == "":
			continue
		case slices.Contains(Supported(), platform):
			set.Platforms = append(set.Platforms, platform)
		default:
			set.Skipped = append(set.Skipped, shown)
		}
		reported = append(reported, shown)
	}
	if len(set.Platforms) == 0 {
		return Set{}, &NoneError{Architectures: unique(reported), Nodes: len(nodes) + len(soon)}
	}
	set.Platforms, set.Skipped = unique(set.Platforms), unique(set.Skipped)
	return set, nil
}

// ofNode returns a node's platform in normal form and its architecture as it is shown: with the operating system before it when
// that is not Linux, because a windows/amd64 node runs no linux/amd64 image. Both are empty when the node reports none.
func ofNode(node corev1.Node) (platform, shown string) {
	info := node.Status.NodeInfo
	if info.Architecture == "" {
		return "", ""
	}
	system := strings.ToLower(cmp.Or(info.OperatingSystem, "linux"))
	platform, err := Normalize(system + "/" + info.Architecture)
	if err != nil { // a word that no image format knows: shown as the node says it
		platform = system + "/" + info.Architecture
	}
	return platform, strings.TrimPrefix(platform, "linux/")
}

// unique sorts and removes duplicates; nil stays nil.
func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
