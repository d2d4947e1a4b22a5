// Package warm makes the objects that take the wait for an image pull or for a new node out of the start of a Sandbox.
//
//   - Images keeps images pulled on every node where a Sandbox can land: one DaemonSet whose pods mount the images and sleep.
//   - Capacity holds nodes open: placeholders that ask for as much as one Sandbox, have a priority below every other pod's and give way
//     when a Sandbox comes. A cluster's autoscaler then boots a node for the placeholder that waits.
//   - Pulled and Standing say, from what somebody has read, which images are on which node and which placeholders hold a node.
//
// Decided here is what the objects say. Nothing is read or written: the caller applies them, with package apply or another tool, and
// what is no longer kept warm is pruned there. Not decided: which images are worth it, and how many nodes.
//
// Source: the third source document, "Warm sandboxes".
package warm
