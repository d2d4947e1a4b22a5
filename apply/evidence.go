package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
)

// Bounds of the evidence.
const (
	evidenceTime   = 15 * time.Second // for all reads together
	evidencePods   = 3
	evidenceEvents = 4
	evidenceLines  = 20
)

// failedRollout reads what the cluster says about a workload and makes the error of it. The reads have a time of their own, because
// the wait's may be over; one that fails becomes a note.
func failedRollout(ctx context.Context, client kubernetes.Interface, w Workload, verdict string, cause error) *RolloutError {
	bounded, cancel := context.WithTimeout(ctx, evidenceTime)
	defer cancel()
	g := gatherer{client: client, w: w, nodes: map[string]string{}}
	g.gather(bounded)
	return &RolloutError{Workload: w, Verdict: verdict, Evidence: g.found, Diagnoses: diagnose(g.found), Err: cause}
}

// A gatherer reads evidence, best effort.
type gatherer struct {
	client kubernetes.Interface
	w      Workload
	found  Evidence
	nodes  map[string]string // node → architecture, each read once
}

func (g *gatherer) note(format string, args ...any) {
	g.found.Notes = append(g.found.Notes, fmt.Sprintf(format, args...))
}

func (g *gatherer) gather(ctx context.Context) {
	selector, err := g.selector(ctx)
	if err != nil {
		g.note("the %s could not be read: %v", g.w.Kind, err)
		return
	}
	g.gatherPods(ctx, selector)
}

// gatherFor reads evidence of any object, as it was last seen: pods where it makes some, else its events.
func (g *gatherer) gatherFor(ctx context.Context, it *waitItem) {
	switch {
	case makesPods(it.ref):
		var s metav1.LabelSelector
		labels, _ := dig(it.obj.Object, "spec", "selector").(map[string]any)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(labels, &s); err != nil || labels == nil {
			g.note("the %s has no selector of pods that could be read", g.w.Kind)
			return
		}
		g.gatherPods(ctx, metav1.FormatLabelSelector(&s))
	case it.ref.Group == "" && it.ref.Kind == "Pod":
		var p corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(it.obj.Object, &p); err == nil {
			g.found.Pods = []PodEvidence{g.pod(ctx, p)}
		}
	default:
		if g.w.Namespace == "" {
			g.w.Namespace = metav1.NamespaceDefault // where events of objects without a namespace are
		}
		g.found.Owners = g.events(ctx, g.w.Kind, g.w.Name, true)
	}
}

func (g *gatherer) gatherPods(ctx context.Context, selector string) {
	list, err := g.client.CoreV1().Pods(g.w.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		g.note("the pods of %s could not be listed: %v", selector, err)
		return
	}
	// A Job that fails ends its pods, and theirs is the log that says why.
	pods := slices.DeleteFunc(slices.Clone(list.Items), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil && g.w.Kind != "Job" })
	switch {
	case len(pods) == 0 && len(list.Items) > 0:
		g.note("all %d pods are terminating", len(list.Items))
	case len(pods) == 0 && g.w.Kind == "Job":
		g.note("no pod: the Job made none, or took them away")
	case len(pods) == 0:
		g.note("no pod: the %s made none; check quota, taints and the selector %s", g.maker(), selector)
	}
	if len(pods) == 0 {
		g.ownerEvents(ctx, selector)
		return
	}
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int { return boolOrder(podGood(a), podGood(b)) })
	if more := len(pods) - evidencePods; more > 0 {
		g.note("%d more pods are not shown", more)
		pods = pods[:evidencePods]
	}
	for _, p := range pods {
		g.found.Pods = append(g.found.Pods, g.pod(ctx, p))
	}
}

// selector reads the label selector of the workload's pods.
func (g *gatherer) selector(ctx context.Context) (string, error) {
	var s *metav1.LabelSelector
	apps := g.client.AppsV1()
	switch g.w.Kind {
	case "Deployment":
		o, err := apps.Deployments(g.w.Namespace).Get(ctx, g.w.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		s = o.Spec.Selector
	case "StatefulSet":
		o, err := apps.StatefulSets(g.w.Namespace).Get(ctx, g.w.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		s = o.Spec.Selector
	default:
		o, err := apps.DaemonSets(g.w.Namespace).Get(ctx, g.w.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		s = o.Spec.Selector
	}
	return metav1.FormatLabelSelector(s), nil
}

// maker is the kind that creates the pods.
func (g *gatherer) maker() string {
	if g.w.Kind == "Deployment" {
		return "ReplicaSet"
	}
	return g.w.Kind
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// podGood says that a pod is no evidence of a failure.
func podGood(p corev1.Pod) bool { return podReady(p) || p.Status.Phase == corev1.PodSucceeded }

// podReady counts a pod without container statuses as not ready.
func podReady(p corev1.Pod) bool {
	if len(p.Status.ContainerStatuses) == 0 {
		return false
	}
	for _, c := range p.Status.ContainerStatuses {
		if !c.Ready {
			return false
		}
	}
	return true
}

func (g *gatherer) pod(ctx context.Context, p corev1.Pod) PodEvidence {
	e := PodEvidence{Name: p.Name, Phase: string(p.Status.Phase), Node: p.Spec.NodeName, Arch: g.arch(ctx, p.Spec.NodeName), Containers: containersOf(p)}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			e.Scheduling = strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
		}
	}
	e.Events = g.events(ctx, "Pod", p.Name, false)
	g.log(ctx, p, &e)
	return e
}

func (g *gatherer) arch(ctx context.Context, node string) string {
	if node == "" {
		return ""
	}
	arch, known := g.nodes[node]
	if !known {
		n, err := g.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			g.note("node %s could not be read: %v", node, err)
		} else {
			arch = n.Status.NodeInfo.Architecture
		}
		g.nodes[node] = arch
	}
	return arch
}

// log reads the end of the log of the first container that is not ready, and of its last run when this one said nothing.
func (g *gatherer) log(ctx context.Context, p corev1.Pod, e *PodEvidence) {
	i := slices.IndexFunc(e.Containers, func(c ContainerEvidence) bool { return !c.Ready && c.State != "" && !c.finished })
	if i < 0 {
		return
	}
	e.LogOf = e.Containers[i].Name
	lines := int64(evidenceLines)
	for _, previous := range []bool{false, true} {
		raw, err := g.client.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{Container: e.LogOf, TailLines: &lines, Previous: previous}).DoRaw(ctx)
		if err != nil {
			if !previous {
				g.note("the log of %s/%s could not be read: %v", p.Name, e.LogOf, err)
			}
			continue
		}
		if text := strings.TrimRight(string(raw), "\n"); text != "" {
			e.Log = strings.Split(text, "\n")
			return
		}
	}
}
