// Package build turns pinned Go modules into executables, once.
//
// It decides where an executable is kept and when it has to be built again: the directory is named by a hash of
// everything that goes into it (go.mod, go.sum, flags, platform, Go version). It decides nothing about how the
// executables are run.
//
// A tool is described by a go.mod and a go.sum of its own, stored here as tools/NAME.mod and tools/NAME.sum, because a
// directory that holds a file named go.mod can't be embedded, and because the library's go.mod must never see what
// a tool requires. tools/update.sh writes them.
package build
