//go:build !linux

package devcluster

import (
	"os"
	"os/exec"
)

// A spawner starts children. Only Linux can tie their lives to ours: elsewhere they outlive a parent that is killed.
type spawner struct{}

func newSpawner() *spawner { return &spawner{} }

func (*spawner) start(cmd *exec.Cmd) error { return cmd.Start() }

func (*spawner) close() {}

func killGroup(p *os.Process) { _ = p.Kill() }
