package main

import (
	"strings"
	"testing"
	"time"
)

// measuredAt gives raw a second for each phase, and the others what is said, in milliseconds.
func measuredAt(size int, times map[string][3]int, requests int64) results {
	r := results{}
	times["raw"] = [3]int{1000, 1000, 1000}
	for name, ms := range times {
		for i, p := range phases() {
			*r.at(size, name, p) = cell{times: []time.Duration{time.Duration(ms[i]) * time.Millisecond, time.Hour}, requests: requests}
		}
	}
	return r
}

func TestJudge(t *testing.T) {
	t.Parallel()
	engines := []engine{raw(), ours(), {name: "peer", peer: true}}
	for _, c := range []struct {
		name     string
		size     int
		ours     [3]int
		peer     [3]int
		requests int64
		broken   string
	}{
		{name: "all hold", size: full, ours: [3]int{1000, 50, 80}, peer: [3]int{2000, 1000, 1000}, requests: 15},
		{name: "cold", size: full, ours: [3]int{1310, 50, 80}, peer: [3]int{3000, 1000, 1000}, requests: 15, broken: "cold × raw"},
		{name: "no-op", size: full, ours: [3]int{1000, 51, 80}, peer: [3]int{2000, 1100, 1000}, requests: 15, broken: "no-op × raw"},
		{name: "changed", size: full, ours: [3]int{1000, 50, 81}, peer: [3]int{2000, 1000, 1000}, requests: 15, broken: "one changed × raw's no-op"},
		{name: "requests", size: full, ours: [3]int{1000, 50, 80}, peer: [3]int{2000, 1000, 1000}, requests: 16, broken: "requests of a no-op"},
		{name: "peer cold", size: full, ours: [3]int{1000, 50, 80}, peer: [3]int{1990, 1000, 1000}, requests: 15, broken: "times as fast as peer, cold"},
		{name: "peer no-op", size: full, ours: [3]int{1000, 50, 80}, peer: [3]int{2000, 990, 1000}, requests: 15, broken: "times as fast as peer, no-op"},
		{name: "small", size: small, ours: [3]int{9000, 250, 9000}, peer: [3]int{1, 1, 1}, requests: 99},
		{name: "small no-op", size: small, ours: [3]int{1000, 251, 80}, peer: [3]int{1, 1, 1}, broken: "no-op × raw"},
		{name: "huge cold", size: huge, ours: [3]int{1301, 50, 80}, peer: [3]int{1, 1, 1}, broken: "cold × raw"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := measuredAt(c.size, map[string][3]int{ours().name: c.ours, "peer": c.peer}, c.requests)
			var broken []string
			for _, v := range judge(r, []int{c.size}, engines) {
				if !v.holds() {
					broken = append(broken, v.what)
				}
			}
			got := strings.Join(broken, "; ")
			if (c.broken == "") != (got == "") || !strings.HasSuffix(got, c.broken) || len(broken) > 1 {
				t.Errorf("broken is %q, want %q", got, c.broken)
			}
		})
	}
}

func TestJudgeWhetherItIsLinear(t *testing.T) {
	t.Parallel()
	r := measuredAt(full, map[string][3]int{ours().name: {1000, 50, 80}}, 7) // 66 is 1.32 times 50
	for k, c := range measuredAt(huge, map[string][3]int{ours().name: {1290, 66, 80}}, 7) {
		r[k] = c
	}
	var broken []string
	for _, v := range judge(r, []int{full, huge}, []engine{raw(), ours()}) {
		if !v.holds() && strings.Contains(v.what, "by that at") {
			broken = append(broken, v.what)
		}
	}
	if len(broken) != 1 || !strings.Contains(broken[0], "no-op × raw, by that at 1000") {
		t.Errorf("broken is %q", broken)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	engines := []engine{raw(), ours(), {name: "absent", peer: true}}
	printTables(&b, measuredAt(full, map[string][3]int{ours().name: {1300, 45, 80}}, 7), []int{full}, engines, []string{"kapp: no such module"})
	for _, line := range []string{
		"| jr2 apply | 1.30 (1) · 1.30 s | 0.045 (1) · 45 ms | 0.080 (1) · 80 ms | 7 | 7 | 7 |",
		"| 1000 objects: no-op × raw | 0.045 | ≤ 0.050 | holds |",
		"Missing: kapp: no such module",
	} {
		if !strings.Contains(b.String(), line+"\n") {
			t.Errorf("no line %q in\n%s", line, b.String())
		}
	}
	if strings.Contains(b.String(), "| absent | —") {
		t.Error("an engine that did not take part has a row of times")
	}
}
