//go:build !linux

package devcluster

import (
	"fmt"
	"net"
)

// CanBuildkit is an ErrNoBuildkit with the reason.
func CanBuildkit() error { return fmt.Errorf("%w: not Linux", ErrNoBuildkit) }

func (*spawner) runContained(string, string, string, ...string) (*process, error) {
	return nil, CanBuildkit()
}

func (*spawner) runNetworked(string, string, string, ...string) (*process, error) {
	return nil, CanBuildkit()
}

func listenIn(*process, []string) ([]net.Listener, error) { return nil, CanBuildkit() }
