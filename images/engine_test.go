package images_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
)

// newEngineBench is a bench whose builder is a real Docker Engine, which is found by DOCKER_HOST.
func newEngineBench(t *testing.T) *bench {
	t.Helper()
	release, err := devcluster.HoldBinfmt(t.Context())
	must(t, err)
	t.Cleanup(release)
	b := &bench{arm64: true}
	b.registry, err = devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{User: user, Password: password, OnRequest: b.asked.see})
	must(t, err)
	t.Cleanup(func() { must(t, b.registry.Close()) })
	engine, err := devcluster.StartDockerd(t.Context(), devcluster.DockerOptions{Reach: []string{b.registry.Host}, Log: func(line string) { t.Log(line) }})
	skipWithout(t, err, devcluster.ErrNoDocker)
	t.Cleanup(func() { must(t, engine.Close()) })
	index, err := devcluster.BusyboxIndex("amd64", "arm64")
	if errors.Is(err, devcluster.ErrNoBusybox) {
		b.arm64 = false
		index, err = devcluster.BusyboxIndex("amd64")
	}
	skipWithout(t, err, devcluster.ErrNoBusybox)
	base, err := b.registry.Reference("base/busybox:1")
	must(t, err)
	b.base = base.String()
	must(t, remote.WriteIndex(base, index, b.registry.RemoteOptions(t.Context())...))
	b.builder, err = images.Connect(t.Context(), images.ConnectOptions{Env: map[string]string{"DOCKER_HOST": engine.Host}})
	must(t, err)
	t.Cleanup(func() { must(t, b.builder.Close()) })
	if place := b.builder.Place(); place.Address != engine.Host || place.Why != "DOCKER_HOST is set" || !strings.HasPrefix(place.What, "Docker Engine 2") {
		t.Errorf("found %s", place)
	}
	return b
}

func TestDockerEngine(t *testing.T) {
	b := newEngineBench(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, *bench)
	}{
		{"one platform", testEngineOnePlatform},
		{"found by the docker context", testEngineContext},
		{"ignore file", testIgnoreFile},
		{"failures", testEngineFailures},
		{"wrong password", testWrongPassword},
		{"cancel", testCancel},
		{"USERs differ", testUsersDiffer},
		{"changes while it builds", testChange},
		{"two platforms", testTwoPlatforms},
		{"pinned last stage", testPinnedLastStage},
		{"kind", testKind},
		{"sweep", testEngineSweep}, // last: it removes what the others built
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, b) })
	}
}

// testEngineSweep removes what was built here, but for what is needed and for what is none of ours.
func testEngineSweep(t *testing.T, b *bench) {
	store, err := images.ConnectDocker(t.Context(), images.ConnectOptions{Env: map[string]string{"DOCKER_HOST": b.builder.Address()}})
	must(t, err)
	defer store.Close() //nolint:errcheck // the end of the test
	d := b.decide(t, "needed", map[string]string{"Dockerfile": "FROM " + b.base + "\nCOPY Dockerfile /needed\n"}, "linux/amd64")
	_, _, err = b.deliver(t, b.builder, d, b.options(nil))
	must(t, err)
	roots := &images.Roots{}
	roots.Add(d.Images[0].Ref)
	would, err := images.Sweep(t.Context(), store, roots, images.SweepOptions{DryRun: true})
	must(t, err)
	done, err := images.Sweep(t.Context(), store, roots, images.SweepOptions{})
	must(t, err)
	if len(done.Removed) < 3 || done.Bytes == 0 || !slices.Equal(would.Removed, done.Removed) || done.Kept != 1 {
		t.Errorf("would sweep %+v, swept %+v", would, done)
	}
	left, err := store.Built(t.Context())
	must(t, err)
	if len(left) != 1 || !slices.Equal(left[0].Tags, []string{d.Images[0].Ref}) {
		t.Errorf("left %+v", left)
	}
}

