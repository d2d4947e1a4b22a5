package apply_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

// Other words for equal values are no change either when somebody else writes to the object between the look and the write, as controllers
// do right after an object was made; a change of value is one, however often that happens.
func TestEqualValuesWhileOthersWrite(t *testing.T) {
	t.Parallel()
	const text = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: x, namespace: NS}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1536Mi}}}\n" +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: map, namespace: NS}\ndata: {word: old}\n"
	for _, tt := range []struct {
		name, old, said string
		faster          int64 // so many times
		changed         int
	}{
		{"once, equal", "1536Mi", "1.5Gi", 1, 0},
		{"twice, equal", "1536Mi", "1.5Gi", 2, 0},
		{"once, another value", "old", "new", 1, 1},
		{"always, another value", "old", "new", 1 << 30, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			mustApply(t, set(t, ns, text), apply.Options{})
			var writes atomic.Int64
			touch := func() {
				n := strconv.FormatInt(writes.Load(), 10)
				patch := []byte(`{"metadata":{"annotations":{"touched":"` + n + `"}}}`)
				core := typed(t).CoreV1()
				if _, err := core.PersistentVolumeClaims(ns).Patch(t.Context(), "x", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "other"}); err != nil {
					t.Error(err)
				}
				if _, err := core.ConfigMaps(ns).Patch(t.Context(), "map", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "other"}); err != nil {
					t.Error(err)
				}
			}
			cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				named := strings.HasSuffix(r.URL.Path, "/persistentvolumeclaims/x") || strings.HasSuffix(r.URL.Path, "/configmaps/map")
				if r.Method == http.MethodPatch && named && writes.Add(1) <= tt.faster {
					touch()
				}
				return next.RoundTrip(r)
			})
			out, err := apply.Apply(t.Context(), cfg, set(t, ns, strings.Replace(text, tt.old, tt.said, 1)), apply.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if out.Changed() != tt.changed {
				t.Errorf("%+v", out.Objects)
			}
			if writes.Load() < min(tt.faster, 2) {
				t.Errorf("%d writes", writes.Load())
			}
		})
	}
}
