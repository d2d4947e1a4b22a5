package config_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"jr2.dev/jr2/config"
)

// TestMain makes the test binary the program of LoadOptions.Isolate as well.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "evaluate" {
		if err := config.ServeIsolated(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func isolated(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, "evaluate"}
}

func TestIsolatedGivesTheSame(t *testing.T) {
	for _, name := range []string{"ping", "hold", "review"} {
		alone, err := config.Load(context.Background(), config.LoadOptions{Dir: samples + name, Isolate: isolated(t), Env: map[string]string{"JR2_REGISTRY": "r.test"}})
		if err != nil {
			t.Fatal(err)
		}
		here, err := config.Load(context.Background(), config.LoadOptions{Dir: samples + name, Env: map[string]string{"JR2_REGISTRY": "r.test"}})
		if err != nil || !reflect.DeepEqual(alone, here) {
			t.Errorf("%s: %+v, in this process %+v %v", name, alone, here, err)
		}
	}
}

func TestIsolatedErrors(t *testing.T) {
	for name, c := range map[string]struct {
		code string
		want error
		say  string
	}{
		"loop":         {`while (1) {}`, config.ErrTimeout, ""},
		"memory":       {`let s = "x"; while (1) s += s;`, config.ErrMemory, ""},
		"unsettled":    {`await new Promise(() => {});`, config.ErrUnsettled, ""},
		"deep package": {`import "deep";`, config.ErrMemory, ""},
		"outside":      {`import "../x.ts";`, nil, "outside the Instance folder"},
		"throws":       {`throw new Error("boom");`, nil, "boom"},
		"proxy towers": {`let p = {}; for (let i = 0; i < 1e6; i++) p = new Proxy(p, {}); p.x; throw new Error("shallow");`, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "hostile")
			write(t, dir, map[string]string{
				"jr2.config.ts":                  c.code + "\nexport default {};",
				"node_modules/deep/package.json": `{"main":"index.js"}`,
				"node_modules/deep/index.js":     "export const x = " + strings.Repeat("a=>", 600<<10) + "1;",
			})
			limit := time.Minute // only what is to end by it ends by it, however busy the machine is
			if errors.Is(c.want, config.ErrTimeout) {
				limit = time.Second
			}
			_, err := config.Load(context.Background(), config.LoadOptions{Dir: dir, Isolate: isolated(t), Timeout: limit})
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("got %v", err)
			}
			t.Log(clipped(err))
		})
	}
}

func clipped(err error) string {
	text := fmt.Sprint(err)
	return text[:min(len(text), 200)]
}
