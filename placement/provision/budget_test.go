package provision

import (
	"testing"
	"time"
)

// TestBudget: time in which a repository is missing counts against its own budget alone.
func TestBudget(t *testing.T) {
	placed := time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC)
	type step struct {
		at   time.Duration
		held bool
		end  time.Duration
	}
	for name, steps := range map[string][]step{
		"never held":            {{0, false, 2 * time.Minute}, {time.Minute, false, 2 * time.Minute}},
		"held to the end":       {{0, false, 2 * time.Minute}, {time.Minute, true, 25 * time.Minute}, {24 * time.Minute, true, 25 * time.Minute}},
		"held for a while":      {{time.Minute, true, 25 * time.Minute}, {11 * time.Minute, false, 12 * time.Minute}, {11 * time.Minute, true, 25 * time.Minute}, {12 * time.Minute, false, 13 * time.Minute}},
		"no more than in whole": {{0, true, 25 * time.Minute}, {24 * time.Minute, false, 25 * time.Minute}},
	} {
		b := budget{ready: 2 * time.Minute, repo: 25 * time.Minute, placed: placed}
		for i, s := range steps {
			if end := b.end(s.held, placed.Add(s.at)).Sub(placed); end != s.end {
				t.Errorf("%s, step %d: ends after %s, want %s", name, i, end, s.end)
			}
		}
	}
	long := budget{ready: time.Hour, repo: time.Minute, placed: placed}
	if end := long.end(true, placed).Sub(placed); end != time.Hour {
		t.Errorf("a Repo budget below the other: %s", end)
	}
}

func TestAround(t *testing.T) {
	low, high := time.Hour, time.Duration(0)
	for range 10000 {
		d := around(5 * time.Minute)
		low, high = min(low, d), max(high, d)
	}
	if low < 4*time.Minute || high > 6*time.Minute || low > 4*time.Minute+5*time.Second || high < 6*time.Minute-5*time.Second {
		t.Errorf("from %s to %s", low, high)
	}
}
