package devcluster

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"jr2.dev/jr2/internal/devcluster/filelock"
)

// What is where in a cluster's directory.
const (
	fileLock       = "lock"
	fileState      = "state.json"
	fileCA         = "ca.crt"
	fileCAKey      = "ca.key"
	fileServerCert = "apiserver.crt"
	fileServerKey  = "apiserver.key"
	fileAccountKey = "sa.key"
	fileTokens     = "tokens.csv"
	fileKubeconfig = "kubeconfig"
	fileStages     = "stages.yaml"
	filePodLog     = "pod.log"
	dirEtcd        = "etcd"
)

const tempPrefix = "jr2-devcluster-"

// An InUseError says that another process runs the cluster of this directory.
type InUseError struct {
	Dir string
	PID int
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("the cluster in %s is in use by process %d", e.Dir, e.PID)
}

func (e *InUseError) Unwrap() error { return filelock.ErrHeld }

// state is what a cluster keeps between two starts.
type state struct {
	// APIPort stays the same so that a kubeconfig stays valid.
	APIPort int `json:"apiPort"`
	// Tokens are by user name.
	Tokens map[string]string `json:"tokens"`

	dir       string
	temporary bool
	lock      *filelock.Lock
}

// openState locks the directory and reads what is there, or makes a temporary one.
func openState(dir string) (*state, error) {
	s := &state{dir: dir, temporary: dir == ""}
	var err error
	if s.temporary {
		sweep(os.TempDir())
		if s.dir, err = os.MkdirTemp("", tempPrefix); err != nil {
			return nil, err
		}
	} else {
		if s.dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return nil, err
		}
	}
	if s.lock, err = filelock.Try(s.path(fileLock)); err != nil {
		var held *filelock.HeldError
		if errors.As(err, &held) {
			return nil, &InUseError{Dir: s.dir, PID: held.PID}
		}
		return nil, err
	}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *state) load() error {
	data, err := os.ReadFile(s.path(fileState))
	if err == nil {
		err = json.Unmarshal(data, s)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the cluster in %s: %w", s.dir, err)
	}
	if s.Tokens == nil {
		s.Tokens = map[string]string{}
	}
	return ensureKeys(s.dir)
}

func (s *state) save() error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return writeFile(s.path(fileState), data)
}

func (s *state) path(name string) string { return filepath.Join(s.dir, name) }

// token returns the user's token and makes it the first time.
func (s *state) token(user string) string {
	if s.Tokens[user] == "" {
		s.Tokens[user] = rand.Text()
	}
	return s.Tokens[user]
}

// close gives the directory back, and removes it if it is temporary.
func (s *state) close() error {
	var err error
	if s.temporary {
		err = os.RemoveAll(s.dir)
	}
	return errors.Join(err, s.lock.Unlock())
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