func testEngineOnePlatform(t *testing.T, b *bench) {
	d := b.decide(t, "toolbox", oneInstance(b.base), "linux/amd64")
	got, events, err := b.deliver(t, b.builder, d, b.options(nil))
	must(t, err)
	one := got["default"]
	if want := []string{"Chosen", "Building", "User", "Pushed"}; one.User != "1200" || !reflect.DeepEqual(kinds(events), want) {
		t.Errorf("%+v %v", one, kinds(events))
	}
	if chosen := events[0].(images.Chosen); !strings.HasSuffix(chosen.Builder, "(DOCKER_HOST is set)") {
		t.Errorf("%s", chosen.Builder)
	}
	if !slices.Contains(logs(events), "good morning") {
		t.Errorf("log lines %q", logs(events))
	}
	b.checkSingle(t, one)
	if in := b.content(t, one); in["work/hello"] == "" || in["built"] == "" || in["bin/busybox"] == "" {
		t.Errorf("the image holds %v", in)
	}
	found, events, err := b.deliver(t, nil, d, b.options(nil))
	must(t, err)
	if found["default"] != one || !reflect.DeepEqual(kinds(events), []string{"Fresh"}) {
		t.Errorf("%+v %v", found, kinds(events))
	}
}

// testEngineContext finds the engine as the docker command does: by the current context of its configuration.
func testEngineContext(t *testing.T, b *bench) {
	home := t.TempDir()
	id := sha256.Sum256([]byte("elsewhere"))
	write(t, filepath.Join(home, ".docker", "contexts", "meta", hex.EncodeToString(id[:]), "meta.json"),
		fmt.Sprintf(`{"Name":"elsewhere","Metadata":{},"Endpoints":{"docker":{"Host":%q,"SkipTLSVerify":false}}}`, b.builder.Address()))
	write(t, filepath.Join(home, ".docker", "config.json"), `{"currentContext":"elsewhere"}`)
	for env, why := range map[string]string{"": `docker context "elsewhere": the current docker context`, "elsewhere": `docker context "elsewhere": DOCKER_CONTEXT is set`} {
		found, err := images.Connect(t.Context(), images.ConnectOptions{Env: map[string]string{"HOME": home, "DOCKER_CONTEXT": env}})
		must(t, err)
		if found.Place().Why != why && !strings.HasPrefix(found.Place().What, "BuildKit") {
			t.Errorf("found %s", found.Place())
		}
		must(t, found.Close())
	}
	_, err := images.Connect(t.Context(), images.ConnectOptions{Buildkitd: "/nowhere", Env: map[string]string{"HOME": home, "DOCKER_CONTEXT": "missing"}})
	var none *images.NoBuilderError
	if !errors.As(err, &none) || !strings.Contains(err.Error(), `docker context "missing"`) {
		t.Errorf("%v", err)
	}
}

// testEngineFailures: an engine of 2020 tells less of the place.
func testEngineFailures(t *testing.T, b *bench) {
	for dockerfile, parts := range map[string][]string{
		"FROM scratch\nCOPPY a b\n":                            {"dockerfile parse error line 2: unknown instruction: COPPY", "Dockerfile:2: COPPY a b"},
		"FROM scratch\nCOPY missing /\n":                       {`"/missing" not found`, "in step [1/1] COPY missing /"},
		"FROM " + b.registry.Host + "/base/none:1\n":           {"base/none:1: not found"},
		"FROM " + b.base + "\nRUN echo out of luck && false\n": {"exit code: 1", "in step [2/2] RUN echo out of luck", "| out of luck"},
	} {
		d := b.decide(t, "bad", map[string]string{"Dockerfile": dockerfile}, "linux/amd64")
		_, _, err := b.deliver(t, b.builder, d, b.options(nil))
		var failed *images.BuildError
		if !errors.As(err, &failed) || strings.Contains(err.Error(), "rpc error") {
			t.Errorf("%q: %v", dockerfile, err)
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("no %q in: %v", part, err)
			}
		}
		b.absent(t, d)
	}
}
