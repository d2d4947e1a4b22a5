package images_test

import (
	"archive/tar"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/platforms"
)

const (
	user     = "builder"
	password = "correct horse"
)

// A bench is a real builder and a real registry with TLS and a login.
type bench struct {
	builder  *images.BuildKit
	registry *devcluster.Registry
	base     string // a base image with a shell, for amd64 and, when there is an executable for it, arm64
	arm64    bool
	asked    asked
}

func newBench(t *testing.T) *bench {
	t.Helper()
	release, err := devcluster.HoldBinfmt(t.Context()) // what the machine emulates must not change under these tests
	must(t, err)
	t.Cleanup(release)
	b := &bench{arm64: true}
	reg, err := devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{User: user, Password: password, TLS: true, OnRequest: b.asked.see})
	must(t, err)
	t.Cleanup(func() { must(t, reg.Close()) })
	b.registry = reg
	index, err := devcluster.BusyboxIndex("amd64", "arm64")
	if errors.Is(err, devcluster.ErrNoBusybox) {
		b.arm64 = false
		index, err = devcluster.BusyboxIndex("amd64")
	}
	skipWithout(t, err, devcluster.ErrNoBusybox)
	base, err := reg.Reference("base/busybox:1")
	must(t, err)
	b.base = base.String()
	must(t, remote.WriteIndex(base, index, reg.RemoteOptions(t.Context())...))
	b.addBases(t)
	options := devcluster.BuildkitOptions{Log: func(line string) { t.Log(line) }}
	options.TrustRegistry(reg)
	b.builder = startBuilder(t, options)
	return b
}

func startBuilder(t *testing.T, options devcluster.BuildkitOptions) *images.BuildKit {
	t.Helper()
	daemon, err := devcluster.StartBuildkitd(t.Context(), options)
	skipWithout(t, err, devcluster.ErrNoBuildkit)
	t.Cleanup(func() { must(t, daemon.Close()) })
	builder, err := images.Connect(t.Context(), images.ConnectOptions{Address: daemon.Address})
	must(t, err)
	t.Cleanup(func() { must(t, builder.Close()) })
	return builder
}

func skipWithout(t *testing.T, err, missing error) {
	t.Helper()
	if errors.Is(err, missing) {
		devcluster.Missing(t, err.Error())
	}
	must(t, err)
}

func (b *bench) decide(t *testing.T, name string, files map[string]string, set ...string) *images.Decision {
	t.Helper()
	d, err := images.Plan(t.Context(), b.request(folder(t, name, files), set...))
	must(t, err)
	return d
}

func (b *bench) request(dir string, set ...string) images.Request {
	return images.Request{
		Instance: "fx", Registry: b.registry.Host + "/team", Context: "prod", Platforms: set,
		Contexts: []images.Context{{Key: images.DefaultKey, Dir: dir}},
	}
}

func (b *bench) options(login authn.Keychain) images.Options {
	if login == nil {
		login = fixed{Username: user, Password: password}
	}
	return images.Options{Keychain: login, Transport: b.registry.Transport()}
}

// deliver also returns the events, in order.
func (b *bench) deliver(t *testing.T, builder images.Builder, d *images.Decision, opts images.Options) (map[string]images.Delivered, []images.Event, error) {
	t.Helper()
	var events []images.Event
	opts.Events = func(e images.Event) { events = append(events, e) }
	got, err := images.Deliver(t.Context(), d, func(context.Context) (images.Builder, error) { return builder, nil }, opts)
	return got, events, err
}

// absent says that the registry holds no manifest for the first image of d.
func (b *bench) absent(t *testing.T, d *images.Decision) {
	t.Helper()
	ref, err := b.registry.Reference(strings.TrimPrefix(d.Images[0].Ref, b.registry.Host+"/"))
	must(t, err)
	_, err = remote.Head(ref, b.registry.RemoteOptions(t.Context())...)
	var status *transport.Error
	if !errors.As(err, &status) || status.StatusCode != http.StatusNotFound {
		t.Errorf("%s was pushed: %v", ref, err)
	}
}

