package main

import (
	"errors"
	"path/filepath"
	"testing"

	"jr2.dev/jr2/internal/devcluster"
)

// TestAClusterInUseIsNotToBeDeleted: of two commands with --embedded at once the second is told to wait. To delete the folder would take
// the cluster away under the first.
func TestAClusterInUseIsNotToBeDeleted(t *testing.T) {
	dir := t.TempDir()
	cluster := filepath.Join(dir, "cluster")
	for _, test := range []struct {
		err  error
		want string
	}{
		{&devcluster.InUseError{Dir: cluster, PID: 7}, "the embedded cluster is run by another command — wait until that ends, then run this again: " + cluster + " is in use by process 7"},
		{errors.New("etcd: no space"), "embedded cluster: etcd: no space — to start afresh, delete " + dir},
	} {
		got := notStarted(test.err, dir)
		if got.Error() != test.want || !errors.Is(got, test.err) {
			t.Errorf("got %v, want %s", got, test.want)
		}
	}
}
