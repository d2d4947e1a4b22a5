package jr2_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/preflight"
)

// A check says of each Size whether a Sandbox would get its pod and room now, one finding for each, and nothing where it would.
func TestCheckOfTheRoomForSandboxes(t *testing.T) {
	w := theWorld(t, node("a"))
	home := func(name string, labels map[string]string, quota corev1.ResourceList) {
		t.Helper()
		all := map[string]string{names.LabelInstance: "my-instance"}
		for key, value := range labels {
			all[key] = value
		}
		w.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}})
		if quota != nil {
			_, err := w.client.CoreV1().ResourceQuotas(name).Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: quota}}, metav1.CreateOptions{})
			must(t, err)
		}
	}
	home("boxed-open", nil, nil)
	home("boxed-strict", map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}, nil)
	home("boxed-small", nil, corev1.ResourceList{corev1.ResourceLimitsMemory: quantity("4Gi")})
	files := map[string]string{"jr2.config.ts": configOf(`sandbox: { resources: { limits: { memory: "6Gi", cpu: "2" } } }`),
		"workflows/one.ts": hold("3Gi", "1"), "workflows/two.ts": hold("3Gi", "1"), "workflows/three.ts": hold("5Gi", "1")}
	dir := folder(t, files)
	const three, five, six = "Sandboxes of 3Gi memory and 1 CPU (workflow one, workflow two)", "Sandboxes of 5Gi memory and 1 CPU (workflow three)", "Sandboxes of 6Gi memory and 2 CPU (sandbox.resources)"
	codes := []string{preflight.CodeSandboxRefused, preflight.CodeNoRoom, preflight.CodeNoRoomEver}
	for _, tt := range []struct {
		name, namespace string
		want            []string // code, object: words
		change          func(*jr2.Options)
	}{
		{name: "room", namespace: "boxed-open"},
		{name: "no namespace yet", namespace: "boxed-nowhere"},
		{name: "a level", namespace: "boxed-strict", want: []string{
			"sandbox-refused " + three + `: violates PodSecurity "baseline:latest": hostPath volumes`,
			"sandbox-refused " + five + `: violates PodSecurity "baseline:latest": hostPath volumes`, // one without a repository has nothing of the node
		}},
		{name: "a quota", namespace: "boxed-small", want: []string{
			"sandbox-refused " + five + ": exceeded quota: small, requested: limits.memory=5Gi", "sandbox-refused " + six + ": exceeded quota: small, requested: limits.memory=6Gi"}},
	} {
		report := w.check(t, dir, preflight.Choice{Only: codes, Skip: []string{preflight.CodeNotLookedAt}}, into(tt.namespace))
		var got []string
		for _, f := range report.Findings {
			if slices.Contains(codes, f.Code) {
				got = append(got, f.Code+" "+f.Object+": "+f.Message)
			}
		}
		slices.Sort(got)
		for i := range max(len(got), len(tt.want)) {
			head, words, _ := strings.Cut(append(tt.want, make([]string, len(got))...)[i], ": ")
			if i >= len(got) || i >= len(tt.want) || !strings.HasPrefix(got[i], head+": ") || !strings.Contains(got[i], words) {
				t.Errorf("%s: got\n%s\nwant\n%s", tt.name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
				break
			}
		}
	}

	// A Secret that the default service account names and nobody made: Sandboxes pull without it.
	_, err := w.client.CoreV1().ServiceAccounts("boxed-open").Patch(t.Context(), "default", "application/merge-patch+json", []byte(`{"imagePullSecrets":[{"name":"lost"}]}`), metav1.PatchOptions{})
	must(t, err)
	lost := w.check(t, dir, preflight.Choice{Only: []string{preflight.CodePullSecret}}, into("boxed-open"))
	if !slices.ContainsFunc(lost.Findings, func(f preflight.Finding) bool {
		return f.Code == preflight.CodePullSecret && strings.Contains(f.Message, "Secret boxed-open/lost")
	}) {
		t.Errorf("a pull Secret that is lost:\n%s", lost)
	}

	// What no node is large enough for is told once, by the converge's own words; what all nodes are full for is told here.
	large := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/huge.ts": hold("512Gi", "1")})
	report := w.check(t, large, preflight.Choice{}, into("boxed-open"))
	if text := report.String(); !strings.Contains(text, preflight.CodeSizeTooLarge) || strings.Contains(text, preflight.CodeNoRoomEver) {
		t.Errorf("too large:\n%s", report)
	}
	w = theWorld(t, node("a"), node("starting", func(n *devcluster.Node) { n.Allocatable[corev1.ResourceMemory] = quantity("600Gi") }, tainted("node.cilium.io/agent-not-ready", "", corev1.TaintEffectNoSchedule)))
	named := folder(t, map[string]string{"jr2.config.ts": configOf(`platforms: ["linux/amd64"]`), "workflows/huge.ts": hold("512Gi", "1")})
	report = w.check(t, named, preflight.Choice{}, into("boxed-open"))
	if text := report.String(); !strings.Contains(text, "expected to clear by itself") && !strings.Contains(text, preflight.CodeNoRoom) {
		t.Errorf("a node that starts:\n%s", report)
	}
	theWorld(t, node("a"))
}
