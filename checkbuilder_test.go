package jr2_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jr2.dev/jr2"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

// mute is a builder that is there and does not say what it builds for.
type mute struct{ amd64Only }

func (mute) Platforms(context.Context) ([]string, error) { return nil, errors.New("it is busy") }

// Where an image is to be built, a check says what a converge would meet: that no builder is there, that the named one does not answer, and that it
// can't build for a platform. Nothing is started, and nothing is asked where nothing is to be built.
func TestCheckOfTheBuilder(t *testing.T) {
	w := theWorld(t, node("a"), node("b", arch("arm64")))
	files := map[string]string{"jr2.config.ts": configOf(`registry: "127.0.0.1:1/team"`), "workflows/hold.ts": hold("3Gi", "1"), "images/default/Dockerfile": "FROM scratch\n"}
	dir := folder(t, files)
	silent := filepath.Join(t.TempDir(), "s.sock")
	listener, err := net.Listen("unix", silent)
	must(t, err)
	t.Cleanup(func() { listener.Close() }) //nolint:errcheck // the end of the test
	both := []string{"linux/amd64", "linux/arm64"}
	for _, tt := range []struct {
		name           string
		change         func(*jr2.Options)
		code, says     string
		severity       preflight.Severity
		fix            string
		onlyWithoutOne bool // of a machine without a builder of its own
	}{
		{"none is there", func(o *jr2.Options) {
			o.Env["DOCKER_HOST"], o.Buildkit.Buildkitd = "unix:///nowhere/docker.sock", "/nowhere/buildkitd"
		}, preflight.CodeNoBuilder, "unix:///nowhere/docker.sock", preflight.Refuse, "start Docker or buildkitd, or set BUILDKIT_HOST to the address of one", true},
		{"the named one is not there", func(o *jr2.Options) { o.BuildkitHost = "tcp://127.0.0.1:1" },
			preflight.CodeBuilderUnreachable, "connection refused", preflight.Refuse, "start the builder, or correct BUILDKIT_HOST", false},
		{"it is slow", func(o *jr2.Options) { o.BuildkitHost, o.Buildkit.Timeout = "unix://"+silent, 300*time.Millisecond },
			preflight.CodeBuilderUnreachable, "no answer within 300ms", preflight.Warn, "start the builder, or correct BUILDKIT_HOST", false},
		{"one of several is not there", func(o *jr2.Options) {
			o.Natives = map[string]images.ConnectOptions{both[0]: {Address: "tcp://127.0.0.1:1"}, both[1]: {Address: "tcp://127.0.0.1:1"}}
		}, preflight.CodeBuilderUnreachable, "connection refused", preflight.Refuse, "start the builder, or correct the address for linux/amd64", false},
		{"it emulates nothing", func(o *jr2.Options) { o.Builder = amd64Only{t} },
			preflight.CodeEmulation, "cannot build for linux/arm64", preflight.Refuse, "docker run --privileged --rm tonistiigi/binfmt --install arm64", false},
		{"it does not say", func(o *jr2.Options) { o.Builder = mute{amd64Only{t}} }, preflight.CodeNotLookedAt, "it is busy", preflight.Note, "", false},
	} {
		began := time.Now()
		report := w.check(t, dir, preflight.Choice{}, into("check-builder"), tt.change)
		at := slices.IndexFunc(report.Findings, func(f preflight.Finding) bool { return f.Code == tt.code && strings.Contains(f.Message, tt.says) })
		if at < 0 && tt.onlyWithoutOne {
			t.Logf("%s: this machine has a builder of its own:\n%s", tt.name, report)
			continue
		}
		if at < 0 || report.Findings[at].Severity != tt.severity || report.Findings[at].Fix != tt.fix || time.Since(began) > time.Minute {
			t.Errorf("%s: got after %s\n%s", tt.name, time.Since(began), report)
		}
	}
	codes := []string{preflight.CodeNoBuilder, preflight.CodeBuilderUnreachable, preflight.CodeEmulation}
	nothing := folder(t, map[string]string{"jr2.config.ts": files["jr2.config.ts"], "workflows/hold.ts": hold("3Gi", "1")})
	report := w.check(t, nothing, preflight.Choice{Only: codes}, into("check-builder"), func(o *jr2.Options) { o.BuildkitHost = "tcp://127.0.0.1:1" })
	if slices.ContainsFunc(report.Findings, func(f preflight.Finding) bool { return slices.Contains(codes, f.Code) }) {
		t.Errorf("where nothing is to be built:\n%s", report)
	}
}

// A real builder that is there is no finding, and it builds nothing.
func TestCheckOfARealBuilder(t *testing.T) {
	t.Parallel()
	daemon, err := devcluster.StartBuildkitd(t.Context(), devcluster.BuildkitOptions{})
	if errors.Is(err, devcluster.ErrNoBuildkit) {
		devcluster.Missing(t, err.Error())
	}
	must(t, err)
	t.Cleanup(func() { must(t, daemon.Close()) })
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": configOf(`registry: "127.0.0.1:1/team"`), "workflows/hold.ts": hold("3Gi", "1"), "images/default/Dockerfile": "FROM nowhere.example.test/x\n"})
	named := func(o *jr2.Options) { o.BuildkitHost = daemon.Address }
	if report := w.check(t, dir, preflight.Choice{}, into("check-real-buildkitd"), named); strings.Contains(report.String(), "builder") {
		t.Errorf("got\n%s", report)
	}
	foreign := folder(t, map[string]string{"jr2.config.ts": configOf(`registry: "127.0.0.1:1/team", platforms: ["linux/amd64", "linux/arm64"]`), "workflows/hold.ts": hold("3Gi", "1"), "images/default/Dockerfile": "FROM nowhere.example.test/x\n"})
	offered, err := images.Find(t.Context(), images.ConnectOptions{Address: daemon.Address})
	must(t, err)
	want := ""
	if !slices.Contains(offered.Platforms, "linux/arm64") { // another test may have registered an emulator by now
		want = preflight.CodeEmulation
	}
	if got := refusing(w.check(t, foreign, preflight.Choice{}, into("check-real-buildkitd"), named)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
