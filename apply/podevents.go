package apply

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// events reads the last events of one object, oldest first.
func (g *gatherer) events(ctx context.Context, kind, name string, named bool) []EventEvidence {
	list, err := g.client.CoreV1().Events(g.w.Namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.Set{
		"involvedObject.kind": kind, "involvedObject.name": name,
	}.String()})
	if err != nil {
		g.note("the events of %s %s could not be listed: %v", kind, name, err)
		return nil
	}
	var all []EventEvidence
	for _, e := range list.Items {
		x := EventEvidence{Type: e.Type, Reason: e.Reason, Message: strings.TrimSpace(e.Message), At: timeOf(e)}
		if named {
			x.Object = kind + " " + name
		}
		all = append(all, x)
	}
	return lastEvents(all)
}

func lastEvents(all []EventEvidence) []EventEvidence {
	slices.SortStableFunc(all, func(a, b EventEvidence) int { return a.At.Compare(b.At) })
	return all[max(0, len(all)-evidenceEvents):]
}

// timeOf is when an event was last seen; which field says so depends on the API that wrote it.
func timeOf(e corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// ownerEvents reads the events of what should have made the pods: quota, a missing PriorityClass and Pod Security show only there.
func (g *gatherer) ownerEvents(ctx context.Context, selector string) {
	all := g.events(ctx, g.w.Kind, g.w.Name, true)
	if g.w.Kind == "Deployment" {
		for _, name := range g.replicaSets(ctx, selector) {
			all = append(all, g.events(ctx, "ReplicaSet", name, true)...)
		}
	}
	g.found.Owners = lastEvents(all)
}

// replicaSets lists those of the Deployment that want pods and have none ready, the newest revision first.
func (g *gatherer) replicaSets(ctx context.Context, selector string) []string {
	list, err := g.client.AppsV1().ReplicaSets(g.w.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		g.note("the ReplicaSets could not be listed: %v", err)
		return nil
	}
	var names []string
	for _, rs := range list.Items {
		owner := metav1.GetControllerOf(&rs)
		if owner == nil || owner.Name != g.w.Name || replicas(rs.Spec.Replicas) == 0 {
			continue
		}
		names = append(names, rs.Name)
		for _, c := range rs.Status.Conditions {
			if c.Status == corev1.ConditionTrue && c.Message != "" { // ReplicaFailure; events may be gone or forbidden
				g.found.Notes = append(g.found.Notes, "ReplicaSet "+rs.Name+": "+string(c.Type)+" "+c.Reason+": "+c.Message)
			}
		}
	}
	return names
}
