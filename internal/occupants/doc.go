// Package occupants says what is in a namespace, and whose it is not.
//
// A namespace that is deleted takes everything in it along, and one that is taken over holds what others rely on. So whoever deletes or adopts one
// asks first: In lists every object of every namespaced kind that the server knows, metadata only, and returns those that are the caller's own
// and those that are not. It leaves out what Kubernetes and well-known distributions put into every namespace by themselves, and what belongs,
// through its owner references, to something of the caller's.
//
// It decides nothing else: what is the caller's own is the caller's to say, and a kind that could not be looked at is returned as that and never
// taken for empty.
package occupants
