package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultKey is the reserved key of images/default, which serves a Workspace that names no image.
const DefaultKey = "default"

// A Context is one image context folder: a directory with a Dockerfile, built with itself as the context.
type Context struct {
	// Key is DefaultKey for images/default; empty for every other folder, whose key is its content digest.
	Key string
	// Name decorates the image's name; empty means the base name of Dir.
	Name string
	// Dir is the absolute path of the folder.
	Dir string
}

// A ContextError says that an image context folder cannot be used.
type ContextError struct {
	Dir string // the folder, as given
	Err error
}

func (e *ContextError) Error() string {
	return fmt.Sprintf("image context %s cannot be read: %v", e.Dir, e.Err)
}

func (e *ContextError) Unwrap() error { return e.Err }

// digestDomain separates this hash from every other hash over files.
const digestDomain = "salt:sandbox\n"

// digestLength is the number of hex digits that name an image.
const digestLength = 12

// ContextDigest is the first 12 hex digits of a SHA-256 over dir: digestDomain, then for each regular file, in byte order of its
// slash-separated path below dir, the line "0:<path>\n" and the raw content.
//
// Every regular file counts, also what a .dockerignore leaves out. Symlinks, empty directories, modes and times do not count.
// An unreadable entry is a *ContextError that names dir.
func ContextDigest(ctx context.Context, dir string) (string, error) {
	files, err := regularFiles(ctx, dir)
	if err != nil {
		return "", &ContextError{Dir: dir, Err: err}
	}
	h := sha256.New()
	io.WriteString(h, digestDomain) //nolint:errcheck // a hash does not fail
	for _, name := range files {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		io.WriteString(h, "0:"+name+"\n") //nolint:errcheck // a hash does not fail
		if err := copyFile(h, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return "", &ContextError{Dir: dir, Err: err}
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:digestLength], nil
}

// regularFiles lists the regular files below dir, slash-separated, in byte order.
func regularFiles(ctx context.Context, dir string) ([]string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	var files []string
	// os.DirFS follows dir itself when it is a symlink; filepath.WalkDir would not.
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Type().IsRegular() {
			files = append(files, path)
		}
		return ctx.Err()
	})
	slices.Sort(files)
	return files, err
}

func copyFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// ContextFolder turns the file: URL of an image context, as import.meta.resolve gives it, into the folder's absolute path and
// its name. Percent-encoding is decoded; a trailing slash does not matter. A host other than localhost, a query and a fragment are errors.
func ContextFolder(fileURL string) (dir, name string, err error) {
	u, err := url.Parse(fileURL)
	if err != nil {
		return "", "", fmt.Errorf("image %q is not a URL: %w", fileURL, errors.Unwrap(err))
	}
	switch {
	case u.Scheme != "file":
		return "", "", fmt.Errorf("image %q is not a file: URL", fileURL)
	case u.Host != "" && u.Host != "localhost":
		return "", "", fmt.Errorf("image %q names the host %s; a file: URL of an image names a folder on this host", fileURL, u.Host)
	case u.RawQuery != "" || u.Fragment != "":
		return "", "", fmt.Errorf("image %q has a query or a fragment; a file: URL of an image is a path alone", fileURL)
	case !strings.HasPrefix(u.Path, "/") || strings.Contains(u.Path, "\x00"):
		return "", "", fmt.Errorf("image %q does not hold an absolute path", fileURL)
	}
	dir = filepath.Clean(filepath.FromSlash(u.Path))
	name = filepath.Base(dir)
	if dir == string(filepath.Separator) {
		return "", "", fmt.Errorf("image %q names the root of the file system", fileURL)
	}
	return dir, name, nil
}
