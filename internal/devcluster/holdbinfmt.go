package devcluster

import (
	"context"
	"os"
	"path/filepath"

	"jr2.dev/jr2/internal/devcluster/filelock"
)

// HoldBinfmt takes the machine's emulators for this process until release: RegisterBinfmt and UnregisterBinfmt change what every process
// sees, so tests that depend on it take turns.
func HoldBinfmt(ctx context.Context) (release func(), err error) {
	lock, err := filelock.Wait(ctx, filepath.Join(os.TempDir(), "devcluster-binfmt.lock"), nil)
	if err != nil {
		return nil, err
	}
	return func() { lock.Unlock() }, nil //nolint:errcheck // closing a lock file loses nothing
}
