package images

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
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
