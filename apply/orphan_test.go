package apply_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

// The finalizer "orphan", which anybody who may write an object may give it, keeps no prune busy.
func TestWhatHasTheFinalizerOrphanIsPruned(t *testing.T) {
	t.Parallel()
	for _, finalizers := range []string{`["orphan"]`, `["foregroundDeletion"]`, `["orphan","foregroundDeletion"]`} {
		ns := newNamespace(t, nil)
		mustApply(t, mapsSet(t, ns, "stays", "goes"), apply.Options{})
		maps := typed(t).CoreV1().ConfigMaps(ns)
		if _, err := maps.Patch(t.Context(), "goes", types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{}); err != nil {
			t.Logf("%s: %v", finalizers, err)
			continue
		}
		var deletes atomic.Int64
		cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodDelete {
				deletes.Add(1)
			}
			return next.RoundTrip(r)
		})
		out, err := apply.Apply(t.Context(), cfg, mapsSet(t, ns, "stays"), apply.Options{Prune: true})
		if did := out.Did(configMap(ns, "goes")); err != nil || did != apply.Pruned && did != apply.Terminating || deletes.Load() > 3 {
			t.Errorf("%s: %q after %d deletes, %v", finalizers, did, deletes.Load(), err)
		}
	}
}

// An object that somebody writes all the time ends a prune with an error, and not never.
func TestWhatIsWrittenAllTheTimeEndsThePrune(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, mapsSet(t, ns, "stays", "goes"), apply.Options{})
	maps := typed(t).CoreV1().ConfigMaps(ns)
	var n atomic.Int64
	cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodDelete {
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, n.Add(1))
			if _, err := maps.Patch(t.Context(), "goes", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		}
		return next.RoundTrip(r)
	})
	out, err := apply.Apply(t.Context(), cfg, mapsSet(t, ns, "stays"), apply.Options{Prune: true})
	if err == nil || !strings.Contains(err.Error(), "somebody changed it each time") || out.Did(configMap(ns, "goes")) != apply.Kept || n.Load() > 100 {
		t.Errorf("%d deletes, %v: %+v", n.Load(), err, out.Objects)
	}
}