func kinds(events []images.Event) []string {
	var out []string
	for _, e := range events {
		switch e.(type) {
		case images.Step, images.Log, images.Warning:
		default:
			out = append(out, strings.TrimPrefix(fmt.Sprintf("%T", e), "images."))
		}
	}
	return out
}

func logs(events []images.Event) []string {
	var out []string
	for _, e := range events {
		if l, ok := e.(images.Log); ok {
			out = append(out, l.Line)
		}
	}
	return out
}

// willing is a builder without an opinion about platforms: a build without RUN steps needs no emulation.
type willing struct{ images.Builder }

func (willing) Platforms(context.Context) ([]string, error) { return nil, nil }

func TestBuildKit(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, *bench)
	}{
		{"emulation", testEmulation}, // first: a builder that has once seen an interpreter goes on to offer its platform
		{"one platform", testOnePlatform},
		{"no USER", testNoUser},
		{"ignore file", testIgnoreFile},
		{"odd entries", testOddEntries},
		{"bases", testF27Bases},
		{"wrong password", testWrongPassword},
		{"failed step", testFailedStep},
		{"bad Dockerfile", testBadDockerfile},
		{"cancel", testCancel},
		{"pinned last stage", testPinnedLastStage},
		{"USERs differ", testUsersDiffer},
		{"warning", testWarning},
		{"changes while it builds", testChange},
		{"two platforms", testTwoPlatforms},
		{"a builder for each platform", testNatives},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, b) })
	}
}

func testOnePlatform(t *testing.T, b *bench) {
	files := map[string]string{"Dockerfile": "FROM " + b.base + "\nCOPY hello /hello\nRUN cat /hello && echo built > /built\nUSER 1200\n", "hello": "good morning\n"}
	d := b.decide(t, "toolbox", files, "linux/amd64")
	got, events, err := b.deliver(t, b.builder, d, b.options(nil))
	must(t, err)
	one := got["default"]
	if one.User != "1200" || one.Ref != d.Images[0].Ref || !strings.HasSuffix(one.Ref, "-amd64") {
		t.Errorf("%+v", one)
	}
	if want := []string{"Chosen", "Building", "User", "Pushed"}; !reflect.DeepEqual(kinds(events), want) {
		t.Errorf("events %v", kinds(events))
	}
	if !slices.Contains(logs(events), "good morning") {
		t.Errorf("log lines %q", logs(events))
	}
	if pushed := events[len(events)-1].(images.Pushed); pushed.Registry != b.registry.Host+"/team" || pushed.Digest != one.Digest {
		t.Errorf("%+v", pushed)
	}
	b.checkSingle(t, one)

	// The record of it saves everything; without it the registry proves it; forced it is built again to the same digest.
	record := images.Record{}.With(got)
	req := b.request(d.Images[0].Dir, "linux/amd64")
	req.Previous = &record
	again, err := images.Plan(t.Context(), req)
	must(t, err)
	if again.Needed() || again.Images[0].User != "1200" {
		t.Errorf("not fresh: %+v", again.Images[0])
	}
	found, events, err := b.deliver(t, nil, d, b.options(nil))
	must(t, err)
	if found["default"] != one || !reflect.DeepEqual(kinds(events), []string{"Fresh"}) {
		t.Errorf("%+v %v", found, kinds(events))
	}
	d.Force = true
	forced, events, err := b.deliver(t, b.builder, d, b.options(nil))
	must(t, err)
	if forced["default"] != one || !reflect.DeepEqual(kinds(events), []string{"Chosen", "Building", "User", "Pushed"}) {
		t.Errorf("%+v %v, first %+v", forced, kinds(events), one)
	}
}

