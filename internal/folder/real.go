package folder

import (
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks is how many links one name may lead through; Linux has the same bound.
const maxLinks = 40

// An OutsideError says where a name leads that leaves the folder. It is ErrOutside.
type OutsideError struct {
	// Name is the name in the folder, Path the absolute path that it leads to. Nothing looked at that path.
	Name, Path string
}

func (e *OutsideError) Error() string { return e.Name + " " + ErrOutside.Error() }

func (e *OutsideError) Unwrap() error { return ErrOutside }

// Real gives the name without links of what a name leads to. The error is an *OutsideError where it leaves the folder, and
// fs.ErrNotExist where a part of it is missing.
func (f *Folder) Real(name string) (string, error) {
	rest, done, links := split(name), "", 0
	if !filepath.IsLocal(name) {
		return "", &OutsideError{Name: name, Path: filepath.Join(f.dir, name)}
	}
	for len(rest) > 0 {
		next := filepath.Join(done, rest[0])
		info, err := f.root.Lstat(next)
		if err != nil {
			return "", refusal(name, err)
		}
		rest = rest[1:]
		if info.Mode()&fs.ModeSymlink == 0 {
			if len(rest) > 0 && !info.IsDir() {
				return "", &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
			}
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", &fs.PathError{Op: "open", Path: name, Err: syscall.ELOOP}
		}
		to, err := f.root.Readlink(next)
		if err != nil {
			return "", refusal(name, err)
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(f.dir, done, to)
		}
		to = filepath.Join(append([]string{to}, rest...)...)
		inside, ok := f.Rel(to)
		if !ok {
			return "", &OutsideError{Name: name, Path: to}
		}
		rest, done = split(inside), ""
	}
	if done == "" {
		done = "."
	}
	return done, nil
}

func split(name string) []string {
	var parts []string
	for _, part := range strings.Split(filepath.Clean(name), string(filepath.Separator)) {
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	return parts
}
