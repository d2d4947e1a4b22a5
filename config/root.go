package config

import (
	"os"
	"path/filepath"
)

// FindRoot walks up from dir (empty: the working directory) to the folder that holds jr2.config.ts and gives its real, absolute
// path. A *NotFoundError says that there is none; any other error means that a folder could not be looked at.
func FindRoot(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(start)
	if os.IsNotExist(err) {
		return "", &NotFoundError{start}
	}
	if err != nil {
		return "", err
	}
	for at := real; ; at = filepath.Dir(at) {
		info, err := os.Stat(filepath.Join(at, ConfigFile))
		if err == nil && !info.IsDir() {
			return at, nil
		}
		if err != nil && !os.IsNotExist(err) && !isNotDir(err) {
			return "", err
		}
		if at == filepath.Dir(at) {
			return "", &NotFoundError{start}
		}
	}
}
