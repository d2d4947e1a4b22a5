package preflight

import (
	"fmt"
	"regexp"

	apiversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"

	"jr2.dev/jr2/internal/seed"
)

// KubernetesFloor is the oldest release of Kubernetes that can host an Instance: each Sandbox mounts the runtime as an image
// volume (source: seed, "Check the cluster").
const KubernetesFloor = "1.35"

// Floor refuses a cluster older than KubernetesFloor. The context is the kubeconfig's name for the cluster. A version that cannot
// be read is an error, never a pass.
func Floor(context string, server *version.Info) ([]Finding, error) {
	meets, err := MeetsFloor(server, KubernetesFloor)
	if err != nil {
		return nil, fmt.Errorf("the version of %s: %w", context, err)
	}
	if meets {
		return nil, nil
	}
	return []Finding{{
		Severity: Refuse,
		Code:     CodeKubernetesFloor,
		Object:   "cluster " + context,
		Message:  fmt.Sprintf(seed.RefuseFloor, context, server.GitVersion, KubernetesFloor),
		Fix:      "upgrade the control plane to Kubernetes " + KubernetesFloor + " or newer",
	}}, nil
}

var (
	// Numbers with dots, then nothing or what a vendor or a prerelease adds.
	release    = regexp.MustCompile(`^(v?\d+(?:\.\d+)+)([-+].*)?$`)
	prerelease = regexp.MustCompile(`^-(alpha|beta|rc)([^a-z]|$)`)
	digits     = regexp.MustCompile(`^\d+`)
)

// MeetsFloor says whether a server is of the floor's release or a later one. A vendor's suffix ("-gke.1043002", "+k3s1") counts for
// nothing; an alpha, beta or release candidate comes before its release. Without gitVersion the major and minor are read, where a
// plus sign ("29+") is the vendor's.
func MeetsFloor(server *version.Info, floor string) (bool, error) {
	wanted, err := apiversion.ParseGeneric(floor)
	if err != nil {
		return false, fmt.Errorf("floor %q: %w", floor, err)
	}
	text := server.GitVersion
	if text == "" {
		text = digits.FindString(server.Major) + "." + digits.FindString(server.Minor)
	}
	unreadable := fmt.Errorf("gitVersion %q, major %q, minor %q cannot be read", server.GitVersion, server.Major, server.Minor)
	parts := release.FindStringSubmatch(text)
	if parts == nil {
		return false, unreadable
	}
	found, err := apiversion.ParseGeneric(parts[1])
	if err != nil {
		return false, fmt.Errorf("%w: %w", unreadable, err)
	}
	if prerelease.MatchString(parts[2]) {
		return found.GreaterThan(wanted), nil
	}
	return found.AtLeast(wanted), nil
}