// checkSingle says that the ref names a plain manifest, without attestations, with our labels.
func (b *bench) checkSingle(t *testing.T, one images.Delivered) {
	t.Helper()
	ref, err := b.registry.Reference(strings.TrimPrefix(one.Ref, b.registry.Host+"/"))
	must(t, err)
	desc, err := remote.Get(ref, b.registry.RemoteOptions(t.Context())...)
	must(t, err)
	if desc.MediaType != "application/vnd.oci.image.manifest.v1+json" || desc.Digest.String() != one.Digest {
		t.Errorf("%s %s, want a manifest %s", desc.MediaType, desc.Digest, one.Digest)
	}
	image, err := desc.Image()
	must(t, err)
	config, err := image.ConfigFile()
	must(t, err)
	if labels := config.Config.Labels; labels[images.LabelKind] != images.KindSandbox || labels[images.LabelInstance] != "fx" {
		t.Errorf("labels %v", labels)
	}
}

func testNoUser(t *testing.T, b *bench) {
	got, events, err := b.deliver(t, b.builder, b.decide(t, "plain", map[string]string{"Dockerfile": "FROM scratch\nCOPY Dockerfile /\n"}, "linux/amd64"), b.options(nil))
	must(t, err)
	if got["default"].User != "" || !reflect.DeepEqual(kinds(events), []string{"Chosen", "Building", "NoUser", "Pushed"}) {
		t.Errorf("%+v %v", got, kinds(events))
	}
}

func testWrongPassword(t *testing.T, b *bench) {
	wrong := b.options(fixed{Username: user, Password: "battery staple"})
	d := b.decide(t, "locked", map[string]string{"Dockerfile": "FROM scratch\nCOPY Dockerfile /locked\n"}, "linux/amd64")
	got, events, err := b.deliver(t, b.builder, d, wrong)
	var refused *images.RegistryError
	if !errors.As(err, &refused) || !refused.Unauthorized || refused.Host != b.registry.Host || len(got) != 0 || len(events) != 0 {
		t.Errorf("%v %v %v", got, events, err)
	}
	if strings.Contains(err.Error(), "battery") || strings.Count(err.Error(), "\n") > 0 || !strings.Contains(err.Error(), d.Images[0].Ref) {
		t.Errorf("message: %v", err)
	}
	// A forced build does not ask what the registry holds; whether it takes the image is asked all the same.
	d.Force = true
	got, events, err = b.deliver(t, b.builder, d, wrong)
	if !errors.As(err, &refused) || !refused.Unauthorized || !refused.Push || len(got) != 0 || len(events) != 0 || strings.Contains(err.Error(), "battery") {
		t.Errorf("%v %v %v", got, events, err)
	}
	b.absent(t, d)
}

func testFailedStep(t *testing.T, b *bench) {
	d := b.decide(t, "broken", map[string]string{"Dockerfile": "FROM " + b.base + "\nRUN true\n\nRUN echo out of luck && echo really >&2 && false\n"}, "linux/amd64")
	got, events, err := b.deliver(t, b.builder, d, b.options(nil))
	var failed *images.BuildError
	if !errors.As(err, &failed) || len(got) != 0 {
		t.Fatalf("%v %v", got, err)
	}
	if len(failed.Sources) == 0 || failed.Sources[0].File != "Dockerfile" || failed.Sources[0].Line != 4 || !strings.HasPrefix(failed.Sources[0].Text, "RUN echo out") {
		t.Errorf("sources %+v", failed.Sources)
	}
	if !slices.Contains(failed.Log, "out of luck") || !slices.Contains(failed.Log, "really") {
		t.Errorf("log %q", failed.Log)
	}
	for _, part := range []string{`sandbox image "broken"`, d.Images[0].Dir, "exit code: 1", "Dockerfile:4: RUN echo out of luck", "| out of luck"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no %q in: %v", part, err)
		}
	}
	if !slices.ContainsFunc(events, func(e images.Event) bool { s, ok := e.(images.Step); return ok && s.Err != "" }) {
		t.Error("no step says that it failed")
	}
	b.absent(t, d)
}

func testBadDockerfile(t *testing.T, b *bench) {
	for dockerfile, part := range map[string]string{
		"FROM scratch\nCOPPY a b\n":                  "Dockerfile:2: COPPY a b",
		"FROM scratch\nCOPY missing /\n":             "Dockerfile:2: COPY missing /",
		"FROM " + b.registry.Host + "/base/none:1\n": "Dockerfile:1: FROM",
		"": "Dockerfile",
	} {
		files := map[string]string{"Dockerfile": dockerfile}
		if dockerfile == "" {
			files = map[string]string{"README": "no Dockerfile"}
		}
		_, _, err := b.deliver(t, b.builder, b.decide(t, "bad", files, "linux/amd64"), b.options(nil))
		var failed *images.BuildError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v", dockerfile, err)
		}
	}
}

