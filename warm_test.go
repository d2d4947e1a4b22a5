package jr2_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2"
	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/warm"
	"jr2.dev/jr2/preflight"
)

// TestWarm keeps the images of Sandboxes and a node ready, says that the Kit's class preempts nobody, and plans to take all of it away when it is no longer asked for.
func TestWarm(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	keep := func(o *jr2.Options) {
		o.Warm = jr2.Warm{Images: true, Also: []string{"registry.example.com/kora/kora-sandbox-go:1"}, Capacity: warm.Capacity{Mode: warm.HoldCapacity}}
	}
	up := w.up(t, dir, into("warm"), keep)
	must(t, up.err)
	if !slices.ContainsFunc(up.result.Findings, func(f preflight.Finding) bool {
		return f.Code == warm.NeverPreempts && f.Object == "PriorityClass jr2-sandbox" && strings.Contains(up.lines, f.Message)
	}) {
		t.Errorf("nobody says that Sandboxes preempt nobody:\n%s", up.lines)
	}
	set, err := w.client.AppsV1().DaemonSets("warm").Get(t.Context(), "jr2-warm-images", metav1.GetOptions{})
	must(t, err)
	var images []string
	for _, volume := range set.Spec.Template.Spec.Volumes {
		images = append(images, volume.Image.Reference)
	}
	if all := strings.Join(images, " "); len(images) != 3 || !strings.Contains(all, "/jr2-harness:") || !strings.Contains(all, "/envoy:") || !strings.Contains(all, "kora-sandbox-go:1") {
		t.Errorf("kept are %v", images)
	}
	if again := w.plan(t, dir, into("warm"), keep); again.err != nil || again.plan.Changes() != 0 {
		t.Errorf("%v\n%s", again.err, again.plan)
	}
	cold := w.plan(t, dir, into("warm"))
	must(t, cold.err)
	if instance := cold.layer(t, "instance"); instance.Count(apply.WillPrune) != 3 {
		t.Errorf("what is no longer asked for stays:\n%s", instance)
	}
}

// TestDownRemovesThePlaceholdersClass takes away what lies outside the namespace, and nobody else's.
func TestDownRemovesThePlaceholdersClass(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	w.home(t, "warm-gone", "my-instance")
	classes := w.client.SchedulingV1().PriorityClasses()
	stays := map[string]bool{"jr2-placeholder-warm-gone-10": false, "jr2-placeholder-warm-gone-20": false, "jr2-placeholder-warm-gone-b-10": true, "jr2-placeholder-warm-gone-7": true,
		"jr2-placeholder-warm-gone-8": true}
	for name := range stays {
		labels := map[string]string{warm.Label: warm.LabelPlaceholder, names.LabelInstance: "my-instance"}
		if strings.HasSuffix(name, "-7") {
			labels[names.LabelInstance] = "another"
		}
		manager := apply.DefaultFieldManager
		if strings.HasSuffix(name, "-8") { // a copy
			manager = "kubectl-create"
		}
		_, err := classes.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Value: -10}, metav1.CreateOptions{FieldManager: manager})
		must(t, err)
	}
	must(t, w.down(t, "warm-gone").err)
	for name, stays := range stays {
		if _, err := classes.Get(t.Context(), name, metav1.GetOptions{}); stays && err != nil || !stays && !apierrors.IsNotFound(err) {
			t.Errorf("PriorityClass %s: %v", name, err)
		}
	}
}

// TestWarmRefuses says what can't be kept warm before anything is written.
func TestWarmRefuses(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	zero := int32(0)
	for name, keep := range map[string]jr2.Warm{"priority": {Capacity: warm.Capacity{Mode: warm.HoldCapacity, Priority: &zero}}, "image": {Also: []string{"a/B"}}} {
		told := w.plan(t, dir, into("warm-refused"), func(o *jr2.Options) { o.Warm = keep })
		var priority *warm.PriorityError
		var image *warm.ImageError
		if !errors.As(told.err, &priority) && !errors.As(told.err, &image) {
			t.Errorf("%s: %v", name, told.err)
		}
	}
	w.isAbsent(t, "warm-refused")
}
