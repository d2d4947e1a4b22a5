package folder_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"jr2.dev/jr2/internal/folder"
)

// TestEveryKindOfFileThatIsNoneOfTheFoldersIsRefused has the ways in which a name of the folder leads to something else.
func TestEveryKindOfFileThatIsNoneOfTheFoldersIsRefused(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "secret"), "s")
	write(t, filepath.Join(dir, "real", "file"), "ours")
	link(t, filepath.Join(outside, "secret"), filepath.Join(dir, "absolute"))
	link(t, "../"+filepath.Base(outside)+"/secret", filepath.Join(dir, "relative"))
	link(t, outside, filepath.Join(dir, "folder"))
	link(t, "absolute", filepath.Join(dir, "twice"))
	link(t, "real/file", filepath.Join(dir, "inside"))
	link(t, filepath.Join(dir, "inside"), filepath.Join(dir, "absolutely inside"))
	link(t, "loop", filepath.Join(dir, "loop"))
	link(t, "/dev/zero", filepath.Join(dir, "device"))
	link(t, "/proc/self/environ", filepath.Join(dir, "environ"))
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	sparse, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sparse.Truncate(3<<30), sparse.Close()); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir)
	for name, want := range map[string]error{
		"absolute": folder.ErrOutside, "relative": folder.ErrOutside, "folder/secret": folder.ErrOutside,
		"twice": folder.ErrOutside, "device": folder.ErrOutside, "environ": folder.ErrOutside,
		"../" + filepath.Base(outside) + "/secret": folder.ErrOutside, filepath.Join(outside, "secret"): folder.ErrOutside,
		"pipe": folder.ErrNotRegular, "real": folder.ErrNotRegular, "sparse": folder.ErrTooLarge,
		"loop": syscall.ELOOP, "missing": fs.ErrNotExist, "real/file/below": syscall.ENOTDIR,
	} {
		if text, err := f.ReadFile(name, 1<<20); !errors.Is(err, want) {
			t.Errorf("ReadFile(%q) = %d bytes, %v, want %v", name, len(text), err, want)
		}
	}
	for _, name := range []string{"inside", "real/file", "real/../inside", "absolutely inside"} {
		if text, err := f.ReadFile(name, 4); err != nil || string(text) != "ours" {
			t.Errorf("ReadFile(%q) = %q, %v, want ours", name, text, err)
		}
	}
	for name, want := range map[string]string{"absolutely inside": "real/file", ".": ".", "real/..": ".", "inside": "real/file"} {
		if real, err := f.Real(name); err != nil || real != want {
			t.Errorf("Real(%q) = %q, %v, want %q", name, real, err, want)
		}
	}
	var left *folder.OutsideError
	if _, err := f.Real("folder/secret"); !errors.As(err, &left) || left.Path != filepath.Join(outside, "secret") {
		t.Errorf("Real of a name that leaves: %v, want where it leads", err)
	}
	if _, err := f.Real("loop"); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("Real of a loop: %v, want ELOOP", err)
	}
	if sub, err := f.Sub("real"); err != nil || sub.Dir() != filepath.Join(f.Dir(), "real") {
		t.Errorf("Sub: %v, %v", sub, err)
	}
	if _, err := f.Sub("folder"); !errors.Is(err, folder.ErrOutside) {
		t.Errorf("Sub of a link that leaves: %v, want ErrOutside", err)
	}
	if _, err := f.ReadDir("folder", 10); !errors.Is(err, folder.ErrOutside) {
		t.Errorf("ReadDir of a link out of the folder: %v, want ErrOutside", err)
	}
	if _, err := f.ReadDir("pipe", 10); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("ReadDir of a pipe: %v, want ENOTDIR", err)
	}
	if _, err := f.ReadDir(".", 3); !errors.Is(err, folder.ErrTooLarge) {
		t.Errorf("ReadDir of more entries than asked for: %v, want ErrTooLarge", err)
	}
}

func open(t *testing.T, dir string) *folder.Folder {
	t.Helper()
	f, err := folder.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}
