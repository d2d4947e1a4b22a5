package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	continuityfs "github.com/containerd/continuity/fs"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/tonistiigi/fsutil"
	fstypes "github.com/tonistiigi/fsutil/types"
)

// A sentContext is what a builder may be sent of a context folder.
type sentContext struct {
	root    string // dir with symlinks resolved
	entries []sentEntry
}

// A sentEntry is one file, directory or link as BuildKit's client sends it.
type sentEntry struct {
	path string // slash-separated, below the folder
	mode fs.FileMode
	size int64
	// link is the target of a symlink.
	link string
	// capability is the one extended attribute that a layer keeps.
	capability string
	// device numbers of a device file.
	major, minor int64
	// apart says that the builder reads the file as its Dockerfile although the context is sent without it.
	apart bool
}

// sentFrom walks dir as BuildKit's client does when the Dockerfile frontend asks for the context: with the patterns of the ignore file, in
// the order in which they stand. A Dockerfile's own COPY instructions may narrow that further, which is left out: a file that is sent with
// one Dockerfile and not with another would have to be known from the Dockerfile's stages.
//
// Source: BuildKit, frontend/dockerui/config.go (ReadEntrypoint, MainContext) and session/filesync.
func sentFrom(ctx context.Context, dir string) (*sentContext, error) {
	folder, err := fsutil.NewFS(dir)
	if err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	excludes, err := ignorePatterns(root)
	if err != nil {
		return nil, err
	}
	if folder, err = fsutil.NewFilterFS(folder, &fsutil.FilterOpt{ExcludePatterns: excludes}); err != nil {
		return nil, err
	}
	s := &sentContext{root: root}
	err = folder.Walk(ctx, "", func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return s.add(entry)
	})
	if err != nil {
		return nil, err
	}
	if err := s.addDockerfile(); err != nil {
		return nil, err
	}
	slices.SortFunc(s.entries, func(a, b sentEntry) int { return strings.Compare(a.path, b.path) })
	return s, nil
}

func (s *sentContext) add(entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*fstypes.Stat)
	if !ok {
		return fmt.Errorf("%s: the walk gave no state of it", entry.Name())
	}
	e := sentEntry{
		path: filepath.ToSlash(stat.Path), mode: fs.FileMode(stat.Mode), size: stat.Size,
		capability: string(stat.Xattrs["security.capability"]), major: stat.Devmajor, minor: stat.Devminor,
	}
	switch {
	case e.mode&fs.ModeSymlink != 0:
		e.link = filepath.ToSlash(stat.Linkname)
	case e.mode.IsRegular() && stat.Linkname != "":
		// A second name of one file is sent as a link to the first. In the image both read the same, so here they are two files.
		own, err := os.Lstat(s.name(e))
		if err != nil {
			return err
		}
		e.size = own.Size()
	}
	s.entries = append(s.entries, e)
	return nil
}

// dockerfiles are the names of a context's default Dockerfile, in BuildKit's order.
func dockerfiles() []string { return []string{"Dockerfile", "dockerfile"} }

// addDockerfile adds the Dockerfile when the context is sent without it, or with a link in its place: the builder reads it in any case.
func (s *sentContext) addDockerfile() error {
	for _, name := range dockerfiles() {
		sent := func(e sentEntry) bool { return e.path == name && e.mode.IsRegular() }
		if slices.ContainsFunc(s.entries, sent) {
			return nil
		}
		_, info, err := inside(s.root, name)
		if err != nil {
			return err
		}
		if info == nil {
			continue
		}
		s.entries = append(s.entries, sentEntry{path: name, size: info.Size(), apart: true})
		return nil
	}
	return nil
}

// name is the path of an entry on this machine.
func (s *sentContext) name(e sentEntry) string {
	if e.apart {
		if name, info, err := inside(s.root, e.path); err == nil && info != nil {
			return name
		}
	}
	return filepath.Join(s.root, filepath.FromSlash(e.path))
}

// inside finds a regular file of the folder as the builder does, for which a link leads nowhere outside of the folder. The info is nil
// when there is no such file.
func inside(root, name string) (string, fs.FileInfo, error) {
	path, err := continuityfs.RootPath(root, name)
	if err != nil {
		return "", nil, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && !info.Mode().IsRegular()) {
		return "", nil, nil
	}
	return path, info, err
}

// An IgnoreError says that a context's ignore file can't be used.
type IgnoreError struct {
	File    string // as it lies in the folder
	Pattern string // empty when the file itself can't be read
	Err     error
}

func (e *IgnoreError) Error() string {
	if e.Pattern == "" {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s: pattern %q: %v", e.File, e.Pattern, e.Err)
}

func (e *IgnoreError) Unwrap() error { return e.Err }

// ignorePatterns are the patterns of the ignore file that counts: the Dockerfile's own, even an empty one, before the folder's. Both are
// looked up inside of the folder only, as by the builder.
func ignorePatterns(root string) ([]string, error) {
	for _, file := range []string{"Dockerfile.dockerignore", ".dockerignore"} {
		path, info, err := inside(root, file)
		if err != nil {
			return nil, &IgnoreError{File: file, Err: err}
		}
		if info == nil {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, &IgnoreError{File: file, Err: err}
		}
		patterns, err := ignorefile.ReadAll(bytes.NewReader(text))
		if err != nil {
			return nil, &IgnoreError{File: file, Err: err}
		}
		for _, pattern := range patterns {
			if _, err := patternmatcher.New([]string{pattern}); err != nil {
				return nil, &IgnoreError{File: file, Pattern: pattern, Err: err}
			}
		}
		return patterns, nil
	}
	return nil, nil
}
