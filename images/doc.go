// Package images turns an image context folder into a reference that the nodes of a cluster can pull.
//
// It decides what an image is called (Ref: a content address), which images of an Instance have to be built (Plan: reads folders,
// writes nothing) and when an image counts as delivered (Deliver: built, pushed and read back from the registry). It does not
// decide which folders an Instance names, for which platforms to build, or where the record of delivered images is kept: the
// caller passes the first two in and stores the third.
//
// A Builder builds; a Deliverer brings the result to where nodes find it. BuildKit is the Builder over BuildKit's own protocol,
// Registry is the Deliverer that pushes. Nothing is assumed about a builder's network: its trust in a registry is its own
// configuration, ours is Options.
package images
