// Package provision brings a Sandbox into a cluster and waits until it can be used.
//
//   - Compose makes the Sandbox of a Workspace, its token and its Repos, from the Instance and the refs of its images: a pure function.
//   - Provision writes them, waits in Placing for as long as the cluster has no room, then for the pod to be Ready within a budget, and
//     says in events and values what it waits for, in the words of the scheduler or of the quota. It keeps the Sandbox's lease.
//   - Runs and Status tell from the Sandboxes of a namespace alone which runs there are and what they wait for.
//   - StateOf and WaitOf are the same for one Sandbox, as functions over what somebody has read.
//
// Decided here: when a wait begins and ends, that it has no deadline of its own, what is deleted when it ends (what never ran) and what
// stays (what ran, until its idle timeout), and whether room may come or never will. The watch is resumed where it broke, begins again
// when the server has forgotten that point, and rides out a server that is away.
//
// Not decided here: what the pod of a Sandbox is made of and when a Sandbox is Ready or Lost, which is the operator's (it publishes what
// this package reads); on which nodes a Sandbox could land, which is package placement's; what runs in a Workspace, which is the
// Orchestrator's. Nothing here creates a ResourceQuota, or asks for less than the whole Size.
package provision
