//go:build !linux

package devcluster

import (
	"fmt"
	"net"
)

// CanRealNode is an ErrNoRealNode with the reason.
func CanRealNode() error { return fmt.Errorf("%w: not Linux", ErrNoRealNode) }

func (*spawner) runMachine(string, string, string, ...string) (*process, error) {
	return nil, CanRealNode()
}

func dialIn(*process, string) (net.Conn, error) { return nil, CanRealNode() }

// A cgroupTree is empty here.
type cgroupTree struct{}

func newCgroupTree(string) (cgroupTree, error) { return cgroupTree{}, CanRealNode() }

func (cgroupTree) join() string       { return "" }
func (cgroupTree) joinInside() string { return "" }
func (cgroupTree) mounts() string     { return "" }
func (cgroupTree) create() error      { return CanRealNode() }
func (cgroupTree) remove() error      { return nil }

func onOverlay(string) bool { return false }

func capacity() (cpus int64, memory int64, err error) { return 0, 0, CanRealNode() }
