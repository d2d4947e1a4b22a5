package devcluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"jr2.dev/jr2/internal/devcluster/filelock"
)

const (
	tempPrefix = "jr2-devcluster-"
	fileLock   = "lock"
)

// An InUseError says that another process uses the directory.
type InUseError struct {
	Dir string
	PID int
}

func (e *InUseError) Error() string { return fmt.Sprintf("%s is in use by process %d", e.Dir, e.PID) }

func (e *InUseError) Unwrap() error { return filelock.ErrHeld }

// A workdir is a directory that this process alone uses.
type workdir struct {
	dir       string
	temporary bool
	lock      *filelock.Lock
}

// openWorkdir creates the directory where it is missing, and locks it. Without a name it is a temporary one.
func openWorkdir(dir string) (*workdir, error) {
	w := &workdir{dir: dir, temporary: dir == ""}
	var err error
	if w.temporary {
		sweep(os.TempDir())
		w.dir, err = os.MkdirTemp("", tempPrefix)
	} else if w.dir, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(w.dir, 0o700)
	}
	if err != nil {
		return nil, err
	}
	if w.lock, err = filelock.Try(w.path(fileLock)); err != nil {
		var held *filelock.HeldError
		if errors.As(err, &held) {
			return nil, &InUseError{Dir: w.dir, PID: held.PID}
		}
		return nil, err
	}
	return w, nil
}

func (w *workdir) path(name string) string { return filepath.Join(w.dir, name) }

// close gives the directory back, and removes it if it is temporary.
func (w *workdir) close() error {
	var err error
	if w.temporary {
		err = os.RemoveAll(w.dir)
	}
	return errors.Join(err, w.lock.Unlock())
}

// sweep removes what processes that were killed have left behind: temporary directories that nobody has locked.
func sweep(temp string) {
	dirs, err := filepath.Glob(filepath.Join(temp, tempPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		// A young directory may be between its creation and its lock.
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		lock, err := filelock.Try(filepath.Join(dir, fileLock))
		if err != nil {
			continue
		}
		os.RemoveAll(dir)
		lock.Unlock()
	}
}

// writeFile replaces the file as a whole, so that a process that is killed leaves the old one or the new one.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
