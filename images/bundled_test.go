package images_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"jr2.dev/jr2/images"
)

// bundle is the release of the third source document, with its settings in the document's own form.
func bundle(t *testing.T, settings string) images.Bundle {
	t.Helper()
	release := images.Bundle{
		Home: "ghcr.io/kora", Prefix: "kora-sandbox-", Version: "1.4.0",
		Images: map[string]images.Bundled{"go": {}, "node": {}, "python": {}},
	}
	var set map[string]images.Bundled
	must(t, json.Unmarshal([]byte(settings), &set))
	merged, err := release.With(set)
	must(t, err)
	if len(release.Images["go"].Image) > 0 {
		t.Error("the release itself was changed")
	}
	return merged
}

// TestK07Bundled is the document's example: go comes from a mirror and is kept warm, node is off.
func TestK07Bundled(t *testing.T) {
	b := bundle(t, `{"go": {"image": "registry.example.com:5000/kora/kora-sandbox-go:1.4.0", "warm": true}, "node": {"enabled": false, "warm": true}, "python": {"enabled": true}}`)
	for name, want := range map[string]string{"go": "registry.example.com:5000/kora/kora-sandbox-go:1.4.0", "python": "ghcr.io/kora/kora-sandbox-python:1.4.0"} {
		if ref, err := b.Ref(name); err != nil || ref != want {
			t.Errorf("%s: %s, %v", name, ref, err)
		}
	}
	for name, off := range map[string]bool{"node": true, "ruby": false} {
		_, err := b.Ref(name)
		var refused *images.BundledError
		if !errors.As(err, &refused) || refused.Off != off || !reflect.DeepEqual(refused.Offered, []string{"go", "python"}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if warm := b.Warm(); !reflect.DeepEqual(warm, []string{"registry.example.com:5000/kora/kora-sandbox-go:1.4.0"}) { // node is off
		t.Errorf("warm %q", warm)
	}
	b.Home = "mirror.example.com:5000/kora/" // of all, where none of its own is given
	if ref, err := b.Ref("python"); err != nil || ref != "mirror.example.com:5000/kora/kora-sandbox-python:1.4.0" {
		t.Errorf("%s, %v", ref, err)
	}
}

// TestK07RefusedRefs: what is off is known in every spelling, and by another version too; what is on is not in its way.
func TestK07RefusedRefs(t *testing.T) {
	off := bundle(t, `{"go": {"enabled": false, "image": "docker.io/team/box:go"}, "python": {"image": "team/box:python"}, "node": {"enabled": false, "image": "docker.io/library/node:24"}}`)
	for ref, want := range map[string]string{
		"ghcr.io/kora/kora-sandbox-go:1.4.0": "go", "ghcr.io/kora/kora-sandbox-go:1.3.0": "go", "ghcr.io/kora/kora-sandbox-go": "go",
		"ghcr.io/kora/kora-sandbox-go:1.4.0@sha256:6389bdf72d506389bdf72d506389bdf72d506389bdf72d506389bdf72d506389": "go",
		"team/box:go": "go", "docker.io/team/box:go": "go", "index.docker.io/team/box:go": "go",
		"node": "node", "node:25": "node", "ghcr.io/kora/kora-sandbox-node:1.4.0": "node",
		"team/box:python": "", "team/box:ruby": "", // python is on and has the same repository
		"ghcr.io/kora/kora-sandbox-python:1.4.0": "", "ghcr.io/other/kora-sandbox-go:1.4.0": "", "kora-sandbox-go:1.4.0": "",
		"": "", "file:///images/go": "", "Go": "",
	} {
		if name, refused := off.Refused(ref); name != want || refused != (want != "") {
			t.Errorf("%q: %q, %t; want %q", ref, name, refused, want)
		}
	}
	if name, refused := (images.Bundle{}).Refused("x"); refused {
		t.Errorf("an empty bundle refuses %s", name)
	}
}

func TestK07BundleProblems(t *testing.T) {
	release := images.Bundle{Home: "r.test/kora", Version: "1", Images: map[string]images.Bundled{"go": {}}}
	_, err := release.With(map[string]images.Bundled{"goo": {Enabled: new(bool)}})
	var unknown *images.BundledError
	if !errors.As(err, &unknown) || unknown.Name != "goo" || unknown.Off {
		t.Errorf("a setting for an image that is not there: %v", err)
	}
	for _, image := range []string{"r.test/kora/go", "r.test/Kora:1", "https://r.test/x:1"} {
		_, err := release.With(map[string]images.Bundled{"go": {Image: image}})
		var bad *images.RefError
		if !errors.As(err, &bad) || bad.Ref != image {
			t.Errorf("%s: %v", image, err)
		}
	}
	if err := (images.Bundle{Home: "https://r.test", Version: "1", Images: release.Images}).Check(); err == nil {
		t.Error("a home with a scheme passes")
	}
	if err := (images.Bundle{Home: "r.test:5000", Version: "1", Images: release.Images}).Check(); err != nil {
		t.Error(err)
	}
	if err := (images.Bundle{Home: "r.test:5000", Images: release.Images}).Check(); err == nil {
		t.Error("no version passes")
	}
}

// A product's images, one from a mirror and warm, one turned off.
func ExampleBundle() {
	release := images.Bundle{
		Home: "ghcr.io/acme", Prefix: "acme-sandbox-", Version: "1.4.0",
		Images: map[string]images.Bundled{"go": {}, "node": {}},
	}
	off := false
	bundle, err := release.With(map[string]images.Bundled{
		"go":   {Image: "registry.example.com/acme/acme-sandbox-go:1.4.0", Warm: true},
		"node": {Enabled: &off},
	})
	fmt.Println(err)
	fmt.Println(bundle.Ref("go"))
	fmt.Println(bundle.Ref("node"))
	fmt.Println(bundle.Warm())
	// Output:
	// <nil>
	// registry.example.com/acme/acme-sandbox-go:1.4.0 <nil>
	//  bundled image "node" is turned off: what runs on it keeps running, and nothing new starts on it until it is turned on again; offered are go
	// [registry.example.com/acme/acme-sandbox-go:1.4.0]
}
