// Package filelock lets one process at a time use a directory. A lock is held on a file that stays where it is and names
// its holder; the system gives it back when the process ends, however it ends.
package filelock
