package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"jr2.dev/jr2/internal/folder"
)

// findCompiler returns the path of tsc: the bin entry of the first node_modules/typescript from root upwards. That is where Node's own
// resolution ends for a program in root (https://nodejs.org/api/modules.html#loading-from-node_modules-folders), so a
// workspace that keeps its dependencies in the folder above works.
func findCompiler(root string) (string, error) {
	for dir := filepath.Clean(root); ; dir = filepath.Dir(dir) {
		// Node never looks for node_modules/node_modules.
		if filepath.Base(dir) != "node_modules" {
			home := filepath.Join(dir, "node_modules", "typescript")
			compiler, err := compilerIn(root, home)
			if !errors.Is(err, fs.ErrNotExist) {
				return compiler, err
			}
		}
		if dir == filepath.Dir(dir) {
			return "", &NoCompilerError{Root: root}
		}
	}
}

// maxManifest bounds the package.json of TypeScript, in bytes.
const maxManifest = 1 << 20

// compilerIn reads the tsc entry of the bin field, which npm defines as a map from command to file:
// https://docs.npmjs.com/cli/v11/configuring-npm/package-json#bin. Its short form, one string, would name a command "typescript".
// An error that is fs.ErrNotExist says that there is no package.
func compilerIn(root, home string) (string, error) {
	const name = "package.json"
	bad := func(format string, args ...any) (string, error) {
		return "", &NoCompilerError{Root: root, Reason: filepath.Join(home, name) + ": " + fmt.Sprintf(format, args...)}
	}
	at, err := folder.Open(home)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fs.ErrNotExist
	}
	if err != nil {
		return bad("%v", reason(err))
	}
	defer at.Close()
	text, err := at.ReadFile(name, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fs.ErrNotExist
	}
	if err != nil {
		return bad("%v", reason(err))
	}
	var manifest struct {
		Bin struct {
			TSC string `json:"tsc"`
		} `json:"bin"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return bad("%v", err)
	}
	if manifest.Bin.TSC == "" {
		return bad("its bin field has no tsc")
	}
	compiler := filepath.FromSlash(manifest.Bin.TSC)
	switch err := isFile(home, compiler); {
	case errors.Is(err, fs.ErrNotExist):
		return bad("bin names tsc %q, which is missing", manifest.Bin.TSC)
	case err != nil:
		return bad("bin names tsc %q, which %v", manifest.Bin.TSC, err)
	}
	return filepath.Join(home, compiler), nil
}

// isFile says why a name of a folder leads to no regular file of the folder; nil when it does. An error that is fs.ErrNotExist says
// that nothing has the name.
func isFile(dir, name string) error {
	at, err := folder.Open(dir)
	if err != nil {
		return err
	}
	defer at.Close()
	info, err := at.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fs.ErrNotExist
	case err != nil:
		return reason(err)
	case info.IsDir():
		return errors.New("is a folder")
	case !info.Mode().IsRegular():
		return folder.ErrNotRegular
	}
	return nil
}

// reason is what an error says of a file, without the file's name.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
