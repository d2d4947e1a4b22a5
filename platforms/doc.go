// Package platforms decides for which platforms a converge builds its images, and whether a builder can build for them.
//
// It decides over values: the strings of the configuration, nodes that somebody else has read, the entries of an image index. It
// does not read a cluster, a registry or a builder, and it does not decide on which node a pod can run: that is placement's rule,
// and FromNodes takes the nodes that came out of it.
//
// A platform is written as Docker writes it, "linux/arm64", in the normal form of containerd's platforms package: lower case, the
// architecture's usual name (amd64, not x86_64), and no variant where the variant is the usual one (arm64, not arm64/v8).
package platforms
