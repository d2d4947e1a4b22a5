package images_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jr2.dev/jr2/images"
)

// BenchmarkContextDigest hashes a context, and in turn with it sha256sum does over the same files on all processors, so that what else the
// machine does slows both. It reports the speed as a share of sha256sum's, by the clock and by processor time. The size is JR2_BENCH_MIB
// (default 64) in files of 42 KiB; 2048 gives 2 GiB in about 50,000 files:
//
//	JR2_BENCH_MIB=2048 go test ./images -run '^$' -bench ContextDigest -benchtime 3x
//
// Some builds of sha256sum leave the processor's own instructions for SHA-256 unused; JR2_BENCH_SUM="openssl dgst -sha256" compares with a
// program that uses them.
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
	sum := "sha256sum"
	if text := os.Getenv("JR2_BENCH_SUM"); text != "" {
		sum = text
	}
	if _, err := exec.LookPath(strings.Fields(sum)[0]); err != nil {
		b.Skip(err)
	}
	script := fmt.Sprintf("find . -type f -print0 | xargs -0 -n 500 -P %d %s >/dev/null", runtime.GOMAXPROCS(0), sum)
	var own, other, ownCPU, otherCPU time.Duration
	b.SetBytes(total)
	for b.Loop() {
		start, cpu := time.Now(), processorTime(b, syscall.RUSAGE_SELF)
		if _, err := images.ContextDigest(b.Context(), dir); err != nil {
			b.Fatal(err)
		}
		own += time.Since(start)
		ownCPU += processorTime(b, syscall.RUSAGE_SELF) - cpu

		b.StopTimer()
		start, cpu = time.Now(), processorTime(b, syscall.RUSAGE_CHILDREN)
		command := exec.CommandContext(b.Context(), "sh", "-c", script)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			b.Fatal(err, string(out))
		}
		other += time.Since(start)
		otherCPU += processorTime(b, syscall.RUSAGE_CHILDREN) - cpu
		b.StartTimer()
	}
	b.ReportMetric(100*other.Seconds()/own.Seconds(), "%of-sha256sum")
	b.ReportMetric(100*otherCPU.Seconds()/ownCPU.Seconds(), "%of-sha256sum-cpu")
	b.ReportMetric(float64(b.N)*float64(total)/1e6/other.Seconds(), "sha256sum-MB/s")
}

// processorTime is what this process, or the children that it waited for, used so far.
func processorTime(b *testing.B, who int) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(who, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
