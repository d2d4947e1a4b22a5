package images_test

import (
	"strings"
	"testing"

	"jr2.dev/jr2/images"
)

func TestF26PullNames(t *testing.T) {
	kind := images.LocalRegistry{Host: "localhost:5555", FromRuntime: "kind-registry:5000"}
	for name, c := range map[string]struct {
		local          images.LocalRegistry
		registry, pull string
	}{
		"the registry alone":         {kind, "localhost:5555", "kind-registry:5000"},
		"a path in it":               {kind, "localhost:5555/team/a", "kind-registry:5000/team/a"},
		"this machine by its number": {kind, "127.0.0.1:5555/team", "kind-registry:5000/team"},
		"by that of another family":  {kind, "[::1]:5555/team", "kind-registry:5000/team"},
		"by a name below it":         {kind, "registry.localhost:5555/team", "kind-registry:5000/team"},
		"another port":               {kind, "localhost:5556/team", "localhost:5556/team"},
		"another host":               {kind, "registry.example.com/team", "registry.example.com/team"},
		"no port":                    {kind, "localhost/team", "localhost/team"},
		"one name for all":           {images.LocalRegistry{Host: "localhost:5555"}, "localhost:5555/team", "localhost:5555/team"},
		"nothing is told":            {images.LocalRegistry{}, "localhost:5555/team", "localhost:5555/team"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.local.PullName(c.registry); got != c.pull {
				t.Errorf("%+v %s: %s, want %s", c.local, c.registry, got, c.pull)
			}
		})
	}
	for registry, local := range map[string]bool{"localhost:5555/x": true, "127.0.0.1:5000": true, "[::1]:5000/x": true, "localhost": true, "10.0.0.1:5000": false, "": false, "team": false} {
		if images.MayBeLocal(registry) != local {
			t.Errorf("%s: %t", registry, !local)
		}
	}
}

func TestF26ParseLocalRegistry(t *testing.T) {
	for text, want := range map[string]images.LocalRegistry{
		"host: \"localhost:5001\"\nhelp: https://kind.sigs.k8s.io\n":                             {Host: "localhost:5001"},
		"host: localhost:5001\nhostFromContainerRuntime: r:5000\nhostFromClusterNetwork: r:5000": {Host: "localhost:5001", FromRuntime: "r:5000"},
		"": {},
	} {
		got, err := images.ParseLocalRegistry(map[string]string{"localRegistryHosting.v1": text})
		if err != nil || got != want {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
	if got, err := images.ParseLocalRegistry(map[string]string{"localRegistryHosting.v9": "host: x"}); err != nil || got != (images.LocalRegistry{}) {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := images.ParseLocalRegistry(map[string]string{"localRegistryHosting.v1": "host: [a"}); err == nil || !strings.Contains(err.Error(), "kube-public/local-registry-hosting") {
		t.Errorf("%v", err)
	}
}

// TestF26PushAndPullNames: pushed by one name, and recorded by the one that nodes know, which then saves everything.
func TestF26PushAndPullNames(t *testing.T) {
	at := host(t, nil)
	dir := folder(t, "default", holdFiles())
	request := images.Request{
		Instance: "fx", Registry: at + "/team", Context: "kind-dev", Kind: "dev", Platforms: []string{"linux/amd64"},
		Contexts: []images.Context{{Key: images.DefaultKey, Dir: dir}},
		Local:    images.LocalRegistry{Host: at, FromRuntime: "kind-registry:5000"},
	}
	d, err := images.Plan(t.Context(), request)
	must(t, err)
	b := &pusher{children: []child{amd64("7")}}
	got, _, err := deliver(t, d, b, images.Options{})
	must(t, err)
	one := got["default"]
	if want := strings.Replace(d.Images[0].Ref, at, "kind-registry:5000", 1); one.Ref != want || b.requests[0].Ref != d.Images[0].Ref || one.Digest == "" {
		t.Errorf("delivered %+v, pushed as %s, want %s", one, b.requests[0].Ref, want)
	}
	found, _, err := deliver(t, d, nil, images.Options{}) // without the record
	must(t, err)
	if found["default"] != one {
		t.Errorf("found %+v, delivered %+v", found, one)
	}
	record := images.Record{}.With(got)
	request.Previous = &record
	again, err := images.Plan(t.Context(), request)
	must(t, err)
	if again.Needed() || again.Images[0].PullRef() != one.Ref {
		t.Errorf("%+v", again.Images[0])
	}
	request.Local.FromRuntime = "" // nodes know it by our name now
	if moved, err := images.Plan(t.Context(), request); err != nil || !moved.Needed() {
		t.Errorf("%+v %v", moved, err)
	}
}
