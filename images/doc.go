// Package images turns an image context folder into a reference that the nodes of a cluster can pull, and sweeps what is no longer needed.
//
// It decides what an image is called (Ref: a content address over what a builder is sent), which images of an Instance have to be built
// (Plan: reads folders, writes nothing), which builder builds (Connect; Find says which it would be), and when an image counts as delivered (Deliver: built, pushed and
// read back from the registry); and which images of a store nobody needs (Sweep). It does not decide which folders an Instance names, for
// which platforms to build, where the record of delivered images is kept, or what a cluster needs: the caller passes those in.
//
// A Builder builds; a Deliverer brings the result to where nodes find it. BuildKit is the Builder over BuildKit's own protocol, with a
// daemon of its own or the one in a Docker Engine; Natives is one of several, each for its own platform. Registry is the Deliverer that
// pushes, Kind the one that loads images into the nodes of a kind cluster. Nothing is assumed about a builder's network: its trust in a
// registry is its own configuration, ours is Options; only a daemon that we start is told ours (RegistryRules).
//
// What nodes pull beside that is looked at by Registry.Look, through Mirrors; and Bundle holds the images that a product brings, which an
// administrator turns off, replaces or keeps warm.
package images
