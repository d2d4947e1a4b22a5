//go:build !linux

package devcluster

import "fmt"

func canBuildkit() error { return fmt.Errorf("%w: not Linux", ErrNoBuildkit) }

func (*spawner) runContained(string, string, string, ...string) (*process, error) {
	return nil, canBuildkit()
}
