package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ErrHeld is the cause of a HeldError.
var ErrHeld = errors.New("locked by another process")

// A HeldError says who holds the lock.
type HeldError struct {
	Path string
	// PID is zero where the holder has not written it yet.
	PID int
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s: %v", e.Path, ErrHeld)
	}
	return fmt.Sprintf("%s: locked by process %d", e.Path, e.PID)
}

func (e *HeldError) Unwrap() error { return ErrHeld }

// A Lock is held until Unlock.
type Lock struct{ file *os.File }

// Try takes the lock or returns a HeldError at once. It creates the file where it is missing.
func Try(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	held, err := flock(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if held {
		f.Close()
		return nil, &HeldError{Path: path, PID: holder(path)}
	}
	// The number is for people; the lock itself is the kernel's.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &Lock{file: f}, nil
}

// Wait takes the lock as soon as it is free. waiting, when not nil, is called once if it isn't.
func Wait(ctx context.Context, path string, waiting func(held *HeldError)) (*Lock, error) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		lock, err := Try(path)
		var held *HeldError
		if !errors.As(err, &held) {
			return lock, err
		}
		if waiting != nil {
			waiting(held)
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), held)
		case <-ticker.C:
		}
	}
}

// Unlock gives the lock back. The file stays: removing it would let two processes hold two files of one name.
func (l *Lock) Unlock() error { return l.file.Close() }

func holder(path string) int {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return pid
}
