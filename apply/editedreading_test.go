package apply_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"jr2.dev/jr2/apply"
)

// Whoever edits what the record says of the last reading has the next prune questioned, also where he writes that there was nothing to miss.
func TestAnEditedReadingDoesNotSwitchTheGuardOff(t *testing.T) {
	t.Parallel()
	reading := func(text string) string {
		raw, err := json.Marshal(map[string]any{"data": map[string]string{"reading.json": text}})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	for name, patch := range map[string]string{
		"it is gone":                         `{"data":{"reading.json":null}}`,
		"it is empty":                        reading(""),
		"it does not read":                   reading("[1,"),
		"it leads outside":                   reading(`{"version":1,"places":[{"read":{"../../../../../../../etc/passwd":3}}]}`),
		"it is of another version":           reading(`{"version":7,"places":[]}`),
		"it says that there was nothing":     reading(`{"version":1,"places":[{}]}`),
		"it names a file that nobody misses": reading(`{"version":1,"places":[{"read":{"gone.yaml":2,"keep.yaml":1}}]}`),
		"it is very long":                    reading(`{"version":1,"places":[{"read":{"` + strings.Repeat("a", 500_000) + `":2}}]}`),
		"it is very deep":                    reading(strings.Repeat(`{"places":[`, 50_000)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newManifestFolder(t, folderFiles{"keep.yaml": manifest("keep"), "web.yaml": manifest("web")})
			mustApply(t, f.set(), apply.Options{Prune: true})
			inTurn(patches(patch), removes("web.yaml"))(f)
			_, err := apply.Apply(t.Context(), config(t), f.set(), apply.Options{Prune: true})
			var accident *apply.AccidentError
			if !errors.As(err, &accident) || len(accident.Doubts) != 1 || len(err.Error()) > 2000 || !f.isThere(configMap(f.ns, "web")) {
				t.Fatalf("got %.500v", err)
			}
			out := mustApply(t, f.set(), apply.Options{Prune: true, AllowPrune: true})
			if out.Did(configMap(f.ns, "web")) != apply.Pruned {
				t.Errorf("agreed: %+v", out.Objects)
			}
			mustApply(t, f.set(), apply.Options{Prune: true}) // and what is noted now is ours again
			writes(folderFiles{"more.yaml": manifest("more")})(f)
			mustApply(t, f.set(), apply.Options{Prune: true})
			removes("more.yaml")(f)
			if out := mustApply(t, f.set(), apply.Options{Prune: true}); out.Did(configMap(f.ns, "more")) != apply.Pruned {
				t.Errorf("after that: %+v", out.Objects)
			}
		})
	}
}
