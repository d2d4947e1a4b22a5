// Package placement decides where a Sandbox can land: on which nodes, for which reason not on the others, whether its Size fits there,
// how many more of them fit, and how large one may be.
//
//   - Explain says of each node whether it takes a pod now, soon, when others make room, or never, with all reasons. Its rules are those of
//     kube-scheduler. Look and Schedulable are the short forms that need nodes alone; Look is about the nodes that the configuration's
//     nodeSelector and tolerations leave.
//   - Room counts how many more pods of a shape quotas and nodes let in, and says what limits it.
//   - MaxSize, SizeRange and TooLarge are about Sizes; ModeOf and CheckWorkspace about Sandboxes beside their agents or on nodes of their own.
//   - Package quota, below this one, reads a quota's refusal, and tells "never" from "not yet". Package provision brings a Sandbox and tells
//     why it waits.
//
// These are functions over what somebody has read; Nodes and ReadFacts are the functions that read, from interfaces that client-go's
// clients are.
//
// Not decided here: for which platforms images are built (package platforms); whether a pod with a higher priority would preempt; where
// volumes and devices are; what schedulers with rules of their own do. Nothing here refuses for want of room: the node set of a cluster
// moves, so what is found is told, and the Sandbox waits. What no node and no time can mend is refused: a Size over the maximum, a workspace
// that two pods cannot share.
package placement
