package config

import "syscall"

// limitProcess bounds the address space of this process. The runtime reserves much that it never uses, and the bundler needs room
// of its own, so the bound is far above what the script may have: it stops what the script's own bounds miss.
func limitProcess(memory int64) {
	const room = 2 << 30
	bound := uint64(memory) + room
	_ = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: bound, Max: bound}) // without it the other bounds still hold
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}
