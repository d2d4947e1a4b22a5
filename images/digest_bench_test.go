package images_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"jr2.dev/jr2/images"
)

// BenchmarkContextDigest hashes a context beside sha256sum over the same files on all processors. The size is JR2_BENCH_MIB (default 64)
// in files of 42 KiB; 2048 gives 2 GiB in about 50,000 files:
//
//	JR2_BENCH_MIB=2048 go test ./images -run '^$' -bench ContextDigest -benchtime 3x
func BenchmarkContextDigest(b *testing.B) {
	const size = 42 << 10
	mib := 64
	if text := os.Getenv("JR2_BENCH_MIB"); text != "" {
		var err error
		if mib, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	dir, total := b.TempDir(), int64(0)
	content := make([]byte, size)
	if _, err := rand.Read(content); err != nil {
		b.Fatal(err)
	}
	for i := 0; total < int64(mib)<<20; i++ {
		sub := filepath.Join(dir, strconv.Itoa(i/200))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			b.Fatal(err)
		}
		copy(content, strconv.Itoa(i))
		if err := os.WriteFile(filepath.Join(sub, strconv.Itoa(i)), content, 0o644); err != nil {
			b.Fatal(err)
		}
		total += size
	}
	b.Run("ContextDigest", func(b *testing.B) {
		b.SetBytes(total)
		for b.Loop() {
			if _, err := images.ContextDigest(b.Context(), dir); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("sha256sum", func(b *testing.B) {
		if _, err := exec.LookPath("sha256sum"); err != nil {
			b.Skip(err)
		}
		b.SetBytes(total)
		script := fmt.Sprintf("find . -type f -print0 | xargs -0 -n 500 -P %d sha256sum >/dev/null", runtime.GOMAXPROCS(0))
		for b.Loop() {
			command := exec.CommandContext(b.Context(), "sh", "-c", script)
			command.Dir = dir
			if out, err := command.CombinedOutput(); err != nil {
				b.Fatal(err, string(out))
			}
		}
	})
}
