package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"syscall"

	"golang.org/x/sync/errgroup"
)

const (
	// digestDomain separates this hash from every other hash over files.
	digestDomain = "salt:sandbox\n"
	// digestLength is the number of hex digits that name an image.
	digestLength = 12
	// maxPlain is the size, in bytes, up to which a context is hashed as one stream.
	maxPlain = 1 << 20
	// hashBuffer is what one file is read with, in bytes.
	hashBuffer = 256 << 10
)

// ContextDigest is the first 12 hex digits of a SHA-256 over what a builder may be sent of dir: what an ignore file leaves out does not
// count, and the Dockerfile always does. Of an entry count its path, its content or link target, its mode and its file capability; times,
// owners (BuildKit's client sends all as root's), other attributes and hard links do not.
//
// A plain context (regular files of mode 0644 in directories of 0755 that are not empty, no more than 1 MiB) is hashed as one stream:
// digestDomain, then for each file, in byte order of its slash-separated path, the line "0:<path>\n" and the raw content. Any other
// context is hashed as a list of entries with the hash of each file's content, for which the files are read in parallel.
//
// An unreadable entry is a *ContextError that names dir; an ignore file that can't be used is an *IgnoreError in it.
func ContextDigest(ctx context.Context, dir string) (string, error) {
	sent, err := sentFrom(ctx, dir)
	if err != nil {
		return "", contextError(ctx, dir, err)
	}
	sum := sent.listed
	if sent.plain() {
		sum = sent.streamed
	}
	h := sha256.New()
	io.WriteString(h, digestDomain) //nolint:errcheck // a hash does not fail
	if err := sum(ctx, h); err != nil {
		return "", contextError(ctx, dir, err)
	}
	return hex.EncodeToString(h.Sum(nil))[:digestLength], nil
}

// contextError tells a cancelled walk from a folder that can't be read.
func contextError(ctx context.Context, dir string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &ContextError{Dir: dir, Err: err}
}

// plain says whether paths and contents tell all of the context.
func (s *sentContext) plain() bool {
	full, total := map[string]bool{}, int64(0)
	for _, e := range s.entries {
		full[path.Dir(e.path)] = true
		total += e.size
	}
	for _, e := range s.entries {
		switch {
		case e.apart || e.capability != "":
			return false
		case e.mode == fs.ModeDir|0o755 && full[e.path], e.mode == 0o644:
		default:
			return false
		}
	}
	return total <= maxPlain
}

// streamed hashes a plain context.
func (s *sentContext) streamed(ctx context.Context, h hash.Hash) error {
	buffer := make([]byte, hashBuffer)
	for _, e := range s.entries {
		if e.mode.IsDir() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		io.WriteString(h, "0:"+e.path+"\n") //nolint:errcheck // a hash does not fail
		if err := copyFile(h, s.name(e), buffer); err != nil {
			return err
		}
	}
	return nil
}

// listed hashes any context: one line for each entry.
func (s *sentContext) listed(ctx context.Context, h hash.Hash) error {
	contents, err := s.contents(ctx)
	if err != nil {
		return err
	}
	io.WriteString(h, "1\n") //nolint:errcheck // a hash does not fail
	for i, e := range s.entries {
		const special = fs.ModeDevice | fs.ModeCharDevice | fs.ModeNamedPipe
		switch {
		case e.apart:
			fmt.Fprintf(h, "dockerfile %q %x\n", e.path, contents[i])
		case e.mode.IsDir():
			fmt.Fprintf(h, "directory %q %s\n", e.path, e.mode)
		case e.mode&fs.ModeSymlink != 0:
			fmt.Fprintf(h, "link %q %q\n", e.path, e.link)
		case e.mode&special != 0:
			fmt.Fprintf(h, "special %q %s %d %d\n", e.path, e.mode, e.major, e.minor)
		default:
			fmt.Fprintf(h, "file %q %s %x %x\n", e.path, e.mode, e.capability, contents[i])
		}
	}
	return nil
}

// contents are the SHA-256 of all files, by the index of their entries. As many files are read at once as there are processors.
func (s *sentContext) contents(ctx context.Context) ([][]byte, error) {
	sums, next := make([][]byte, len(s.entries)), make(chan int, 64)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(next)
		for i, e := range s.entries {
			if !e.apart && !e.mode.IsRegular() {
				continue
			}
			select {
			case next <- i:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			h, buffer := sha256.New(), make([]byte, hashBuffer)
			for i := range next {
				h.Reset()
				if err := copyFile(h, s.name(s.entries[i]), buffer); err != nil {
					return err
				}
				sums[i] = h.Sum(nil)
			}
			return nil
		})
	}
	return sums, group.Wait()
}

// copyFile reads the file into w. A socket, which the walk gives as an empty file, has no content.
func copyFile(w io.Writer, name string, buffer []byte) error {
	f, err := os.Open(name)
	if errors.Is(err, syscall.ENXIO) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		n, err := f.Read(buffer)
		w.Write(buffer[:n]) //nolint:errcheck // a hash does not fail
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
