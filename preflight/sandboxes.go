package preflight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"golang.org/x/sync/errgroup"

	"jr2.dev/jr2/placement"
)

// Stable codes of the findings about Sandboxes that are yet to come.
const (
	CodeSandboxRefused = "sandbox-refused" // the API server would not let their pods in
	CodeNoRoom         = "no-room"         // nothing has room for one now
	CodeNoRoomEver     = "no-room-ever"    // nothing will have, until somebody changes it
)

// A SandboxShape is the pod that the Sandboxes of one Size get.
type SandboxShape struct {
	// Of names them: "Sandboxes of 3Gi memory and 1 CPU (workflow review)".
	Of string
	// Pods are as the operator makes them, in their namespace, where those of one Size differ in what admission may look at. The first one stands
	// for all where room is looked for.
	Pods []*corev1.Pod
	// NodesTold says that it is told already that no node takes them.
	NodesTold bool
}

// SandboxFacts are what is known about where Sandboxes will be. In each field nil means that nobody read it, and then nothing is said of it.
type SandboxFacts struct {
	placement.Facts
	// DryRun is where a pod of their namespace would be made; every call is a dry run. nil means that the server is not asked: there may be no
	// namespace yet.
	DryRun PodCreator
	// GivesWay is that of placement.RoomOptions.
	GivesWay func(*corev1.Pod) bool
}

