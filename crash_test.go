package jr2_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKilledConvergeIsCompleted kills the command with SIGKILL in each part of a converge, at random moments; each time the next converge
// completes what was cut off, and one more finds nothing to change. What a run cut off at each request leaves is tested in apply.
func TestKilledConvergeIsCompleted(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	command := buildCommand(t)
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1"), "workflows/ping.ts": ping})
	up := func(ctx context.Context, namespace string) error {
		run := exec.CommandContext(ctx, command, "up", dir, "--yes", "--kubeconfig", w.Kubeconfig(), "-n", namespace)
		if out, err := run.CombinedOutput(); err != nil {
			return fmt.Errorf("%w:\n%s", err, out)
		}
		return nil
	}
	began := time.Now()
	must(t, up(t.Context(), "kill-whole"))
	whole := time.Since(began)
	seed := uint64(began.UnixNano())
	t.Logf("seed %d, a whole converge takes %v", seed, whole)
	random := rand.New(rand.NewPCG(seed, seed))
	cut := 0
	const parts = 6
	for i := range parts {
		namespace := fmt.Sprintf("kill-%d", i)
		moment, cancel := context.WithTimeout(t.Context(), within(random, whole, i, parts))
		if up(moment, namespace) != nil {
			cut++
		}
		cancel()
		must(t, up(t.Context(), namespace))
		if told := w.up(t, dir, into(namespace)); told.err != nil || told.result.Changed != 0 {
			t.Errorf("%s was not complete: %v\n%s", namespace, told.err, told.lines)
		}
		must(t, w.client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}))
	}
	if cut == 0 {
		t.Error("no converge was cut off")
	}
}

// within is a random moment in one of equal parts of a time.
func within(random *rand.Rand, whole time.Duration, part, parts int) time.Duration {
	return (whole*time.Duration(part) + time.Duration(random.Int64N(int64(whole)))) / time.Duration(parts)
}

// buildCommand builds examples/jr2, once for all tests.
func buildCommand(t *testing.T) string {
	t.Helper()
	binary, err := command()
	must(t, err)
	return binary
}

// commandDir is where the command is built; TestMain makes and removes it.
var commandDir string

var command = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(commandDir, "jr2")
	out, err := exec.Command("go", "build", "-ldflags=-w", "-o", binary, "./examples/jr2").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binary, nil
})
