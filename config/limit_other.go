//go:build !linux

package config

// limitProcess does nothing: this system has no bound of the address space that a Go process can live with.
func limitProcess(int64) {}
