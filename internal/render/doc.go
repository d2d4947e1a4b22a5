// Package render turns an Instance into Kubernetes objects: typed values of k8s.io/api, made by pure functions of one Input.
//
// It decides which objects an Instance needs, what they are called and what stands in them. It holds no client, reads no clock, no
// file and no environment, and two calls with equal Inputs give equal objects in the same order. It does not decide in which order
// objects are applied, whether a live object is adopted or kept, what is pruned, and it mints no secret: for jr2-instance it gives
// the list of keys and how each is made.
//
// Pod Security: every pod of ours satisfies the level "restricted", with one exception. The Repo cache runs as root and mounts a
// hostPath, because it shares the clones of a node with the Sandboxes of that node; that needs the level "privileged" in the
// namespace of an Instance that makes Sandboxes, as the Sandboxes themselves do.
package render