func testCancel(t *testing.T, b *bench) {
	d := b.decide(t, "slow", map[string]string{"Dockerfile": "FROM " + b.base + "\nRUN echo now && sleep 600\n"}, "linux/amd64")
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	var mu sync.Mutex
	returned, late := false, false
	opts := b.options(nil)
	opts.Events = func(e images.Event) {
		mu.Lock()
		defer mu.Unlock()
		late = late || returned
		if l, ok := e.(images.Log); ok && l.Line == "now" {
			cancel(enough)
		}
	}
	start := time.Now()
	got, err := images.Deliver(ctx, d, func(context.Context) (images.Builder, error) { return b.builder, nil }, opts)
	mu.Lock()
	returned = true
	mu.Unlock()
	if !errors.Is(err, enough) || len(got) != 0 || time.Since(start) > time.Minute {
		t.Errorf("after %s: %v %v", time.Since(start), got, err)
	}
	b.absent(t, d)
	mu.Lock()
	defer mu.Unlock()
	if late {
		t.Error("an event came after the return")
	}
}

func testPinnedLastStage(t *testing.T, b *bench) {
	if !b.arm64 {
		devcluster.Missing(t, "no busybox for arm64")
	}
	plain, err := b.registry.Reference("base/plain:1") // a tag that is one amd64 manifest, not a list
	must(t, err)
	image, err := devcluster.BusyboxImage("amd64")
	must(t, err)
	must(t, remote.Write(plain, image, b.registry.RemoteOptions(t.Context())...))
	cases := []struct {
		name, dockerfile string
		ok               bool
	}{
		{"last stage on the build platform", "FROM --platform=$BUILDPLATFORM " + b.base + " AS out\nCOPY Dockerfile /\n", false},
		{"stage below it on the build platform", "FROM --platform=$BUILDPLATFORM " + b.base + " AS out\nFROM out\nCOPY Dockerfile /\n", false},
		{"base for one platform", "FROM " + plain.String() + "\nCOPY Dockerfile /\n", false},
		{"helper stage on the build platform", "FROM --platform=$BUILDPLATFORM " + b.base + " AS help\nRUN echo x > /x\nFROM " + b.base + "\nCOPY --from=help /x /x\n", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := b.decide(t, "pinned", map[string]string{"Dockerfile": c.dockerfile}, "linux/amd64", "linux/arm64")
			got, _, err := b.deliver(t, willing{b.builder}, d, b.options(nil))
			if c.ok {
				must(t, err)
				return
			}
			var wrong *images.PlatformError
			if !errors.As(err, &wrong) || !wrong.Base || wrong.Wrong["linux/arm64"] != "linux/amd64" || len(got) != 0 {
				t.Errorf("%v %v", got, err)
			}
			b.absent(t, d)
		})
	}
}

func testUsersDiffer(t *testing.T, b *bench) {
	d := b.decide(t, "users", map[string]string{"Dockerfile": "FROM scratch\nARG TARGETARCH\nCOPY Dockerfile /\nUSER $TARGETARCH\n"}, "linux/amd64", "linux/arm64")
	_, _, err := b.deliver(t, willing{b.builder}, d, b.options(nil))
	var differ *images.UserError
	if !errors.As(err, &differ) || !reflect.DeepEqual(differ.Users, map[string]string{"linux/amd64": "amd64", "linux/arm64": "arm64"}) {
		t.Errorf("%v", err)
	}
	b.absent(t, d)
}

