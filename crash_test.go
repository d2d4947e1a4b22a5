package jr2_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKilledConvergeIsCompleted kills the command with SIGKILL at random moments of a converge; each time the next converge completes
// what was cut off, and one more finds nothing to change.
func TestKilledConvergeIsCompleted(t *testing.T) {
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
	for i := range 10 { // each run at other moments
		namespace := fmt.Sprintf("kill-%d", i)
		moment, cancel := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(whole))))
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

// buildCommand builds examples/jr2.
func buildCommand(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "jr2")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./examples/jr2").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, err := os.Stat(binary)
	must(t, err)
	return binary
}
