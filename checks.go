package jr2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/preflight"
)

// ReportVersion is the version of a Report's JSON form. It moves when a reader of the last one would go wrong.
const ReportVersion = 1

// A Report is everything that was found about an Instance and a cluster. It holds no value of a Secret.
type Report struct {
	Version    int    `json:"version"`
	Instance   string `json:"instance,omitempty"`
	Context    string `json:"context,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Kubernetes string `json:"kubernetes,omitempty"`
	// Only and Skip are the codes of the Choice with which the cluster was looked at: of others the Report says nothing.
	Only []string `json:"only,omitempty"`
	Skip []string `json:"skip,omitempty"`
	// Unlooked are the looks that were left out, by name and in their order, because something kept them from looking: a configuration that can't be
	// read, a cluster that does not answer. Of what they would have found the Report says nothing.
	Unlooked []string `json:"unlooked,omitempty"`
	// Findings are in the order in which a converge would come to them; equal clusters give equal lists.
	Findings []preflight.Finding `json:"findings"`
	// Roles are, when the caller lacks a right, the smallest roles with which it could converge, as YAML for an admin's `kubectl auth reconcile -f -`, or
	// for `kubectl apply -f -` where Namespaces that are not there come first.
	Roles string `json:"roles,omitempty"`
}

// Err is a *Refusal with the findings that would stop a converge, or nil.
func (r *Report) Err() error { return preflight.Refused(r.Findings) }

// Check says what stands in the way of a Converge with these options, and what would hurt later: every finding at once, where a converge
// ends at the first that refuses. It writes nothing, but for the pods by which ProbeInChecks asks models, and asks nobody: it makes the looks of a
// converge, decides as MakePlan does, and runs the checks of package preflight and Options.Checks.
//
// A look that stands on another that failed is left out: without a readable configuration nobody asks the cluster, and in a namespace that is
// another's nothing more is looked at. What could not be looked at for another reason is a Note.
//
// The Report is never nil. The error is that of ctx alone: what is found wrong is a finding, of whatever kind.
func Check(ctx context.Context, opts Options, choice preflight.Choice) (*Report, error) {
	opts.Events, opts.Plan = nil, nil // findings are the answer
	run := &checking{
		planning: planning{converge: converge{opts: opts, whole: true, choice: choice, retry: apply.Retry{Limit: checkPatience, Quota: -1}, result: &Result{}}, plan: &Plan{Version: PlanVersion}},
		failed:   map[string]bool{}, ending: map[preflight.Finding]bool{},
	}
	err := run.all(ctx)
	found := run.result
	report := &Report{
		Version: ReportVersion, Instance: found.Instance, Context: found.Context, Namespace: found.Namespace, Kubernetes: found.Kubernetes,
		Only: choice.Only, Skip: choice.Skip, Unlooked: run.unlooked, Findings: []preflight.Finding{},
	}
	for i, f := range found.Findings {
		found.Findings[i] = ownPods(f)
	}
	lacking := false
	for _, f := range distinct(found.Findings) {
		if choice.Takes(f.Code) || run.ending[f] {
			report.Findings = append(report.Findings, f)
			lacking = lacking || aboutRights(f)
		}
	}
	report.Findings = sameCause(report.Findings)
	if lacking && run.roles != nil {
		report.Roles = run.roles(ctx)
	}
	return report, err
}

// checkPatience is how long a check waits for what ends by itself, such as a server that restarts or a webhook that does not answer yet: an answer
// in seconds is worth more than to outlast it.
const checkPatience = 2 * time.Second

// checking is a plan that goes on where a converge would stop.
type checking struct {
	planning
	facts  *preflight.SetFacts // workloads: what the cluster holds, read once
	bounds *placement.Facts    // the quotas and LimitRanges of the namespace, read once
	locked seenLock            // lock
	failed map[string]bool     // looks that others can't stand on, by name
	// unlooked are the looks that were left out, in their order.
	unlooked []string
	ending   map[preflight.Finding]bool // what kept others from looking; it is told whatever was chosen
}

// A lookStep is one step of a check.
type lookStep struct {
	name  string
	needs []string
	do    step
}

// looks are those of a plan in its order, with the steps that end at the first fault taken apart.
func (k *checking) looks() []lookStep {
	return []lookStep{
		{"instance", nil, k.load},
		{"types", []string{"instance"}, k.typecheck},
		{"workflows", []string{"instance"}, k.readWhole},
		{"parts", []string{"workflows"}, k.partsBound},
		{"sizes", []string{"workflows"}, k.sizesFit},
		{"held secrets", []string{"instance"}, k.heldRules},
		{"registries", []string{"instance"}, k.reach},
		{"bundle", []string{"workflows"}, k.bundle},
		{"kit names", []string{"instance"}, k.kitNames},
		{"platform names", []string{"instance"}, k.platformNames},
		{"connect", []string{"instance"}, k.connect},
		{"cluster", []string{"connect"}, k.floor},
		{"home", []string{"cluster"}, k.home},
		{"occupants", []string{"home"}, k.lookInside},
		{"pod-level resources", []string{"home"}, k.podLevelResources},
		{"platforms", []string{"cluster", "platform names"}, k.platforms},
		{"sandbox nodes", []string{"platforms", "workflows"}, k.sandboxNodes},
		{"kit", []string{"kit names"}, k.kit},
		{"named classes", []string{"cluster"}, k.namedClasses},
		{"secrets", []string{"home"}, k.secrets},
		{"warm", []string{"home", "workflows", "kit names"}, k.warm},
		{"recall", []string{"home"}, k.recall},
		{"images", []string{"recall", "platforms", "workflows", "registries"}, k.images},
		{"builder", []string{"images"}, k.buildsWith},
		{"namespace", []string{"home"}, k.namespace},
		{"priority classes", []string{"home"}, k.priorityClasses},
		{"operator", []string{"home", "kit names"}, k.operator},
		{"tokens", []string{"home"}, k.tokens},
		{"certificates", []string{"home"}, k.certificates},
		{"models", []string{"workflows", "kit names", "tokens", "certificates"}, k.models},
		{"objects", []string{"images", "tokens", "certificates", "kit names"}, k.objects},
		{"pulls", []string{"images", "namespace", "tokens", "certificates", "kit names"}, k.pulls},
		{"workloads", []string{"home", "kit names", "workflows"}, k.workloads},
		{"accounts", []string{"workloads"}, k.accounts},
		{"sandboxes", []string{"workloads"}, k.sandboxes},
		{"assembly", []string{"objects"}, k.assembly},
		{"quotas", []string{"objects", "workloads"}, k.quotaSums},
		{"lock", []string{"home"}, k.lockHeld},
		{"writes", []string{"home"}, k.writes},
		{"leaving", []string{"home"}, k.leaving},
		{"plan", []string{"home"}, func(context.Context) error { return k.plan.Err() }},
		{"checks", []string{"home"}, k.further},
	}
}

func (k *checking) all(ctx context.Context) error {
	looks := k.looks()
	for i, look := range looks {
		if slices.ContainsFunc(look.needs, func(name string) bool { return k.failed[name] }) || k.standsOnFault(look.name) {
			k.failed[look.name] = true
			k.unlooked = append(k.unlooked, look.name)
			continue
		}
		err := look.do(ctx)
		if cause := context.Cause(ctx); cause != nil {
			for _, rest := range looks[i:] {
				k.unlooked = append(k.unlooked, rest.name)
			}
			return cause
		}
		k.failed[look.name] = endsLooks(err)
		if k.failed[look.name] && ofChecksAlone(look.name) && !errors.As(err, new(*Refusal)) {
			k.note(preflight.Finding{
				Severity: preflight.Note, Code: preflight.CodeNotLookedAt, Object: "check " + look.name,
				Message: fmt.Sprintf("%s: nobody could look: %v", look.name, err),
			})
			continue
		}
		needed := slices.ContainsFunc(looks, func(other lookStep) bool { return slices.Contains(other.needs, look.name) })
		k.gather(err, k.failed[look.name] && needed)
	}
	return nil
}

// ofChecksAlone says that a converge does not make a look: what keeps a check from it stops no converge.
func ofChecksAlone(look string) bool {
	return slices.Contains([]string{"named classes", "workloads", "accounts", "sandboxes", "quotas", "lock", "writes", "leaving"}, look)
}

// home lets the others look where this user may not read the namespace: what they may see is their own affair, and that nobody knows whose it is
// is told.
func (k *checking) home(ctx context.Context) error {
	err := k.planning.home(ctx)
	if !apierrors.IsForbidden(err) {
		return err
	}
	k.gather(err, true)
	return nil
}

// gather keeps what an error says as findings; ending says that others can't look because of it.
func (k *checking) gather(err error, ending bool) {
	for _, f := range findingsOf(err, strings.TrimSpace("Instance "+k.result.Instance)) {
		k.result.Findings = append(k.result.Findings, f)
		if ending {
			k.ending[f] = true
		}
	}
}

// endsLooks says that nothing can stand on a look that ended so. A refusal leaves enough, but for one of a namespace that can't be had.
func endsLooks(err error) bool {
	refusal := (*Refusal)(nil)
	if err == nil || !errors.As(err, &refusal) {
		return err != nil
	}
	return slices.ContainsFunc(refusal.Findings, func(f preflight.Finding) bool {
		return f.Code == preflight.CodeNamespaceOwner || f.Code == preflight.CodeNamespaceName || f.Code == preflight.CodeNamespaceTerminating
	})
}
