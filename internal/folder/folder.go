// Package folder is the one door to files that somebody else wrote: an Instance that was uploaded, a directory of manifests, a
// build context.
//
// It decides what may be opened: regular files and directories below one directory, in bounded size. A symbolic link is followed
// as long as it stays below; one that leaves is refused by the open itself, so it makes no difference when it changes in between.
// The kind of a file is judged on the file that was opened. It does not decide which files a caller should want.
package folder

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Errors that a file is refused with. The *fs.PathError around each names the file, relative to the folder.
var (
	ErrOutside    = errors.New("leads out of the folder")
	ErrNotRegular = errors.New("is not a regular file")
	ErrTooLarge   = errors.New("is too large")
)

// A Folder opens what lies below one directory and nothing else. It is safe for concurrent use.
type Folder struct {
	dir  string
	root *os.Root
}

// Open opens a directory. Links in the path of the directory itself are followed: the caller named it.
func Open(dir string) (*Folder, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	real, err = filepath.Abs(real)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	return &Folder{dir: real, root: root}, nil
}

// Close gives the handle of the directory back.
func (f *Folder) Close() error { return f.root.Close() }

// Dir is the real, absolute path of the directory.
func (f *Folder) Dir() string { return f.dir }

// Rel gives the name below the directory that a path has; false for a path that lies outside. It looks at the text alone.
func (f *Folder) Rel(path string) (string, bool) {
	rel, err := filepath.Rel(f.dir, path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// Sub opens a directory below.
func (f *Folder) Sub(name string) (*Folder, error) {
	real, err := f.Real(name)
	if err != nil {
		return nil, err
	}
	root, err := f.root.OpenRoot(real)
	if err != nil {
		return nil, refusal(name, err)
	}
	return &Folder{dir: filepath.Join(f.dir, real), root: root}, nil
}

// OpenFile opens a regular file to read it. A pipe, a device or a socket is refused without waiting for it.
func (f *Folder) OpenFile(name string) (*os.File, fs.FileInfo, error) {
	file, info, err := openRegular(name, f.root.Stat, f.root.OpenFile)
	if errors.Is(err, ErrOutside) { // a link with an absolute path may lead back into the folder, which os.Root does not follow
		real, gone := f.Real(name)
		if gone != nil {
			return nil, nil, gone
		}
		return openRegular(real, f.root.Stat, f.root.OpenFile)
	}
	return file, info, err
}

// ReadFile reads a regular file of at most most bytes. A larger one is refused before more of it is read.
func (f *Folder) ReadFile(name string, most int64) ([]byte, error) {
	file, info, err := f.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAtMost(file, info, name, most)
}

// ReadFile reads a file that the caller itself names, wherever links lead: only its kind and its size are judged.
func ReadFile(path string, most int64) ([]byte, error) {
	file, info, err := openRegular(path, os.Stat, os.OpenFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAtMost(file, info, path, most)
}

func openRegular(name string, stat func(string) (fs.FileInfo, error), open func(string, int, fs.FileMode) (*os.File, error)) (*os.File,
	fs.FileInfo, error) {
	// A look before the open, because opening some devices does something; the look after it is the one that counts.
	info, err := stat(name)
	if err != nil {
		return nil, nil, refusal(name, err)
	}
	notRegular := &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	if !info.Mode().IsRegular() {
		return nil, nil, notRegular
	}
	file, err := open(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, refusal(name, err)
	}
	info, err = file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func readAtMost(file *os.File, info fs.FileInfo, name string, most int64) ([]byte, error) {
	tooLarge := &fs.PathError{Op: "read", Path: name, Err: ErrTooLarge}
	if info.Size() > most {
		return nil, tooLarge
	}
	text, err := io.ReadAll(io.LimitReader(file, most+1)) // the file may grow while it is read
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, tooLarge
	}
	return text, nil
}

// Stat looks at what a name leads to.
func (f *Folder) Stat(name string) (fs.FileInfo, error) {
	info, err := f.root.Stat(name)
	return info, refusal(name, err)
}

// Lstat looks at what has the name, without following a last link.
func (f *Folder) Lstat(name string) (fs.FileInfo, error) {
	info, err := f.root.Lstat(name)
	return info, refusal(name, err)
}

// Readlink gives the text of a link.
func (f *Folder) Readlink(name string) (string, error) {
	text, err := f.root.Readlink(name)
	return text, refusal(name, err)
}

// ReadDir lists a directory by name. One of more than most entries is refused with ErrTooLarge.
func (f *Folder) ReadDir(name string, most int) ([]fs.DirEntry, error) {
	info, err := f.root.Stat(name)
	if err != nil {
		return nil, refusal(name, err)
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
	}
	dir, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, refusal(name, err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(most + 1)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(entries) > most {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: ErrTooLarge}
	}
	return sorted(entries), nil
}

// refusal tells a name that leads out of the folder from every other error.
func refusal(name string, err error) error {
	// os has no value for it: https://github.com/golang/go/blob/master/src/os/root.go
	if err != nil && strings.Contains(err.Error(), "escapes from parent") {
		return &fs.PathError{Op: "open", Path: name, Err: ErrOutside}
	}
	return err
}
