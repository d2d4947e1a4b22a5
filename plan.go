package jr2

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/preflight"
)

// PlanVersion is the version of a Plan's JSON form. It moves when a reader of the last one would go wrong.
const PlanVersion = 1

// A Plan is what a converge would do to a cluster as it was seen. It holds no value of a Secret, so it may be printed and stored.
type Plan struct {
	Version    int    `json:"version"`
	Instance   string `json:"instance"`
	Context    string `json:"context"`
	Namespace  string `json:"namespace"`
	Kubernetes string `json:"kubernetes"`
	// FirstContact is what somebody must agree to first, in words; empty when the namespace is this Instance's already.
	FirstContact string `json:"firstContact,omitempty"`
	// Holds is what others have in a namespace that would be adopted: that needs Options.AdoptNamespace, or an answer.
	Holds *Occupants `json:"holds,omitempty"`
	// Platforms is the set that images are built for.
	Platforms []string `json:"platforms"`
	// SandboxNodes are the nodes on which a Sandbox can run now; nil when they were not read.
	SandboxNodes []string `json:"sandboxNodes,omitempty"`
	// Findings are the warnings and notes of the checks.
	Findings []preflight.Finding `json:"findings,omitempty"`
	// Images are the Sandbox Images that the Instance needs.
	Images []PlannedImage `json:"images,omitempty"`
	// Layers are the sets of objects in the order in which they are applied. Mint comes before the last.
	Layers []PlannedLayer `json:"layers"`
	// Mint is the Secret in which values are made; nil when all are there.
	Mint *PlannedMint `json:"mint,omitempty"`
	// Certificates are those of held secrets that would be made; nil when all are there.
	Certificates *PlannedCertificates `json:"certificates,omitempty"`
	// DeployKeys are the Secrets that would be made for repositories that are cloned over ssh.
	DeployKeys []PlannedDeployKey `json:"deployKeys,omitempty"`
	// Assembly is the Instance's code.
	Assembly PlannedAssembly `json:"assembly"`
	// InTheWay is what somebody else has under the name of an object that is in no layer, as Err says it: a Secret of tokens, the Assembly.
	InTheWay []string `json:"inTheWay,omitempty"`

	inTheWay []error
}

// A PlannedImage is one Sandbox Image.
type PlannedImage struct {
	Name   string      `json:"name"`
	Ref    string      `json:"ref"`
	Intent ImageIntent `json:"intent"`
	// Why gives the reason in words.
	Why string `json:"why"`
}

// An ImageIntent is what would be done for an image.
type ImageIntent string

const (
	WillBuild ImageIntent = "build"     // build and push; it may turn out that a builder has all of it in its cache
	WillReuse ImageIntent = "reuse"     // the registry holds it, built from equal content
	Delivered ImageIntent = "delivered" // the cluster's record names it; nobody is asked
)

// A PlannedLayer is one set of objects. The namespace, the priority classes and the operator are shared with others.
type PlannedLayer struct {
	Name string      `json:"name"`
	Plan *apply.Plan `json:"plan"`
}

// A PlannedMint is a Secret in which values are made once.
type PlannedMint struct {
	Secret apply.Ref `json:"secret"`
	Keys   []string  `json:"keys"`
}

// PlannedCertificates says which certificates of held secrets would be made, and why.
type PlannedCertificates struct {
	// Authority says why the Instance's authority is made; empty when the one that is there stays.
	Authority string `json:"authority,omitempty"`
	// Hosts are those that get a new certificate.
	Hosts []PlannedCertificate `json:"hosts,omitempty"`
}

// A PlannedCertificate is that of one host.
type PlannedCertificate struct {
	Host string `json:"host"`
	Port int    `json:"port"`
	Why  string `json:"why"`
}

// A PlannedDeployKey is the Secret of a deploy key that is not there.
type PlannedDeployKey struct {
	Secret string `json:"secret"`
	// Repos are the urls of the repositories that are cloned with it.
	Repos []string `json:"repos"`
	// Generate says that the key would be generated; else the source is a question that a plan asks nobody.
	Generate bool `json:"generate,omitempty"`
}

// PlannedAssembly says which Assembly is to be the current one.
type PlannedAssembly struct {
	Hash string `json:"hash"`
	// Current is the hash of the one that is current now; empty when there is none, or none that can be read.
	Current string `json:"current,omitempty"`
	Publish bool   `json:"publish"`
}

// MakePlan says what Converge would do with these options. It asks nobody and writes nothing: it makes the same looks and checks as a
// converge, then decides and stops. What can only be tried is tried by dry run, for which the server wants the same rights as for the write.
// It works on an empty cluster too.
//
// The plan of a first contact asks the server less, because the namespace is not there: objects in it are planned as apply.WillArrive.
// Of an image that is to be built the USER is not known before, which may show in the image map. What derives from a signing key that is
// yet to be made is planned with a stand-in.
//
// The Plan is never nil; with an error it holds what was seen until then. Errors are those of Converge up to its first write.
func MakePlan(ctx context.Context, opts Options) (*Plan, error) {
	opts.Events = asPlanning(opts.Events)
	run := &planning{converge: converge{opts: opts, result: &Result{}}, plan: &Plan{Version: PlanVersion}}
	err := in(ctx, []step{
		run.load, run.typecheck, run.readWhole, run.partsBound, run.sizesFit, run.heldRules, run.walked,
		run.reach, run.bundle, run.kitNames, run.platformNames,
		run.connect, run.floor, run.home, run.lookInside, run.further, run.chooseDeployKeys, run.namespace, run.podLevelResources,
		run.platforms, run.sandboxNodes, run.kit, run.priority, run.warm, run.secrets,
		run.recall, run.images, run.buildsWith, run.pulls, run.priorityClasses, run.operator, run.tokens, run.certificates, run.models, run.objects, run.assembly,
	})
	run.fill()
	return run.plan, err
}

// asPlanning opens the events as those of a plan.
func asPlanning(events func(Event)) func(Event) {
	if events == nil {
		return nil
	}
	return func(e Event) {
		if started, ok := e.(Started); ok {
			e = PlanStarted(started)
		}
		events(e)
	}
}

// Changes counts what a converge would change: objects, images to build, values to make and the Assembly. 0 means that the cluster is
// as asked.
func (p *Plan) Changes() int {
	n := 0
	for _, image := range p.Images {
		if image.Intent == WillBuild {
			n++
		}
	}
	for _, layer := range p.Layers {
		n += layer.Plan.Changes()
	}
	if p.Mint != nil {
		n++
	}
	n += len(p.DeployKeys)
	if p.Certificates != nil && p.Certificates.Authority != "" {
		n++ // those of hosts are in the layers
	}
	if p.Assembly.Publish {
		n++
	}
	return n
}

// Err joins why the plan can't be carried out: fields of other managers, objects of other sets, what the server refuses; nil when it can.
func (p *Plan) Err() error {
	errs := slices.Clone(p.inTheWay)
	for _, layer := range p.Layers {
		if err := layer.Plan.Err(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", layer.Name, err))
		}
	}
	return errors.Join(errs...)
}
