package jr2

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/platforms"
	"jr2.dev/jr2/preflight"
)

// Converge brings an Instance into a cluster: it checks the cluster, resolves the platforms from its nodes, builds and delivers the
// Sandbox Images, applies the operator and the Instance's objects, waits for their rollouts, verifies what runs, and publishes the
// Assembly. It may be called again at any time, also after a converge that was cut off.
//
// The Result is never nil: with an error it holds what was seen and done until then. Errors are a *Refusal or another error of the
// package that found the fault, such as an *OccupiedError; errors.As and errors.Is see through all of them. Nothing is applied before the namespace is agreed
// upon and each missing deploy key has a source (else a *DeployKeyError), and after it nothing before the checks have passed.
func Converge(ctx context.Context, opts Options) (*Result, error) {
	run := &converge{opts: opts, result: &Result{}}
	looks := []step{
		run.load, run.typecheck, run.readWhole, run.partsBound, run.sizesFit, run.heldRules, run.walked,
		run.reach, run.bundle, run.kitNames, run.platformNames,
		run.connect, run.floor, run.home, run.agreed, run.further, run.strangers, run.contact, run.chooseDeployKeys, run.namespace, run.podLevelResources,
		run.platforms, run.sandboxNodes, run.kit, run.priority, run.warm, run.secrets,
	}
	if err := in(ctx, looks); err != nil {
		return run.result, err
	}
	held, release, err := run.lock(ctx)
	if err != nil {
		return run.result, err
	}
	defer release()
	does := []step{
		run.stillHome, run.recall, run.images, run.pulls, run.priorityClasses, run.operator, run.tokens, run.certificates, run.makeDeployKeys, run.models, run.objects, run.orchestrator,
		run.assembly, run.repoCache, run.instanceHarness, run.finish,
	}
	defer run.remindOfDeployKeys()
	return run.result, in(held, does)
}

// A step looks, decides or does one thing; what it learned stays in the converge for the steps after it.
type step func(context.Context) error

func in(ctx context.Context, steps []step) error {
	for _, next := range steps {
		err := next(ctx)
		cause := context.Cause(ctx)
		switch {
		case err == nil && cause != nil:
			return cause
		case err != nil && cause != nil && !errors.Is(err, cause):
			return fmt.Errorf("%w: %w", cause, err) // the step knows that it was cut off, and not by what
		case err != nil:
			return err
		}
	}
	return nil
}

// converge is one run: its options and what it knows so far. Each field is written by one step and read by later ones.
type converge struct {
	opts   Options
	result *Result
	retry  apply.Retry                  // how long an apply or a plan waits for what ends by itself; as package apply has it, but for a Check
	whole  bool                         // every finding is wanted, also beside one that refuses: a Check
	choice preflight.Choice             // which findings are wanted: all, but for a Check
	given  []*unstructured.Unstructured // namespaces that are taken to be there; none, but for MinimalRoles

	env       map[string]string // load: the shell over .env
	inst      *config.Instance  // load
	unread    error             // load: why the Instance was read in part only
	faults    []string          // load: the fields that are at fault, by their paths
	sizes     []config.WorkspaceSize
	transport http.RoundTripper // decide: to registries
	found     preflight.Home    // home: whose the namespace is
	seen      *corev1.Namespace // home: as it was read; nil when there is none
	homeless  bool              // home: there is no namespace yet
	asked     bool              // contact: somebody agreed to the namespace
	cluster   cluster           // connect
	server    string            // floor: gitVersion
	set       platforms.Set     // platforms
	nodes     []corev1.Node     // platforms: nil when the configuration names the set
	input     render.Input      // kit: grows with the image map and the signing key
	ran       bool              // recall: the Instance has an Orchestrator from an earlier converge
	previous  *images.Record    // recall: which images it runs; nil when nothing says so
	replaced  []string          // recall: which images it ran before those
	decision  *images.Decision  // images: which to build; nil when none is needed
	record    images.Record     // images: what it will run
	met       *metOperator      // operator: as it was before
	digests   map[string]string // images: content digests of the image contexts by folder

	keys   *[]preflight.DeployKey // deployKeys: the keys of repositories that are cloned over ssh
	chosen []chosenKey            // chooseDeployKeys: those that are to be made

	// unseen takes what may not be looked at for absent, where that asks for more: for roles that do.
	unseen bool
	// roles is set by further when rights are missing: the roles with which this user could converge.
	roles func(context.Context) string
}

// Result is what a converge saw and did.
type Result struct {
	Instance   string `json:"instance"`
	Context    string `json:"context"`
	Namespace  string `json:"namespace"`
	Kubernetes string `json:"kubernetes"`
	// Platforms is the set that images are built for.
	Platforms []string `json:"platforms"`
	// SandboxNodes are the nodes on which a Sandbox can run now; nil when they were not read.
	SandboxNodes []string `json:"sandboxNodes,omitempty"`
	// Findings are the warnings and notes of the checks.
	Findings []preflight.Finding `json:"findings,omitempty"`
	// Images are the Sandbox Images by key, with what was built.
	Images map[string]images.Delivered `json:"images,omitempty"`
	// Built counts the images that were built and pushed.
	Built int `json:"built"`
	// Objects are the objects of the cluster that this Instance needs, and what was done to each.
	Objects []apply.ObjectResult `json:"objects"`
	// DeployKeys are the keys of repositories that were put into Secrets, without the private ones.
	DeployKeys []DeployKeyMade `json:"deployKeys,omitempty"`
	// Assembly is the hash of the current Assembly.
	Assembly  string   `json:"assembly"`
	Workflows []string `json:"workflows"`
	// Changed counts objects written or pruned, images built, keys made and Assemblies published; 0 means that the cluster was as asked.
	Changed int `json:"changed"`
}

func (c *converge) tell(e Event) {
	if c.opts.Events != nil {
		c.opts.Events(e)
	}
}

// note keeps a warning in the result and tells it.
func (c *converge) note(finding preflight.Finding) {
	c.result.Findings = append(c.result.Findings, finding)
	c.tell(Noted{Message: finding.Message})
}
