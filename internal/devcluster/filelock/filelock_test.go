package filelock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"jr2.dev/jr2/internal/devcluster/filelock"
)

func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := filelock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = filelock.Try(path)
	var held *filelock.HeldError
	if !errors.As(err, &held) || !errors.Is(err, filelock.ErrHeld) || held.PID != os.Getpid() {
		t.Errorf("the second lock: %v", err)
	}

	// The waiter tells that it waits, gets the lock when it's given back, and not before.
	waiting := make(chan struct{})
	got := make(chan error)
	go func() {
		second, err := filelock.Wait(t.Context(), path, func(*filelock.HeldError) { close(waiting) })
		if err == nil {
			err = second.Unlock()
		}
		got <- err
	}()
	<-waiting
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := filelock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	_, err = filelock.Wait(ctx, path, func(*filelock.HeldError) { cancel() })
	if !errors.Is(err, context.Canceled) || !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("the error is %v", err)
	}
}
