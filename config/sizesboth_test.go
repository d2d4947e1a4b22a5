package config_test

import (
	"strings"
	"testing"

	"jr2.dev/jr2/config"
)

// A Size that is short of both is told so at once.
func TestSizeShortOfMemoryAndCPU(t *testing.T) {
	t.Parallel()
	memory, cpu := int64(200)<<20, int64(10)
	_, err := config.Sizes(&config.Instance{Workflows: []config.Workflow{{Name: "small", Workspaces: []config.Workspace{{Size: config.Limits{Memory: &memory, CPU: &cpu}}}}}})
	if err == nil || !strings.Contains(err.Error(), "memory 200Mi") || !strings.Contains(err.Error(), "cpu 10m") {
		t.Errorf("got %v", err)
	}
}
