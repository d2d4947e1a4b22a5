package config_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"jr2.dev/jr2/config"
)

func TestSamplesQuick(t *testing.T) {
	for _, name := range []string{"ping", "hold", "review"} {
		start := time.Now()
		inst, err := config.Load(context.Background(), config.LoadOptions{Dir: "../examples/instances/" + name})
		if err != nil {
			t.Error(name, err)
			continue
		}
		text, _ := json.MarshalIndent(inst, "", " ")
		t.Log(name, time.Since(start), string(text))
		for _, m := range inst.Modules {
			t.Log(m.Name, string(m.Source))
		}
	}
	_ = os.Stdout
}
