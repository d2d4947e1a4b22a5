package devcluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"jr2.dev/jr2/internal/devcluster/filelock"
)

func TestSweep(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	long := time.Now().Add(-time.Hour)
	makeDir := func(name string, changed time.Time) string {
		dir := filepath.Join(temp, name)
		if err := os.MkdirAll(filepath.Join(dir, dirEtcd), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, changed, changed); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dead := makeDir(tempPrefix+"dead", long)
	young := makeDir(tempPrefix+"young", time.Now())
	foreign := makeDir("somebody-else", long)
	alive := makeDir(tempPrefix+"alive", long)
	lock, err := filelock.Try(filepath.Join(alive, fileLock))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	if err := os.Chtimes(alive, long, long); err != nil {
		t.Fatal(err)
	}
	sweep(temp)
	for dir, want := range map[string]bool{dead: false, young: true, foreign: true, alive: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %t", filepath.Base(dir), err, want)
		}
	}
}

func TestGateFlag(t *testing.T) {
	t.Parallel()
	for want, gates := range map[string]map[string]bool{
		"":                       nil,
		"A=true,B=false":         {"B": false, "A": true},
		"PodLevelResources=true": {"PodLevelResources": true},
		"InPlacePodLevelResourcesVerticalScaling=false,PodLevelResources=false": {"PodLevelResources": false},
		"InPlacePodLevelResourcesVerticalScaling=true,PodLevelResources=false": {
			"PodLevelResources": false, "InPlacePodLevelResourcesVerticalScaling": true},
	} {
		if got := gateFlag(gates); got != want {
			t.Errorf("%v becomes %q, want %q", gates, got, want)
		}
	}
}

func TestPortAgain(t *testing.T) {
	t.Parallel()
	free, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := portAgain(t.Context(), free); err != nil || got != free {
		t.Errorf("a free port: %d, %v; want %d", got, err, free)
	}
}
