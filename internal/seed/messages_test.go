package seed_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"jr2.dev/jr2/internal/seed"
)

// TestEverySentenceIsTheDocuments fills each constant with the document's own example and finds the result in the document.
func TestEverySentenceIsTheDocuments(t *testing.T) {
	text, err := os.ReadFile("testdata/shared-cluster.txt")
	if err != nil {
		t.Fatal(err)
	}
	document := string(text)
	for name, sentence := range map[string]string{
		"EnvLine":              fmt.Sprintf(seed.EnvLine, "JR2_REGISTRY, …"),
		"Header":               fmt.Sprintf(seed.Header, "my-instance", "<context>", "my-instance"),
		"TypecheckLine":        seed.TypecheckLine,
		"KubernetesLine":       fmt.Sprintf(seed.KubernetesLine, "v1.36.1", "1.35"),
		"FirstContactAsk":      fmt.Sprintf(seed.FirstContactAsk, "my-instance", "<context>", fmt.Sprintf(seed.CreateNamespace, "my-instance")) + "y",
		"FirstContactNoTTY":    fmt.Sprintf(seed.FirstContactNoTTY, "<name>", "<context>", "<what>"),
		"PlatformsLine":        fmt.Sprintf(seed.PlatformsLine, "linux/amd64", 2),
		"SkippingArch":         fmt.Sprintf(seed.SkippingArch, "s390x"),
		"SandboxNodesLine":     fmt.Sprintf(seed.SandboxNodesLine, "jr2-control-plane"),
		"ImagesInstalledKit":   fmt.Sprintf(seed.ImagesInstalledKit, "<version>", "ghcr.io/snapwich"),
		"PriorityOwn":          fmt.Sprintf(seed.PriorityOwn, fmt.Sprintf(seed.PriorityOwnControl, "platform-critical")+", "+fmt.Sprintf(seed.PriorityOwnSandbox, "batch-low")),
		"SandboxImageBuild":    fmt.Sprintf(seed.SandboxImageBuild, "default", "<registry>/jr2-sandbox-my-instance-default:6389bdf72d50-amd64"),
		"NoUserDeclared":       seed.NoUserDeclared,
		"PushLine":             fmt.Sprintf(seed.PushLine, "<registry>"),
		"AssemblyPublishing":   fmt.Sprintf(seed.AssemblyPublishing, "6355c2bb032a", seed.AssemblyNoCurrent),
		"AssemblyCurrent":      fmt.Sprintf(seed.AssemblyCurrent, "6355c2bb032a", "hold, ping"),
		"RepoCacheUnverified":  seed.RepoCacheUnverified,
		"UnverifiedForm":       fmt.Sprintf(seed.UnverifiedForm, "repo cache", "app=jr2-repo-cache"),
		"Converged":            seed.Converged,
		"RunPlacing":           seed.RunPlacing,
		"PlacingWaits":         fmt.Sprintf(seed.PlacingWaits, "quota", fmt.Sprintf(seed.QuotaExample, "ws-5e817334-x-0-61ru0u", "team-quota", "1Gi", "2Gi", "512Mi")),
		"NoSandboxNode":        seed.NoSandboxNode,
		"NodeReason":           fmt.Sprintf(seed.NodeReason, "jr2-control-plane", fmt.Sprintf(seed.LacksLabel, "pool")),
		"NoSandboxNodeHint":    seed.NoSandboxNodeHint,
		"SizeTooLarge":         fmt.Sprintf(seed.SizeTooLarge, "512Gi", "64", `"hold"`),
		"ModelReach":           seed.ModelReach,
		"RefuseFloor":          fmt.Sprintf(seed.RefuseFloor, "<context>", "<kubernetes version>", "1.35"),
		"RefusePodLevel":       fmt.Sprintf(seed.RefusePodLevel, "<context>", "<kubernetes version>"),
		"RefuseNamespace":      fmt.Sprintf(seed.RefuseNamespace, "<namespace>", "<context>", "<instance>"),
		"PlatformsName":        "error: " + fmt.Sprintf(seed.PlatformsName, "<platforms>"),
		"NodesReport":          "error: " + fmt.Sprintf(seed.NodesReport, "<architectures>"),
		"NoRegistry":           "error: " + fmt.Sprintf(seed.NoRegistry, "<context>"),
		"CannotEmulate":        "error: " + fmt.Sprintf(seed.CannotEmulate, "<missing platforms>", "<builder platforms>"),
		"InstallEmulation":     fmt.Sprintf(seed.InstallEmulation, "<arches>"),
		"SecretMissing":        "error: " + strings.ReplaceAll(fmt.Sprintf(seed.SecretMissing, 7, "<name>", "<name>", "<key>"), "[7]", "[<i>]"),
		"EnvFromMissing":       "error: " + fmt.Sprintf(seed.EnvFromMissing, "<name>", "<namespace>", "<namespace>", "<name>"),
		"PriorityClassesShape": "error: " + fmt.Sprintf(seed.PriorityClassesShape, "<file>", "<path>", "<problem>"),
	} {
		if !strings.Contains(document, sentence) {
			t.Errorf("%s is not in the document: %q", name, sentence)
		}
	}
}