func testWarning(t *testing.T, b *bench) {
	_, events, err := b.deliver(t, b.builder, b.decide(t, "remark", map[string]string{"Dockerfile": "FROM scratch\nMAINTAINER nobody\nCOPY Dockerfile /\n"}, "linux/amd64"), b.options(nil))
	must(t, err)
	if !slices.ContainsFunc(events, func(e images.Event) bool {
		w, ok := e.(images.Warning)
		return ok && w.File == "Dockerfile" && w.Line == 2 && strings.Contains(w.Text, "MAINTAINER") || ok && strings.Contains(w.Text, "Maintainer")
	}) {
		t.Errorf("no warning: %v", events)
	}
}

func testTwoPlatforms(t *testing.T, b *bench) {
	if !b.arm64 {
		devcluster.Missing(t, "no busybox for arm64")
	}
	unregister, err := devcluster.RegisterBinfmt("arm64")
	skipWithout(t, err, devcluster.ErrNoBinfmt)
	t.Cleanup(func() { must(t, unregister()) })
	waitFor(t, b.builder, "linux/arm64")
	d := b.decide(t, "both", map[string]string{"Dockerfile": "FROM " + b.base + "\nRUN uname -m && uname -m > /machine\nUSER 1200:1200\n"}, "linux/arm64", "linux/amd64")
	got, events, err := b.deliver(t, b.builder, d, b.options(nil))
	must(t, err)
	if !slices.Contains(logs(events), "aarch64") || !slices.Contains(logs(events), "x86_64") {
		t.Errorf("log lines %q", logs(events))
	}
	one := got["default"]
	if one.User != "1200:1200" || !strings.HasSuffix(one.Ref, "-amd64-arm64") {
		t.Errorf("%+v", one)
	}
	b.checkIndex(t, one)
}

// checkIndex says that the ref names an OCI index of two images and nothing else, each with a configuration and files for the platform of its
// descriptor.
func (b *bench) checkIndex(t *testing.T, one images.Delivered) {
	t.Helper()
	ref, err := b.registry.Reference(strings.TrimPrefix(one.Ref, b.registry.Host+"/"))
	must(t, err)
	index, err := remote.Index(ref, b.registry.RemoteOptions(t.Context())...)
	must(t, err)
	manifest, err := index.IndexManifest()
	must(t, err)
	digest, err := index.Digest()
	must(t, err)
	if found := platforms.FromIndex(manifest); len(manifest.Manifests) != 2 || !reflect.DeepEqual(found, []string{"linux/amd64", "linux/arm64"}) ||
		manifest.MediaType != "application/vnd.oci.image.index.v1+json" || digest.String() != one.Digest {
		t.Errorf("%s %s with %d entries, platforms %v; delivered %s", manifest.MediaType, digest, len(manifest.Manifests), found, one.Digest)
	}
	for _, entry := range manifest.Manifests {
		image, err := index.Image(entry.Digest)
		must(t, err)
		config, err := image.ConfigFile()
		must(t, err)
		layers, err := image.Layers()
		must(t, err)
		files := filesOf(t, layers[len(layers)-1:])
		machine := map[string]string{"amd64": "x86_64\n", "arm64": "aarch64\n"}[entry.Platform.Architecture]
		if config.OS != entry.Platform.OS || config.Architecture != entry.Platform.Architecture || files["machine"] != machine || entry.MediaType != "application/vnd.oci.image.manifest.v1+json" {
			t.Errorf("%s: the descriptor says %s, the configuration %s/%s, a step wrote %q", entry.MediaType, entry.Platform, config.OS, config.Architecture, files["machine"])
		}
	}
}

// filesOf are the texts of the regular files in layers.
func filesOf(t *testing.T, layers []v1.Layer) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, layer := range layers {
		stream, err := layer.Uncompressed()
		must(t, err)
		for r := tar.NewReader(stream); ; {
			header, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			text, err := io.ReadAll(r)
			must(t, err)
			files[header.Name] = string(text)
		}
		must(t, stream.Close())
	}
	return files
}

