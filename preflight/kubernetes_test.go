package preflight_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"

	"jr2.dev/jr2/preflight"
)

// TestF14VersionSuffixes is case F14: a vendor's suffix is no prerelease, and a plus sign in the minor is the vendor's.
func TestF14VersionSuffixes(t *testing.T) {
	gke := version.Info{Major: "1", Minor: "29+", GitVersion: "v1.29.4-gke.1043002"}
	git := func(text string) version.Info { return version.Info{GitVersion: text} }
	for _, test := range []struct {
		server version.Info
		floor  string
		meets  bool
	}{
		{gke, "1.29.4", true},
		{gke, "1.29", true},
		{gke, "1.29.5", false},
		{gke, "1.30", false},
		{git("v1.30.2-eks-1552ad0"), "1.30", true},
		{git("v1.30.2-eks-1552ad0"), "1.30.2", true},
		{git("v1.30.2-eks-1552ad0"), "1.31", false},
		{git("v1.29.4+k3s1"), "1.29.4", true},
		{git("v1.29.4+k3s1"), "1.30", false},
		{git("v1.31.0-alpha.2"), "1.31", false},
		{git("v1.31.0-beta.0"), "1.31", false},
		{git("v1.31.0-rc.1"), "1.31", false},
		{git("v1.31.0-alpha.2"), "1.30", true},
		{git("v1.31.0-alpha.2"), "1.30.9", true},
		// The minor is empty, as some servers leave it; gitVersion says it.
		{version.Info{Major: "1", GitVersion: "v1.31.4"}, "1.31", true},
		// gitVersion is empty; major and minor say it.
		{version.Info{Major: "1", Minor: "29+"}, "1.29", true},
		{version.Info{Major: "1", Minor: "29+"}, "1.30", false},
		// The kubelet of a node that is one minor behind gives its version in the same form.
		{git("v1.34.6"), "1.35", false},
		{git("v1.35.1-gke.2000000"), "1.35", true},

		// Sibling: prereleases as they are built between two tags, of a patch, and in other spellings.
		{git("v1.31.0-alpha.2.35+4b1bd1c8e7bb4b"), "1.31", false},
		{git("v1.31.0-rc1"), "1.31", false},
		{git("v1.31.0-rc"), "1.31", false},
		{git("v1.31.1-rc.0"), "1.31", true},
		{git("v1.31.1-rc.0"), "1.31.1", false},
		{git("v2.0.0-alpha.1"), "1.35", true},
		// Sibling: suffixes that begin like a prerelease, or that hold one, and are none.
		{git("v1.31.0-rcloud.1"), "1.31", true},
		{git("v1.31.0-alphabet"), "1.31", true},
		{git("v1.31.0+rc.1"), "1.31", true},
		{git("v1.31.0-tke.3-rc.1"), "1.31", true},
		{git("v1.31.4-gke.2-dirty"), "1.31.4", true},
		{git("1.31.4"), "1.31", true},
		{git("v1.31"), "1.31", true},
		{git("v1.100.0"), "1.35", true},
	} {
		t.Run(test.server.GitVersion, func(t *testing.T) {
			got, err := preflight.MeetsFloor(&test.server, test.floor)
			if err != nil || got != test.meets {
				t.Errorf("%+v meets %s: got %v, %v; want %v", test.server, test.floor, got, err, test.meets)
			}
		})
	}
}

func TestMeetsFloorOfWhatCannotBeRead(t *testing.T) {
	for _, server := range []version.Info{
		{},
		{Major: "1"},
		{Minor: "36"},
		{Major: "1", Minor: "+"},
		{GitVersion: "v1"},
		{GitVersion: "unknown", Major: "1", Minor: "36"},
		{GitVersion: "v1.x"},
		{GitVersion: "v1.36rc1"},
		{GitVersion: "v1.36.0 or newer"},
		{GitVersion: "vv1.36.0"},
		{GitVersion: "v1..36"},
		{GitVersion: "v1.99999999999999999999"},
		{GitVersion: "<html>1.36</html>"},
	} {
		if meets, err := preflight.MeetsFloor(&server, "1.35"); err == nil || meets {
			t.Errorf("%+v: got %v, %v", server, meets, err)
		}
		findings, err := preflight.Floor("shared", &server)
		if err == nil || len(findings) > 0 || !strings.HasPrefix(err.Error(), "the version of shared: ") {
			t.Errorf("%+v: got %v, %v", server, findings, err)
		}
	}
	if _, err := preflight.MeetsFloor(&version.Info{GitVersion: "v1.36.0"}, "latest"); err == nil {
		t.Error("a floor that is no version was met or missed")
	}
}

func TestFloorPrintsTheVersionAsItIs(t *testing.T) {
	for _, text := range []string{"v1.29.4-gke.1043002", "v1.34.6", "v1.35.0-rc.1", "v1.34.9+k3s1"} {
		findings, err := preflight.Floor("shared", &version.Info{Major: "1", Minor: "29+", GitVersion: text})
		if err != nil || len(findings) != 1 {
			t.Errorf("%s: got %v, %v", text, findings, err)
			continue
		}
		found := findings[0]
		if found.Severity != preflight.Refuse || found.Code != preflight.CodeKubernetesFloor || found.Object != "cluster shared" ||
			!strings.HasPrefix(found.Message, "refusing: shared runs Kubernetes "+text+"; jr2 needs Kubernetes 1.35 or newer") || found.Fix == "" {
			t.Errorf("%s: got %+v", text, found)
		}
	}
	for _, text := range []string{"v1.35.0", "v1.36.1-eks-1552ad0"} {
		if findings, err := preflight.Floor("shared", &version.Info{GitVersion: text}); err != nil || findings != nil {
			t.Errorf("%s: got %v, %v", text, findings, err)
		}
	}
}