// Sandboxes says of each shape whether a Sandbox would get its pod, and room for it now: one finding for each at most. The pod is made by dry run, so
// that a Pod Security level, a LimitRange's bounds and defaults, quotas and webhooks speak for themselves; then placement.Room says what limits.
//
// It warns and never refuses: an Instance can be brought before there is room for what it will run. What is expected to clear by itself is a Note. A
// service account or a priority class that is not there is the affair of other checks, and so is that this caller may make no pod.
func Sandboxes(ctx context.Context, shapes []SandboxShape, facts SandboxFacts) []Finding {
	found := make([][]Finding, len(shapes))
	var pods []*corev1.Pod
	for i := range shapes {
		pods = append(pods, shapes[i].Pods...)
	}
	widen := "" // one for all Sizes: of two, the last that is typed would take back what the first gave
	if len(pods) > 0 {
		widen = widenBounds(pods[0].Namespace, pods, facts.Facts) // facts.DryRun is of one namespace
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range shapes {
		group.Go(func() error {
			found[i] = shapes[i].look(ctx, &facts, widen)
			return nil
		})
	}
	group.Wait() //nolint:errcheck // what went wrong is in the findings
	findings := slices.Concat(found...)
	raiseTogether(findings)
	return findings
}

func (s *SandboxShape) look(ctx context.Context, facts *SandboxFacts, widen string) []Finding {
	shape, full := s.Pods[0], refusal{}
	for i, pod := range s.Pods {
		admitted, refused, err := admitted(ctx, facts.DryRun, pod)
		switch {
		case err != nil:
			return []Finding{notLooked(s.Of, fmt.Sprintf("%s: nobody could ask whether the API server would let their pods in: %v", s.Of, err))}
		case refused.class == refusedQuotaFull:
			full = refused
		case refused.words != "":
			return []Finding{s.refused(refused, widen)}
		case admitted != nil && i == 0:
			shape = admitted
		}
	}
	return s.room(shape, full, facts, widen)
}

// admitted makes the pod by dry run: what the server makes of it or, in words, why it does not. All is zero where nobody could be asked.
func admitted(ctx context.Context, pods PodCreator, pod *corev1.Pod) (*corev1.Pod, refusal, error) {
	if pods == nil {
		return nil, refusal{}, nil
	}
	pod = pod.DeepCopy()
	for range 3 { // without its priority class, without its RuntimeClass
		made, err := createDryRun(ctx, pods, pod)
		if err == nil {
			return made, refusal{}, nil
		}
		r, ok := refusalOf(err)
		switch {
		case !ok && noRightToMake.MatchString(err.Error()): // Admission says so, of pods in the same namespace
			return nil, refusal{}, nil
		case !ok:
			return nil, refusal{}, err
		case r.class == refusedServiceAccount || r.class == refusedNamespaceMissing:
			return nil, refusal{}, nil
		case r.class == refusedPriorityClass && r.without(pod):
			continue
		}
		return nil, r, nil
	}
	return nil, refusal{}, fmt.Errorf("the API server refuses each time something else")
}

// refused is the finding of pods that never get in. widen is the command for bounds.
func (s *SandboxShape) refused(r refusal, widen string) Finding {
	f := Finding{Severity: Warn, Code: CodeSandboxRefused, Object: s.Of}
	advice, command := "", ""
	switch r.class {
	case refusedPodSecurity:
		f.Fix = LowerPodSecurity(s.Pods[0].Namespace)
	case refusedQuotaNever:
		advice, command = "raise the quota", RaiseQuota(s.Pods[0].Namespace, r.words)
		if smallerHelps(nil, r.words) {
			advice += ", or lower the Size"
		}
	case refusedByPolicy:
		f.Fix = "ask who keeps that policy"
	default:
		advice, command = "correct the LimitRange, or the Size", widen
		if !strings.Contains(r.words, "per Container") && !strings.Contains(r.words, "per Pod") {
			advice, command = "correct what the message names", ""
		}
	}
	return f.advised(s.Of+" would get no pod: "+strings.TrimSuffix(r.words, "."), advice, command)
}

// advised writes the finding's sentence with what helps: what to do in words, where there are any, and the command that does it, where there is one.
func (f Finding) advised(sentence, advice, command string) Finding {
	f.Fix = cmp.Or(command, advice, f.Fix)
	for _, part := range []struct{ between, text string }{{" — ", advice}, {": ", command}} {
		if part.text != "" {
			sentence += part.between + part.text
		}
	}
	if advice == "" && command == "" {
		sentence += " — " + f.Fix
	}
	f.Message = sentence
	return f
}

// room looks for a place for one, within quotas and on nodes. full is the server's word that a quota has none.
func (s *SandboxShape) room(pod *corev1.Pod, full refusal, facts *SandboxFacts, widen string) []Finding {
	read := facts.Facts
	if s.NodesTold {
		read.Nodes = nil
	}
	room := placement.Room(pod, &read, placement.RoomOptions{Objects: placement.SandboxObjects(), GivesWay: facts.GivesWay, Most: 1})
	limits := slices.DeleteFunc(room.LimitedBy, func(l placement.Limit) bool { return l.More > 0 })
	if full.words != "" && !slices.ContainsFunc(limits, func(l placement.Limit) bool { return l.On == placement.OnQuota }) {
		limits = slices.Insert(limits, 0, placement.Limit{On: placement.OnQuota, Text: full.words}) // one that this caller may not read
	}
	if len(limits) == 0 {
		return nil
	}
	var texts []string
	never, nodesAlone := false, true
	for _, limit := range limits {
		texts, never, nodesAlone = append(texts, limit.Text), never || limit.Never, nodesAlone && limit.On == placement.OnNode
	}
	explained := placement.Explanation{}
	for i := range room.Nodes {
		explained.Nodes = append(explained.Nodes, room.Nodes[i].NodeAnswer)
	}
	f := Finding{Severity: Warn, Code: CodeNoRoom, Object: s.Of}
	if nodesAlone && explained.Best() == placement.Soon {
		f.Severity = Note
		f.Message = fmt.Sprintf("%s find no room yet, which is expected to clear by itself: %s", s.Of, strings.Join(texts, "; "))
		return []Finding{f}
	}
	outlook, others := "find no room now, and would wait", ""
	if never {
		f.Code, outlook = CodeNoRoomEver, "find no room, and would wait until somebody makes it"
	}
	if room.Waiting > 0 {
		others = " (" + plural(room.Waiting, "pod") + " without a node compete for it)"
	}
	advice, command := fixOfRoom(&limits[0], explained), ""
	switch limits[0].On {
	case placement.OnQuota:
		command = raiseFull(pod.Namespace, limits, full.words)
	case placement.OnLimitRange:
		command = widen
	}
	if limits[0].On == placement.OnQuota && smallerHelps(limits, full.words) {
		advice += ", or lower the Size"
	}
	return []Finding{f.advised(fmt.Sprintf("%s %s: %s%s", s.Of, outlook, strings.Join(texts, "; "), others), advice, command)}
}

// fixOfRoom is what to do about a limit.
func fixOfRoom(limit *placement.Limit, explained placement.Explanation) string {
	switch {
	case limit.On == placement.OnQuota:
		return strings.TrimSpace("raise the quota " + limit.Name)
	case limit.On == placement.OnLimitRange:
		return "correct the limit range " + limit.Name + ", or the Size"
	case explained.Best() == placement.Full:
		return "add a node, or wait until others go"
	case slices.ContainsFunc(explained.Nodes, func(n placement.NodeAnswer) bool { return never(n, isDisk) }):
		return "add a node with more ephemeral storage"
	case slices.ContainsFunc(explained.Nodes, func(n placement.NodeAnswer) bool { return never(n, isSmall) }):
		return "lower the Size, or add a larger node"
	}
	return "add a node that takes them, or correct sandbox.nodeSelector and sandbox.tolerations"
}

// never says that nothing but reasons of one kind keeps a node for ever.
func never(node placement.NodeAnswer, because func(*placement.Reason) bool) bool {
	return node.Answer == placement.Never && !slices.ContainsFunc(node.Reasons, func(r placement.Reason) bool { return r.Answer == placement.Never && !because(&r) })
}

func isSmall(r *placement.Reason) bool { return r.Code == placement.ReasonTooSmall }

// isDisk: no Size says how much of it a Sandbox gets.
func isDisk(r *placement.Reason) bool {
	return isSmall(r) && r.Shortage.Resource == corev1.ResourceEphemeralStorage
}
