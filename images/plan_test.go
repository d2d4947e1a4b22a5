package images_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"jr2.dev/jr2/images"
)

const holdRef = "registry.example.com/team/jr2-sandbox-fx-hold-default:e13447d07c4d-amd64"

func holdRequest(t *testing.T) images.Request {
	return images.Request{
		Instance: "fx-hold", Registry: "registry.example.com/team", Context: "prod", Platforms: []string{"linux/amd64"},
		Contexts: []images.Context{{Key: images.DefaultKey, Dir: folder(t, "default", holdFiles())}},
	}
}

func TestPlanDecides(t *testing.T) {
	record := func(key, ref string, users map[string]string) *images.Record {
		return &images.Record{Sandbox: map[string]string{key: ref}, SandboxUser: users}
	}
	cases := []struct {
		name   string
		change func(*images.Request)
		skip   bool
		user   string
		why    string
	}{
		{"no record", func(*images.Request) {}, false, "", "the cluster has no record of it"},
		{"recorded", func(r *images.Request) { r.Previous = record("default", holdRef, map[string]string{"default": "1200"}) }, true, "1200", "the cluster's record names it as delivered"},
		{"recorded without USER", func(r *images.Request) { r.Previous = record("default", holdRef, map[string]string{"default": ""}) }, true, "", "the cluster's record names it as delivered"},
		{"USER unknown", func(r *images.Request) { r.Previous = record("default", holdRef, nil) }, false, "", "the cluster's record does not say which USER it declares"},
		{"same ref under the digest", func(r *images.Request) {
			r.Previous = record("e13447d07c4d", holdRef, map[string]string{"e13447d07c4d": "7"})
		}, true, "7", "the cluster's record names it as delivered"},
		{"other ref", func(r *images.Request) {
			r.Previous = record("default", "r.test/x:1", map[string]string{"default": ""})
		}, false, "", "the cluster runs r.test/x:1"},
		{"other registry", func(r *images.Request) {
			r.Previous = record("default", holdRef, map[string]string{"default": ""})
			r.Registry = "other.test"
		}, false, "", "the cluster runs " + holdRef},
		{"other platforms", func(r *images.Request) {
			r.Previous = record("default", holdRef, map[string]string{"default": ""})
			r.Platforms = []string{"linux/amd64", "linux/arm64"}
		}, false, "", "the cluster runs " + holdRef},
		{"other instance", func(r *images.Request) {
			r.Previous = record("default", holdRef, map[string]string{"default": ""})
			r.Instance = "fx"
		}, false, "", "the cluster runs " + holdRef},
		{"force", func(r *images.Request) {
			r.Previous = record("default", holdRef, map[string]string{"default": ""})
			r.Force = true
		}, false, "", "forced"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			req := holdRequest(t)
			c.change(&req)
			d, err := images.Plan(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			img := d.Images[0]
			if img.Skip != c.skip || img.User != c.user || img.Why != c.why || d.Needed() == c.skip {
				t.Errorf("%+v", img)
			}
		})
	}
}

func TestPlanNames(t *testing.T) {
	req := holdRequest(t)
	toolbox := folder(t, "toolbox", toolboxFiles())
	req.Contexts = append(req.Contexts, images.Context{Dir: toolbox}, images.Context{Dir: toolbox}, images.Context{Dir: req.Contexts[0].Dir})
	d, err := images.Plan(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var keys, refs []string
	for _, img := range d.Images {
		keys, refs = append(keys, img.Key), append(refs, img.Ref)
	}
	// A folder that two Workspaces name is one image; images/default that a Machine names too is two keys and one ref.
	if want := []string{"default", "8f7a27452d4e", "e13447d07c4d"}; !reflect.DeepEqual(keys, want) {
		t.Errorf("keys %v, want %v", keys, want)
	}
	if refs[0] != holdRef || refs[2] != holdRef || refs[1] != "registry.example.com/team/jr2-sandbox-fx-hold-toolbox:8f7a27452d4e-amd64" {
		t.Errorf("refs %v", refs)
	}
}

func TestPlanDeliverability(t *testing.T) {
	recorded := &images.Record{
		Sandbox:     map[string]string{"default": "jr2-sandbox-fx-hold-default:e13447d07c4d-amd64"},
		SandboxUser: map[string]string{"default": ""},
	}
	cases := []struct {
		name     string
		kind     string
		previous *images.Record
		contexts bool
		want     error
		text     string
	}{
		{"shared cluster", "", nil, true, &images.NoRegistryError{}, "context prod is not a kind cluster and no `registry` is configured — set `registry` in jr2.config.ts (from env) so the image can be pushed (ADR-0019)"},
		{"kind", "dev", nil, true, nil, ""},
		{"nothing to build", "", nil, false, nil, ""},
		{"all recorded", "", recorded, true, nil, ""},
		{"all recorded on kind", "dev", recorded, true, nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			req := holdRequest(t)
			req.Registry, req.Kind, req.Previous = "", c.kind, c.previous
			if !c.contexts {
				req.Contexts, req.Platforms = nil, nil
			}
			d, err := images.Plan(t.Context(), req)
			if d == nil {
				t.Fatalf("no decision: %v", err)
			}
			if c.want == nil {
				must(t, err)
				return
			}
			if reflect.TypeOf(err) != reflect.TypeOf(c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%T %v", err, err)
			}
		})
	}
}

func TestPlanReportsEveryFolder(t *testing.T) {
	req := holdRequest(t)
	gone := filepath.Join(t.TempDir(), "gone")
	req.Contexts = append(req.Contexts, images.Context{Dir: gone}, images.Context{Dir: folder(t, "Tools", toolboxFiles())})
	_, err := images.Plan(t.Context(), req)
	var unreadable *images.ContextError
	var badName *images.RefError
	if !errors.As(err, &unreadable) || !errors.As(err, &badName) || !errors.Is(err, os.ErrNotExist) || unreadable.Dir != gone {
		t.Errorf("%v", err)
	}
}

func TestPlanNotesDockerHub(t *testing.T) {
	for registry, noted := range map[string]bool{"team": true, "reg/app": true, "localhost": false, "localhost:5000/x": false, "r.test": false, "reg:5000": false} {
		req := holdRequest(t)
		req.Registry = registry
		d, err := images.Plan(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if noted != (len(d.Notes) == 1) {
			t.Errorf("%s: %v", registry, d.Notes)
		}
	}
}
