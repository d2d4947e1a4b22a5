package images_test

import (
	"reflect"
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
