package jr2_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"jr2.dev/jr2"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/preflight"
)

// nowhere converges a folder into a cluster that nobody serves: what ends before *jr2.UnreachableError asked no cluster, and changed none.
func nowhere(t *testing.T, files map[string]string, change func(*jr2.Options)) error {
	t.Helper()
	opts := jr2.Options{Dir: folder(t, files), Context: "nowhere", Config: &rest.Config{Host: "https://127.0.0.1:1"}}
	change(&opts)
	_, err := jr2.Converge(t.Context(), opts)
	if err == nil {
		t.Fatal("it converged")
	}
	return err
}

// TestK07BundledImageOff: a Workflow whose Workspace names an image that is turned off is refused before the cluster is asked, so that what
// runs there goes on. On again, or with another image turned off, the converge goes on to the cluster.
func TestK07BundledImageOff(t *testing.T) {
	t.Parallel()
	files := map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": withImage(t, "ghcr.io/acme/acme-sandbox-go:1.4.0")}
	release := images.Bundle{Home: "ghcr.io/acme", Prefix: "acme-sandbox-", Version: "1.4.0", Images: map[string]images.Bundled{"go": {}, "node": {}}}
	off := false
	for _, c := range []struct {
		settings map[string]images.Bundled
		refused  bool
	}{
		{nil, false},
		{map[string]images.Bundled{"node": {Enabled: &off}}, false},
		{map[string]images.Bundled{"go": {Enabled: &off}}, true},
		{map[string]images.Bundled{"go": {Enabled: &off, Image: "r.test/go:1"}}, true},
	} {
		bundle, err := release.With(c.settings)
		must(t, err)
		err = nowhere(t, files, func(o *jr2.Options) { o.Bundle = bundle })
		var unreachable *jr2.UnreachableError
		var refusal *jr2.Refusal
		if errors.As(err, &unreachable) == c.refused || errors.As(err, &refusal) != c.refused {
			t.Errorf("%v: %v", c.settings, err)
		}
		if c.refused && (len(refusal.Findings) != 1 || refusal.Findings[0].Code != preflight.CodeBundledImageOff || refusal.Findings[0].Object != "Workflow hold" ||
			!strings.HasPrefix(err.Error(), `refusing: workflow "hold": image "ghcr.io/acme/acme-sandbox-go:1.4.0": bundled image "go" is turned off`)) {
			t.Errorf("%+v", refusal.Findings)
		}
	}
}

// withImage is the Workflow hold whose Workspace names an image.
func withImage(t *testing.T, image string) string {
	t.Helper()
	text := hold("3Gi", "1")
	with := strings.Replace(text, "  repos: {", "  image: \""+image+"\",\n  repos: {", 1)
	if with == text {
		t.Fatalf("no Workspace in\n%s", text)
	}
	return with
}

// TestRegistryOptionsAreChecked: what can't be used is told before the cluster is asked.
func TestRegistryOptionsAreChecked(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(empty, []byte("no certificate\n"), 0o600))
	for want, change := range map[string]func(*jr2.Options){
		`registry mirror "team" of docker.io: it names no host`: func(o *jr2.Options) { o.RegistryMirrors = images.Mirrors{"docker.io": {"team"}} },
		empty + " holds no certificate in PEM form":             func(o *jr2.Options) { o.RegistryCA = []string{empty} },
		"/nowhere/ca.pem: no such file":                         func(o *jr2.Options) { o.RegistryCA = []string{"/nowhere/ca.pem"} },
		`bundled image "go" has no tag and no digest`: func(o *jr2.Options) {
			o.Bundle = images.Bundle{Home: "r.test", Version: "1", Images: map[string]images.Bundled{"go": {Image: "r.test/go"}}}
		},
	} {
		err := nowhere(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping}, change)
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestJ10KitRegistryWithoutHost: a prefix that means Docker Hub although it may not look so is told.
func TestJ10KitRegistryWithoutHost(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	for prefix, want := range map[string]string{"team/mirror": "\nwarning: kitRegistry \"team/mirror\" names no host, so it means docker.io/team/mirror\n", "localhost:5000/team": ""} {
		files := map[string]string{"jr2.config.ts": configOf(`kitRegistry: "` + prefix + `", harness: { envFrom: [{ secretRef: { name: "nowhere" } }] }`), "workflows/ping.ts": ping}
		told := w.up(t, folder(t, files), into("kit-registry"))
		if told.err == nil || !strings.Contains(told.lines, want) || strings.Contains(told.lines, "names no host") != (want != "") {
			t.Errorf("%s: %v\n%s", prefix, told.err, told.lines)
		}
		if !strings.Contains(told.lines, "pulled from "+prefix+" (kitRegistry)\n") {
			t.Errorf("%s:\n%s", prefix, told.lines)
		}
	}
}
