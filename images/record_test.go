package images_test

import (
	"reflect"
	"slices"
	"testing"

	"jr2.dev/jr2/images"
)

const recordText = `{
  "harness": "ghcr.io/x/harness:1",
  "custodian": "docker.io/envoyproxy/envoy:v1",
  "sandbox": {
    "8f7a27452d4e": "r.test/t:8f7a27452d4e-amd64",
    "default": "r.test/d:1-amd64"
  },
  "sandboxUser": {
    "8f7a27452d4e": "1200",
    "default": ""
  }
}`

func TestRecordRoundTrip(t *testing.T) {
	record, err := images.ParseRecord([]byte(recordText))
	if err != nil {
		t.Fatal(err)
	}
	text, err := record.Marshal()
	if err != nil || string(text) != recordText {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := images.ParseRecord([]byte(`{"sandbox": []}`)); err == nil {
		t.Error("a list is no map of images")
	}
	if _, err := images.ParseRecord([]byte(`{"harness": "h", "later": {"a": 1}}`)); err != nil {
		t.Errorf("a field of a later version: %v", err)
	}
}

func TestRecordWith(t *testing.T) {
	old, err := images.ParseRecord([]byte(recordText))
	if err != nil {
		t.Fatal(err)
	}
	got := old.With(map[string]images.Delivered{"default": {Ref: "r.test/d:2-amd64", User: "7"}})
	want := images.Record{Harness: old.Harness, Custodian: old.Custodian,
		Sandbox: map[string]string{"default": "r.test/d:2-amd64"}, SandboxUser: map[string]string{"default": "7"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if text, _ := old.Marshal(); string(text) != recordText {
		t.Error("With changed the record that it was called on")
	}
}

// TestRecordReplaced: one generation is kept, until the next one changes something.
func TestRecordReplaced(t *testing.T) {
	generation := func(refs ...string) *images.Record {
		r := &images.Record{Harness: refs[0], Sandbox: map[string]string{}}
		for _, ref := range refs[1:] {
			r.Sandbox[ref] = ref
		}
		return r
	}
	for _, c := range []struct {
		name   string
		old    *images.Record
		before []string
		next   *images.Record
		want   []string
	}{
		{"the first", nil, nil, generation("h:1", "a:1"), nil},
		{"a new image", generation("h:1", "a:1"), []string{"a:0"}, generation("h:1", "a:2"), []string{"a:1"}},
		{"nothing new", generation("h:1", "a:2"), []string{"a:1"}, generation("h:1", "a:2"), []string{"a:1"}},
		{"one more", generation("h:1", "a:2"), []string{"a:1"}, generation("h:1", "a:2", "b:1"), []string{"a:1"}},
		{"one less", generation("h:1", "a:2", "b:1"), []string{"a:1"}, generation("h:1", "a:2"), []string{"b:1"}},
		{"back again", generation("h:1", "a:2"), []string{"a:1"}, generation("h:1", "a:1"), []string{"a:2"}},
		{"all of it", generation("h:1", "a:2", "b:1"), []string{"a:1"}, generation("h:2"), []string{"a:2", "b:1", "h:1"}},
		{"a lost record", nil, []string{"b:1", "a:1"}, generation("h:1", "b:1"), []string{"a:1"}},
	} {
		if got := c.old.Replaced(c.before, c.next); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	roots := &images.Roots{}
	if err := roots.AddList([]byte(`["a:1", "r.test/b:1"]`)); err != nil || !roots.Need("docker.io/library/a:1") || !roots.Need("r.test/b:1") || roots.Need("a:2") {
		t.Errorf("%v", err)
	}
	if err := roots.AddList([]byte(`{"a": "b"}`)); err == nil {
		t.Error("an unreadable list passes")
	}
}
