//go:build !linux

package devcluster

import "fmt"

// CanBuildkit is an ErrNoBuildkit with the reason.
func CanBuildkit() error { return fmt.Errorf("%w: not Linux", ErrNoBuildkit) }

func (*spawner) runContained(string, string, string, ...string) (*process, error) {
	return nil, CanBuildkit()
}
