package assembly

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// entry is one file of an archive.
type entry struct {
	path string
	data []byte
}

// hashDomain starts every hash, so that no other hash of ours can be mistaken for one.
const hashDomain = "jr2 assembly 1\n"

// hash names the content of the entries, which are in path order: the first 12 hex digits of the SHA-256 over the domain line and,
// for each entry, "<length>:<path>\n" and the bytes. It sees no times, owners or modes and no tar, so it names the content alone.
func hash(entries []entry) string {
	h := sha256.New()
	io.WriteString(h, hashDomain)
	for _, e := range entries {
		fmt.Fprintf(h, "%d:%s\n", len(e.data), e.path)
		h.Write(e.data)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// pack writes the entries as a tar without times and owners. It is not compressed: the bytes of a compressor change with its
// version, and chunks that are named by the content must hold the same bytes whoever writes them.
func pack(entries []entry) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for i, e := range entries {
		if i > 0 && entries[i-1].path == e.path {
			return nil, fmt.Errorf("two modules are named %s", e.path)
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.path, Size: int64(len(e.data)), Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("%s: %w", e.path, err)
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, fmt.Errorf("%s: %w", e.path, err)
		}
		if buffer.Len() > MaxSize {
			return nil, ErrTooLarge
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if buffer.Len() > MaxSize {
		return nil, ErrTooLarge
	}
	return buffer.Bytes(), nil
}

// unpack reads what pack wrote: regular files with plain relative paths, in path order, each once.
func unpack(archive []byte) ([]entry, error) {
	var entries []entry
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg || !validPath(header.Name) {
			return nil, fmt.Errorf("%q is not a file with a plain relative path", header.Name)
		}
		if len(entries) > 0 && entries[len(entries)-1].path >= header.Name {
			return nil, fmt.Errorf("%q is out of order", header.Name)
		}
		// A sparse file could claim any size; what is read is bounded all the same.
		data, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
		if err != nil {
			return nil, err
		}
		if len(data) > MaxSize {
			return nil, ErrTooLarge
		}
		entries = append(entries, entry{header.Name, data})
	}
}

func validPath(path string) bool { return path != "." && fs.ValidPath(path) }
