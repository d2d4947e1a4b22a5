package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// findCompiler returns the path of tsc: the bin entry of the first node_modules/typescript from root upwards. That is where Node's own
// resolution ends for a program in root (https://nodejs.org/api/modules.html#loading-from-node_modules-folders), so a
// workspace that keeps its dependencies in the folder above works.
func findCompiler(root string) (string, error) {
	for dir := filepath.Clean(root); ; dir = filepath.Dir(dir) {
		// Node never looks for node_modules/node_modules.
		if filepath.Base(dir) != "node_modules" {
			home := filepath.Join(dir, "node_modules", "typescript")
			text, err := os.ReadFile(filepath.Join(home, "package.json"))
			if err == nil {
				return compilerIn(root, home, text)
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return "", &NoCompilerError{Root: root, Reason: err.Error()}
			}
		}
		if dir == filepath.Dir(dir) {
			return "", &NoCompilerError{Root: root}
		}
	}
}

// compilerIn reads the tsc entry of the bin field, which npm defines as a map from command to file:
// https://docs.npmjs.com/cli/v11/configuring-npm/package-json#bin. Its short form, one string, would name a command "typescript".
func compilerIn(root, home string, text []byte) (string, error) {
	var manifest struct {
		Bin struct {
			TSC string `json:"tsc"`
		} `json:"bin"`
	}
	bad := func(format string, args ...any) (string, error) {
		return "", &NoCompilerError{Root: root, Reason: filepath.Join(home, "package.json") + ": " + fmt.Sprintf(format, args...)}
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return bad("%v", err)
	}
	if manifest.Bin.TSC == "" {
		return bad("its bin field has no tsc")
	}
	compiler := filepath.Join(home, filepath.FromSlash(manifest.Bin.TSC))
	if info, err := os.Stat(compiler); err != nil {
		return bad("bin names tsc: %v", err)
	} else if info.IsDir() {
		return bad("bin names tsc: %s is a folder", compiler)
	}
	return compiler, nil
}
