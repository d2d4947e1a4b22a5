// Package jr2 converges an Instance into a Kubernetes cluster.
//
// An Instance is a folder with jr2.config.ts, workflows/ and images/, or the same as a Go value (config.Instance). Converge looks at
// the Instance and the cluster, decides what differs, writes only that, and looks again: "converged" is a statement about the cluster
// as it was seen afterwards. Running it again is always safe: an unchanged Instance writes nothing, and a converge that was cut off
// is completed by the next one.
//
// MakePlan makes the same looks and decisions and stops before the first write: a Plan says what a converge would do, and Options.Plan
// holds a converge to it.
//
// Run makes the Sandboxes that a Workflow asks for and says what they wait for; Runs and Status tell of them. None of the three executes a
// Workflow: that is the Orchestrator's.
//
// This package composes and decides nothing else. What is wrong is decided by package preflight, for which platforms to build by
// platforms, where a Sandbox can run and how it gets there by placement and its packages, what to build and deliver by images, how objects reach the cluster by apply, and
// what an Instance is by config. Each of them is useful alone.
//
// Everything that a converge does is told as an Event; Narrate turns events into the lines of the command line tool.
package jr2
