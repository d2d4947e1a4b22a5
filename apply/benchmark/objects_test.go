package main

import (
	"reflect"
	"testing"
)

func TestMixture(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	before, after := mixture(100, "ns", false), mixture(100, "ns", true)
	changed := 0
	for i, o := range before {
		kinds[o["kind"].(string)]++
		if o["kind"] == "ConfigMap" && len(o["data"].(map[string]any)["settings"].(string)) != 1024 {
			t.Errorf("%v is not of 1 KiB", o["metadata"])
		}
		if !reflect.DeepEqual(o, after[i]) {
			changed++
		}
	}
	if want := map[string]int{"ConfigMap": 40, "Secret": 20, "Service": 20, "Deployment": 20}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
	if changed != 1 {
		t.Errorf("%d objects are changed", changed)
	}
}
