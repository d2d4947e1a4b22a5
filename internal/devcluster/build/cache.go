package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"jr2.dev/jr2/internal/devcluster/filelock"
)

// CacheEnv names the environment variable that moves the cache.
const CacheEnv = "JR2_DEVCLUSTER_CACHE"

// A Cache builds tools into Dir.
type Cache struct {
	// Dir is $JR2_DEVCLUSTER_CACHE, or jr2-devcluster in the user's cache directory, when empty.
	Dir string
	// Log takes one line of progress at a time. Silent when nil.
	Log func(line string)
}

// Root is the directory that the cache uses.
func (c *Cache) Root() (string, error) {
	if c.Dir != "" {
		return c.Dir, nil
	}
	if dir := os.Getenv(CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for the executables of the cluster: %w (set %s)", err, CacheEnv)
	}
	return filepath.Join(dir, "jr2-devcluster"), nil
}

// Ensure returns the directory of the tool's executables and files, and builds them first where they are missing. Two
// processes that ask for the same tool at once build it once: the second waits for the first.
func (c *Cache) Ensure(ctx context.Context, tool Tool) (string, error) {
	root, err := c.Root()
	if err != nil {
		return "", err
	}
	mod, sum, err := tool.pins()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, tool.Name+"-"+tool.key(mod, sum))
	bin := filepath.Join(dir, "bin")
	if exists(bin) {
		return bin, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	lock, err := filelock.Wait(ctx, dir+".lock", func(held *filelock.HeldError) {
		c.logf("waiting for process %d, which builds %s…", held.PID, tool.Name)
	})
	if err != nil {
		return "", fmt.Errorf("build %s: %w", tool.Name, err)
	}
	defer lock.Unlock()
	if exists(bin) {
		return bin, nil
	}
	work, err := os.MkdirTemp(root, tool.Name+"-building-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := c.build(ctx, tool, work, mod, sum); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	// The rename is what makes a half-finished build invisible.
	if err := os.Rename(filepath.Join(work, "bin"), bin); err != nil {
		return "", err
	}
	return bin, nil
}

func (c *Cache) logf(format string, args ...any) {
	if c.Log != nil {
		c.Log(fmt.Sprintf(format, args...))
	}
}

func (t Tool) pins() (mod, sum []byte, err error) {
	if mod, err = fs.ReadFile(modules, path.Join("tools", t.pinsName()+".mod")); err != nil {
		return nil, nil, fmt.Errorf("no such tool: %w", err)
	}
	if sum, err = fs.ReadFile(modules, path.Join("tools", t.pinsName()+".sum")); err != nil {
		return nil, nil, fmt.Errorf("no such tool: %w", err)
	}
	return mod, sum, nil
}

// key is a hash of everything that the executables depend on.
func (t Tool) key(mod, sum []byte) string {
	h := sha256.New()
	for _, part := range []string{string(mod), string(sum), runtime.Version(), runtime.GOOS, runtime.GOARCH, t.LDFlags, t.Tags, fmt.Sprint(t.CGO)} {
		fmt.Fprintf(h, "%d:%s\n", len(part), part)
	}
	fmt.Fprintln(h, t.Packages)
	for _, from := range slices.Sorted(maps.Keys(t.Files)) {
		fmt.Fprintln(h, from, t.Files[from])
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
