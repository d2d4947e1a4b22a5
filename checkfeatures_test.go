package jr2_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/preflight"
)

// An API server that drops image volumes can host no Sandbox, whatever its version says; one that keeps them does, also where pods are restricted.
func TestImageVolumesThatAreDropped(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	boxes := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	plain := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	dropped := w.served(t, devcluster.DropImageVolumes())
	choice := preflight.Choice{Only: []string{preflight.CodeImageVolumes, preflight.CodePodLevelResources}}

	report := w.check(t, boxes, choice, into("dropped-volumes"), dropped)
	if got := refusing(report); got != preflight.CodeImageVolumes || !strings.Contains(report.String(), contextName+" (Kubernetes v1.") || strings.Contains(report.String(), "The namespace was created") {
		t.Errorf("got %s\n%s", got, report)
	}
	up := w.up(t, boxes, into("dropped-volumes"), dropped)
	var refusal *jr2.Refusal
	if !errors.As(up.err, &refusal) || len(refusal.Findings) != 1 || refusal.Findings[0].Code != preflight.CodeImageVolumes || !strings.Contains(up.err.Error(), "The namespace was created; nothing else was applied.") {
		t.Errorf("got %v", up.err)
	}

	// Siblings: both are dropped; no Sandbox is made; the server keeps them, also where the pods of the namespace are restricted.
	both := w.served(t, devcluster.DropImageVolumes(), devcluster.DropPodResources())
	if got := refusing(w.check(t, boxes, choice, into("dropped-volumes"), both)); got != preflight.CodePodLevelResources+" "+preflight.CodeImageVolumes {
		t.Errorf("both dropped: %s", got)
	}
	if got := refusing(w.check(t, plain, choice, into("dropped-volumes"), dropped)); got != "" {
		t.Errorf("without a Sandbox: %s", got)
	}
	w.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept-volumes", Labels: map[string]string{
		names.LabelInstance: "my-instance", "pod-security.kubernetes.io/enforce": "restricted"}}})
	kept := w.check(t, boxes, choice, into("kept-volumes"))
	if refusing(kept) != "" || strings.Contains(kept.String(), "could not be probed") {
		t.Errorf("kept: %s", kept)
	}
}
