// Package placement decides where a Sandbox can land: on which nodes, for which reason not on the others, and whether its Size
// fits there.
//
// Its rules are functions over nodes that somebody has read; Nodes is the one function that reads them. It does not decide for
// which platforms images are built (package platforms), and it refuses nothing: the node set of a cluster moves, so what it
// finds is told, and the Sandbox waits.
package placement
