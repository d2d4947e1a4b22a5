package apply

import (
	"fmt"
	"strings"
	"time"
)

// A RolloutError is a rollout that failed or took too long, with what the cluster says about it.
type RolloutError struct {
	Workload Workload
	// Verdict is the wait's own end: "timed out after 3m0s: 0 of 1 …", or what the cluster gave as the reason.
	Verdict   string
	Evidence  Evidence
	Diagnoses []Diagnosis
	// Err is the end of the context, or nil.
	Err error
}

// Evidence is what was read about the pods of a workload after its rollout failed.
type Evidence struct {
	// Pods holds at most three pods, those that are not ready first.
	Pods []PodEvidence
	// Owners holds the events of the workload and its ReplicaSets when there is no pod at all: the last four, oldest first.
	Owners []EventEvidence
	// Notes say what is not shown and what could not be read.
	Notes []string
}

// PodEvidence is one pod.
type PodEvidence struct {
	Name, Phase, Node, Arch string
	// Scheduling is the scheduler's reason and message while the pod has no node.
	Scheduling string
	Containers []ContainerEvidence // init containers first
	Events     []EventEvidence     // the last four, oldest first
	// Log is the tail of the log of LogOf, the first container that is not ready.
	Log   []string
	LogOf string
}

// ContainerEvidence is one container.
type ContainerEvidence struct {
	Name string
	Init bool
	// State is the waiting reason, "<reason> (exit code 1)", "ready" or "not ready"; empty when the pod has no container statuses.
	State    string
	Ready    bool
	Restarts int32
	Image    string // as in the spec
	Message  string
	// Last is the last exit of a container that waits now: "Error (exit code 1)".
	Last string

	finished bool // an init container that did its work
}

// EventEvidence is one event.
type EventEvidence struct {
	Type, Reason, Message string
	Object                string // "ReplicaSet web-5d4f"; empty for an event of the pod that holds it
	At                    time.Time
}

func (e *RolloutError) Unwrap() error { return e.Err }

// Error is headline, evidence, diagnoses and verdict, with an empty line between them.
func (e *RolloutError) Error() string {
	return evidenceText(rolloutHead(e.Workload), e.Evidence, e.Diagnoses, e.Verdict)
}

func rolloutHead(w Workload) string { return fmt.Sprintf("the rollout of %s did not complete", w) }

func evidenceText(head string, evidence Evidence, named []Diagnosis, verdict string) string {
	parts := []string{head}
	if text := evidence.String(); text != "" {
		parts = append(parts, text)
	}
	var diagnoses []string
	for _, d := range named {
		diagnoses = append(diagnoses, d.Text)
	}
	if len(diagnoses) > 0 {
		parts = append(parts, strings.Join(diagnoses, "\n"))
	}
	return strings.Join(append(parts, verdict), "\n\n")
}

// String is the evidence as text, one line for each fact; lines of logs are marked as quotes.
func (e Evidence) String() string {
	var b strings.Builder
	for _, p := range e.Pods {
		p.write(&b)
	}
	for _, x := range e.Owners {
		x.write(&b, "")
	}
	for _, n := range e.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	return strings.TrimRight(b.String(), "\n")
}

func (p PodEvidence) write(b *strings.Builder) {
	fmt.Fprintf(b, "pod %s: %s", p.Name, p.Phase)
	if p.Node != "" {
		fmt.Fprintf(b, " on node %s", p.Node)
	}
	if p.Arch != "" {
		fmt.Fprintf(b, " (%s)", p.Arch)
	}
	b.WriteString("\n")
	if p.Scheduling != "" {
		fmt.Fprintf(b, "  %s\n", p.Scheduling)
	}
	for _, c := range p.Containers {
		c.write(b)
	}
	for _, x := range p.Events {
		x.write(b, "  ")
	}
	if len(p.Log) > 0 {
		fmt.Fprintf(b, "  log of %s:\n", p.LogOf)
		for _, line := range p.Log {
			fmt.Fprintf(b, "  | %s\n", line)
		}
	}
}

func (c ContainerEvidence) write(b *strings.Builder) {
	kind := "container"
	if c.Init {
		kind = "init container"
	}
	fmt.Fprintf(b, "  %s %s:", kind, c.Name)
	if c.State != "" {
		fmt.Fprintf(b, " %s,", c.State)
	}
	if c.Restarts > 0 {
		fmt.Fprintf(b, " %d restarts,", c.Restarts)
	}
	fmt.Fprintf(b, " image %s\n", c.Image)
	for _, line := range strings.Split(strings.TrimSpace(c.Message), "\n") {
		if line != "" {
			fmt.Fprintf(b, "    %s\n", line)
		}
	}
	if c.Last != "" {
		fmt.Fprintf(b, "    last exit: %s\n", c.Last)
	}
}

func (e EventEvidence) write(b *strings.Builder, indent string) {
	b.WriteString(indent + "event ")
	if e.Object != "" {
		fmt.Fprintf(b, "of %s ", e.Object)
	}
	fmt.Fprintf(b, "%s %s: %s\n", e.Type, e.Reason, e.Message)
}
