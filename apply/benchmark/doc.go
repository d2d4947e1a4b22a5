// Command benchmark measures apply.Apply beside other engines that bring a set of objects to a cluster.
//
// It starts an API server of its own for each size and round, lets every engine apply the same objects in a namespace of its own
// (from nothing, again unchanged, and with one object changed), one engine after the other in each phase and in another order in each
// round, and prints a Markdown table. It exits with 1 when a limit of limits.go is broken, and with 2 when it could not measure.
//
// It decides what the engines are told to do and what is timed. It decides nothing about package apply: it is a module of its own so
// that the peers' dependencies are not those of the library. The peers that are commands are built from the modules in peers, each
// with the dependencies that its own release has.
package main
