package config_test

import (
	"errors"
	"testing"

	"jr2.dev/jr2/config"
)

// A module that ends in the middle is told by its own last line, not by what follows it in the bundler.
func TestModuleThatEndsTooEarly(t *testing.T) {
	dir := instance(t, "review", map[string]string{"workflows/review.ts": "import { workspace } from \"@jr2/orchestrator\";\nexport const machine = workspace(\n"})
	_, err := config.Load(t.Context(), config.LoadOptions{Dir: dir})
	var module *config.ModuleError
	if !errors.As(err, &module) || module.Line != 3 || module.Problem != "the file ends too early: something that it opens is not closed" {
		t.Errorf("got %v", err)
	}
}
