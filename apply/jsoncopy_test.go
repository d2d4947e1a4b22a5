package apply_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"jr2.dev/jr2/apply"
)

// What a program builds by hand becomes the same as what it would be after a way through JSON, and is not shared with the program.
func TestNewSetCopiesAsJSONWould(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{
		"JSON's own types": map[string]any{"s": "x", "i": int64(3), "b": true, "n": nil, "l": []any{int64(1), "y", []any{}, map[string]any{}}},
		"a Go int":         map[string]any{"i": 3},
		"whole floats":     map[string]any{"f": 3.0, "g": 3.5, "big": 1e21},
		"narrow types":     map[string]any{"u": uint8(7), "f": float32(0.5)},
		"typed containers": map[string]any{"l": []string{"a"}, "m": map[string]string{"k": "v"}, "mm": []map[string]any{{"a": 1}}},
		"absent":           map[string]any{"m": map[string]any(nil), "l": []any(nil), "p": (*int)(nil)},
		"no UTF-8":         map[string]any{"s": "a\xffb", "k\xff": "v"},
		"bytes":            map[string]any{"b": []byte("hi")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := map[string]any{
				"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "x", "namespace": "ns"}, "spec": value,
			}
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			want := &unstructured.Unstructured{}
			if err := want.UnmarshalJSON(raw); err != nil {
				t.Fatal(err)
			}
			set, err := apply.NewSet("app", "ns", &unstructured.Unstructured{Object: object})
			if err != nil {
				t.Fatal(err)
			}
			got := set.Objects[0]
			if !reflect.DeepEqual(got.Object, want.Object) {
				t.Errorf("got %#v, want %#v", got.Object, want.Object)
			}
			got.Object["metadata"].(map[string]any)["name"] = "changed"
			if object["metadata"].(map[string]any)["name"] != "x" {
				t.Error("the set shares the object with its caller")
			}
		})
	}
}
