package images_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
)

// native is a builder that offers one platform, as one on a machine of that kind does, and keeps what it was asked to build.
type native struct {
	images.Builder
	platform string
	asked    []images.BuildRequest
}

func (n *native) Platforms(context.Context) ([]string, error) { return []string{n.platform}, nil }

func (n *native) Build(ctx context.Context, req images.BuildRequest) (images.BuildResult, error) {
	n.asked = append(n.asked, req)
	return n.Builder.Build(ctx, req)
}

// testNatives: two real builders make one list, each its own platform, and neither pushes the tag.
func testNatives(t *testing.T, b *bench) {
	if !b.arm64 {
		devcluster.Missing(t, "no busybox for arm64")
	}
	options := devcluster.BuildkitOptions{Log: func(line string) { t.Log(line) }}
	options.TrustRegistry(b.registry)
	other := startBuilder(t, options)
	unregister, err := devcluster.RegisterBinfmt("arm64") // no machine for arm64 is at hand
	skipWithout(t, err, devcluster.ErrNoBinfmt)
	t.Cleanup(func() { must(t, unregister()) })
	waitFor(t, other, "linux/arm64")
	amd, arm := &native{Builder: b.builder, platform: "linux/amd64"}, &native{Builder: other, platform: "linux/arm64"}
	natives := images.Natives{"linux/amd64": amd, "linux/arm64/v8": arm}

	d := b.decide(t, "natives", map[string]string{"Dockerfile": "FROM " + b.base + "\nRUN uname -m && uname -m > /machine && echo of its own\nUSER 1200:1200\n"}, "linux/arm64", "linux/amd64")
	got, events, err := b.deliver(t, natives, d, b.options(nil))
	must(t, err)
	if want := []string{"Chosen", "Building", "User", "Pushed"}; !reflect.DeepEqual(kinds(events), want) {
		t.Errorf("events %v", kinds(events))
	}
	if chosen := events[0].(images.Chosen).Builder; chosen != "linux/amd64 by a builder, linux/arm64/v8 by a builder" {
		t.Errorf("chosen: %s", chosen)
	}
	if !slices.Contains(logs(events), "aarch64") || !slices.Contains(logs(events), "x86_64") {
		t.Errorf("log lines %q", logs(events))
	}
	if got["default"].User != "1200:1200" {
		t.Errorf("%+v", got)
	}
	b.checkIndex(t, got["default"])
	if tags := b.asked.written("team/jr2-sandbox-fx-natives"); len(tags) != 1 || !strings.HasSuffix(got["default"].Ref, tags[0]) {
		t.Errorf("the tags %q were written", tags)
	}
	for _, n := range []*native{amd, arm} {
		if len(n.asked) != 1 || !slices.Equal(n.asked[0].Platforms, []string{n.platform}) || !n.asked[0].ByDigest {
			t.Errorf("%s was asked %+v", n.platform, n.asked)
		}
	}
	for name, dockerfile := range map[string]string{
		"USERs differ":  "FROM scratch\nARG TARGETARCH\nCOPY Dockerfile /\nUSER $TARGETARCH\n",
		"one can't":     "FROM " + b.base + "\nARG TARGETARCH\nRUN test $TARGETARCH = arm64 || sleep 600; false\n",
		"a bad address": "FROM " + b.registry.Host + "/base/none:1\n",
	} {
		d := b.decide(t, "natives", map[string]string{"Dockerfile": dockerfile}, "linux/arm64", "linux/amd64")
		got, _, err := b.deliver(t, natives, d, b.options(nil))
		var differ *images.UserError
		var failed *images.BuildError
		if len(got) != 0 || !errors.As(err, &failed) && !errors.As(err, &differ) || errors.As(err, &differ) != (name == "USERs differ") {
			t.Errorf("%s: %v %v", name, got, err)
		}
		b.absent(t, d)
	}
}

// byDigest is a Builder that pushes what it is given without a tag, in two ways that are no real builder's.
type byDigest struct {
	pusher
	quiet bool // it does not ask before it pushes
}

func (b *byDigest) Build(ctx context.Context, req images.BuildRequest) (images.BuildResult, error) {
	before := req.BeforePush
	if b.quiet {
		req.BeforePush = func(context.Context, []images.Built) error { return nil }
	} else {
		b.built = nil
		for _, platform := range req.Platforms {
			b.built = append(b.built, images.Built{Platform: platform, User: "7"})
		}
		req.BeforePush = before
	}
	req.Ref = req.Ref[:strings.LastIndex(req.Ref, ":")] + ":untagged-" + strings.ReplaceAll(strings.Join(req.Platforms, "-"), "/", "-")
	return b.pusher.Build(ctx, req)
}

// TestNativesMeet: a list of lists, a builder that does not ask, one for all, and none for a platform.
func TestNativesMeet(t *testing.T) {
	t.Parallel()
	both := []string{"linux/amd64", "linux/arm64"}
	amd, arm := &byDigest{pusher: pusher{children: []child{amd64("7")}}}, &byDigest{pusher: pusher{children: []child{{os: "linux", arch: "arm64", user: "7"}}}}
	quiet := &byDigest{quiet: true, pusher: pusher{children: []child{arm64("7")}}}
	one := &pusher{children: []child{amd64("7"), arm64("7")}}
	stuck := errors.New("disk full")
	for name, c := range map[string]struct {
		natives images.Natives
		fails   string
	}{
		"a list and an image":   {images.Natives{"linux/amd64": amd, "linux/arm64": arm}, ""},
		"one that does not ask": {images.Natives{"linux/amd64": amd, "linux/arm64": quiet}, ""},
		"one for both":          {images.Natives{"linux/amd64": one, "linux/arm64": one}, ""},
		"one breaks":            {images.Natives{"linux/amd64": amd, "linux/arm64": &byDigest{pusher: pusher{err: stuck}}}, "disk full"},
		"none for a platform":   {images.Natives{"linux/amd64": amd}, "this host cannot build for linux/arm64"},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(t, host(t, nil), both...)
			got, _, err := deliver(t, d, c.natives, images.Options{})
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) || len(got) != 0 {
					t.Errorf("%v %v", got, err)
				}
				return
			}
			must(t, err)
			if got["default"].User != "7" || got["default"].Digest == "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A machine for each platform, and no emulation. Connect gives the builders.
func ExampleNatives() {
	var here, there images.Builder = &native{platform: "linux/amd64"}, &native{platform: "linux/arm64"}
	builder := images.Natives{"linux/amd64": here, "linux/arm64": there}
	fmt.Println(builder.Platforms(context.Background()))
	// Output: [linux/amd64 linux/arm64] <nil>
}