func testEmulation(t *testing.T, b *bench) {
	offered, err := b.builder.Platforms(t.Context())
	must(t, err)
	if slices.Contains(offered, "linux/arm64") {
		t.Skip("this machine emulates arm64 already")
	}
	d := b.decide(t, "foreign", map[string]string{"Dockerfile": "FROM " + b.base + "\nRUN true\n"}, "linux/arm64")
	got, events, err := b.deliver(t, b.builder, d, b.options(nil))
	var emulation *platforms.EmulationError
	if !errors.As(err, &emulation) || len(got) != 0 || len(events) != 0 {
		t.Fatalf("%v %v %v", got, events, err)
	}
	if !strings.HasPrefix(err.Error(), "this host cannot build for linux/arm64: ") || !strings.HasSuffix(err.Error(), "\n  docker run --privileged --rm tonistiigi/binfmt --install arm64") {
		t.Errorf("message: %v", err)
	}
}

// waitFor waits until the builder offers a platform: it looks again about once a second.
func waitFor(t *testing.T, b images.Builder, platform string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		list, err := b.Platforms(t.Context())
		must(t, err)
		if slices.Contains(list, platform) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the builder offers %v and not %s", list, platform)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func testChange(t *testing.T, b *bench) {
	d := b.decide(t, "moving", map[string]string{"Dockerfile": "FROM scratch\nCOPY . /\n"}, "linux/amd64")
	opts := b.options(nil)
	opts.Events = func(e images.Event) {
		if _, ok := e.(images.Building); ok {
			write(t, d.Images[0].Dir+"/new", "x")
		}
	}
	_, err := images.Deliver(t.Context(), d, func(context.Context) (images.Builder, error) { return b.builder, nil }, opts)
	var changed *images.ChangedError
	if !errors.As(err, &changed) {
		t.Errorf("%v", err)
	}
	b.absent(t, d)
}

// Most registries hand out tokens: the builder then asks us for one, and the password stays here.
func TestBuildKitPushesWithToken(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	reg, err := devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{Wrap: tokens(func(what string) {
		mu.Lock()
		defer mu.Unlock()
		seen[what]++
	})})
	must(t, err)
	t.Cleanup(func() { must(t, reg.Close()) })
	options := devcluster.BuildkitOptions{}
	options.TrustRegistry(reg)
	b := &bench{builder: startBuilder(t, options), registry: reg}
	d := b.decide(t, "plain", map[string]string{"Dockerfile": "FROM scratch\nCOPY Dockerfile /\n"}, "linux/amd64")
	got, _, err := b.deliver(t, b.builder, d, b.options(nil))
	must(t, err)
	mu.Lock()
	defer mu.Unlock()
	if got["default"].Digest == "" || seen["jr2"] == 0 || seen["buildkit"] != 0 || seen["basic to registry"] != 0 {
		t.Errorf("%+v, seen %v", got, seen)
	}
}

// tokens lets into a registry with a bearer token, which it hands out for the password. It tells who asked for one.
func tokens(saw func(string)) func(http.Handler) http.Handler {
	const token = "a-token"
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/token" {
				name, secret, _ := r.BasicAuth()
				if r.Method == http.MethodPost {
					name, secret = r.PostFormValue("username"), r.PostFormValue("password")
				}
				who := "jr2"
				if strings.Contains(r.UserAgent(), "buildkit") {
					who = "buildkit"
				}
				saw(who)
				if name != user || secret != password {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				json.NewEncoder(w).Encode(map[string]any{"token": token, "access_token": token, "expires_in": 300}) //nolint:errcheck // a test
				return
			}
			if strings.HasPrefix(r.Header.Get("Authorization"), "Basic ") {
				saw("basic to registry")
			}
			if r.Header.Get("Authorization") != "Bearer "+token {
				w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="test",scope="repository:x:pull"`, r.Host))
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// The login of docker's own configuration is found without any option.
func TestDefaultKeychain(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("DOCKER_CONFIG", dir)
	at := host(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if name, secret, _ := r.BasicAuth(); name != user || secret != password {
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	login := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	write(t, dir+"/config.json", fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, at, login))
	d := decide(t, at, "linux/amd64")
	_, err := images.Deliver(t.Context(), d, func(context.Context) (images.Builder, error) { return &pusher{children: []child{amd64("")}}, nil }, images.Options{})
	must(t, err)
}
