// Package controller turns a Sandbox into a pod and tells the truth about it. Run is the operator: an embedder calls it in process, and
// the operator image is a small main around it.
//
// It decides what the pod and the Service of a Sandbox look like (Pod, Service), when they are made, what the Sandbox's status says of
// them, when a Sandbox is Lost and when one that nobody uses is deleted. It sums up in a Repo's condition Synced what the nodes report.
//
// Three rules hold whatever crashes, and whoever else runs the same controller:
//
//   - A Sandbox has one pod in its life. Pod and Sandbox have the same name, so two controllers can't make two; the pod's UID is written to
//     the status right after the create, and a pod that was made and not written down is known by its owner. What has that name and another
//     owner is told in a condition and never taken over.
//   - A pod that is gone, or has ended, makes the Sandbox Lost for ever.
//   - A refused create is a wait that a condition explains in the API server's own words. It is tried again after as long as it has been
//     refused, 1 s to 30 s, and as soon as a ResourceQuota shows that there may be room.
//
// It does not decide what a Sandbox asks for (its spec does), where its pod lands (the scheduler does), or what is cloned on a node (the
// Repo cache does). It deletes nothing but idle Sandboxes: the garbage collector follows their owner references.
package controller
