package jr2_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestImportsFlowOneWay lists what each package may import of this module. A new arrow is a decision: draw it here, or look for the
// missing noun. Tests are free.
func TestImportsFlowOneWay(t *testing.T) {
	allowed := map[string]string{
		".":                            "apply config images internal/assembly internal/clip internal/event internal/holder internal/names internal/narrate internal/occupants internal/patient internal/pki internal/render internal/seed internal/sshkey placement placement/controller placement/provision placement/v1alpha1 placement/warm platforms preflight",
		"config":                       "internal/seed",
		"platforms":                    "config internal/seed",
		"placement":                    "config internal/seed",
		"placement/v1alpha1":           "",
		"placement/controller":         "placement placement/quota placement/v1alpha1 internal/names",
		"placement/provision":          "config placement placement/quota placement/v1alpha1 internal/names internal/patient internal/render",
		"placement/quota":              "",
		"placement/warm":               "internal/names placement",
		"images":                       "config placement platforms internal/seed",
		"apply":                        "internal/clip internal/occupants placement/quota",
		"preflight":                    "config placement placement/quota platforms internal/holder internal/names internal/seed",
		"internal/seed":                "",
		"internal/patient":             "",
		"internal/event":               "",
		"internal/names":               "",
		"internal/holder":              "",
		"internal/narrate":             "internal/event internal/seed",
		"internal/pki":                 "",
		"internal/sshkey":              "config",
		"internal/render":              "config placement/v1alpha1 internal/names internal/pki internal/seed",
		"internal/occupants":           "",
		"internal/operatorimage":       "",
		"internal/assembly":            "config internal/clip internal/names",
		"internal/clip":                "",
		"internal/devcluster":          "internal/devcluster/build internal/devcluster/filelock",
		"internal/devcluster/build":    "internal/devcluster/filelock",
		"internal/devcluster/filelock": "",
		"internal/devcluster/cmd":      "internal/devcluster",
		"internal/kindnodes":           "internal/devcluster internal/devcluster/build",
		"examples/operator":            "placement/controller",
		"examples/jr2":                 ". apply config images placement placement/controller placement/provision placement/v1alpha1 placement/warm platforms preflight internal/devcluster",
	}
	for _, line := range golist(t, "{{.ImportPath}} {{join .Imports \" \"}}", "./...") {
		fields := strings.Fields(line)
		pkg := local(fields[0])
		may, known := allowed[pkg]
		if !known {
			t.Errorf("package %s is new: say here what it may import", pkg)
			continue
		}
		for _, imported := range fields[1:] {
			if inModule(imported) && !slices.Contains(strings.Fields(may), local(imported)) {
				t.Errorf("package %s imports %s, which it may not", pkg, local(imported))
			}
		}
	}
}

// TestPurePackagesHaveNoTransport keeps clients and builders out of the packages that only think.
func TestPurePackagesHaveNoTransport(t *testing.T) {
	for _, pkg := range []string{"config", "platforms", "placement", "placement/warm", "internal/render", "internal/narrate"} {
		for _, dependency := range golist(t, "{{.ImportPath}}", "-deps", "./"+pkg) {
			for _, transport := range []string{"k8s.io/client-go/rest", "k8s.io/client-go/transport", "github.com/moby/buildkit/client", "github.com/google/go-containerregistry/pkg/v1/remote"} {
				if dependency == transport {
					t.Errorf("package %s depends on %s", pkg, transport)
				}
			}
		}
	}
}

const module = "jr2.dev/jr2"

func inModule(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

func local(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

func golist(t *testing.T, format string, args ...string) []string {
	t.Helper()
	command := exec.Command("go", append([]string{"list", "-f", format}, args...)...)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
