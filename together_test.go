package jr2_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/names"
)

// together runs converges at the same time and returns what each told.
func (w *world) together(t *testing.T, dirs []string, change func(i int, o *jr2.Options)) []told {
	t.Helper()
	all := make([]told, len(dirs))
	var running sync.WaitGroup
	for i, dir := range dirs {
		running.Go(func() {
			var lines bytes.Buffer
			options := jr2.Options{Dir: dir, Config: w.Config(), Context: contextName, Yes: true, Events: jr2.Narrate(&lines)}
			change(i, &options)
			result, err := jr2.Converge(t.Context(), options)
			all[i] = told{lines: lines.String(), result: result, err: err}
		})
	}
	running.Wait()
	return all
}

// TestInstancesArriveTogether: several Instances bring the same operator to a cluster that has none.
func TestInstancesArriveTogether(t *testing.T) {
	t.Parallel()
	w := loneWorld(t, node("a"))
	w.withoutOperator(t)
	var dirs []string
	for i := range 4 {
		dirs = append(dirs, folder(t, map[string]string{"jr2.config.ts": configOf(fmt.Sprintf(`name: "together-%d"`, i)), "workflows/hold.ts": hold("3Gi", "1")}))
	}
	for i, told := range w.together(t, dirs, func(int, *jr2.Options) {}) {
		if told.err != nil {
			t.Errorf("together-%d: %v\n%s", i, told.err, told.lines)
		}
		if again := w.up(t, dirs[i]); again.err != nil || again.result.Changed != 0 {
			t.Errorf("together-%d was not complete: %v\n%s", i, again.err, again.lines)
		}
	}
}

// TestOneInstanceTwiceAtOnce: one converge waits for the other, and finds nothing to do.
func TestOneInstanceTwiceAtOnce(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	name := fmt.Sprintf("twice-%d", rand.Uint32())
	dir := folder(t, map[string]string{"jr2.config.ts": configOf(fmt.Sprintf("name: %q", name)), "workflows/ping.ts": ping})
	changed := 0
	for i, told := range w.together(t, []string{dir, dir}, func(i int, o *jr2.Options) { o.Holder = fmt.Sprintf("holder %d", i) }) {
		if told.err != nil {
			t.Errorf("converge %d: %v\n%s", i, told.err, told.lines)
		}
		if strings.Contains(told.lines, "assembly: publishing") {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("%d converges published the Assembly", changed)
	}
}

// withoutOperator removes what earlier tests brought, all Instances' sandboxes and repos with it.
func (w *world) withoutOperator(t *testing.T) {
	t.Helper()
	foreground := metav1.DeletePropagationForeground
	now := metav1.DeleteOptions{PropagationPolicy: &foreground}
	deployments := w.client.AppsV1().Deployments(names.OperatorNamespace)
	must(t, deployments.DeleteCollection(t.Context(), now, metav1.ListOptions{}))
	must(t, wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		left, err := deployments.List(ctx, metav1.ListOptions{})
		return err == nil && len(left.Items) == 0, nil // a converge would wait for a minute only
	}))
	must(t, w.client.CoreV1().ConfigMaps(names.OperatorNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
}
