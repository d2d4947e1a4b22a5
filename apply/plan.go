package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// PlanVersion is the version of a Plan's JSON form. It moves when a reader of the last one would go wrong.
const PlanVersion = 1

// A Plan is what Apply would do to a cluster as it was seen. It holds no value of a Secret, so it may be printed and stored.
type Plan struct {
	Version int    `json:"version"`
	Set     string `json:"set"` // Set.ID
	// Steps holds the objects of the set in the order of the set, then those that left it.
	Steps []Step `json:"steps"`
	// Accident says why what the plan prunes looks like an accident; nil when it does not.
	Accident *AccidentError `json:"accident,omitempty"`

	// A closure, and not a field, so that no printer or comparer of Go values walks into the Secrets of the set.
	input func() (*Set, Options)
}

// An Intent is what Apply would do to one object.
type Intent string

const (
	WillCreate    Intent = "create"
	WillConfigure Intent = "configure"
	WillLeave     Intent = "unchanged"
	WillPrune     Intent = "prune"
	// WillAdopt is an object that exists and is of no set: its fields change as under WillConfigure, or none does.
	WillAdopt Intent = "adopt"
	// WillRecreate is an object to delete and make again; Why names the immutable field.
	WillRecreate Intent = "recreate"
	// WillMint is a Secret for which values are made; Why names the keys.
	WillMint Intent = "mint"
	// WillRun is a hook that runs.
	WillRun  Intent = "run"
	WillKeep Intent = "keep" // it left the set and stays; Why says for which reason
	// WillArrive is an object to create that the server can't judge before the set's own namespace, kind or other ground is there.
	WillArrive Intent = "arrives"
	// WillConflict is an object that others hold: fields of it (Conflicts), or all of it (another set). Apply refuses.
	WillConflict Intent = "conflict"
	// WillFail is an object that the server refuses; Why says so in its words. Apply refuses.
	WillFail Intent = "refused"
	// StillGoing is an object that left the set, was deleted, and is held by finalizers.
	StillGoing Intent = "terminating"
)

// A Step is what a Plan says about one object.
type Step struct {
	Ref       Ref           `json:"ref"`
	Intent    Intent        `json:"intent"`
	Why       string        `json:"why,omitempty"`
	Fields    []FieldChange `json:"fields,omitempty"` // of what exists and changes; may be empty when only ownership is noted
	Conflicts []Conflict    `json:"conflicts,omitempty"`
	// Finalizers keep an object of this name that is being deleted: an Apply waits until they are done.
	Finalizers []string `json:"finalizers,omitempty"`

	uid      types.UID                     // of the live object
	version  string                        // of the live object that was compared
	compared *metav1.PartialObjectMetadata // the live object, when a dry run found WillLeave
	force    bool                          // the conflicts that there are may be taken
	lean     func() order                  // what is sent when fields are left to others; a closure, as Plan.input
	err      error
}

// whyQuota comes before the server's word in Why.
const whyQuota = "it waits for the quota: "

// WaitsForQuota is the server's word when a quota has no room for the object now, so that Apply would wait; empty otherwise.
func (s Step) WaitsForQuota() string {
	_, words, _ := strings.Cut(s.Why, whyQuota)
	return words
}

// MakePlan looks at the cluster and says what Apply would do with these options. It writes nothing: objects that the metadata show to
// be as asked cost no request of their own, the others one read and one dry run. It works on an empty cluster. Objects that Apply
// could not write are steps too; see Err. An error means that there is no plan, because the cluster could not be looked at.
func MakePlan(ctx context.Context, cfg *rest.Config, set *Set, opts Options) (*Plan, error) {
	plan, _, err := makePlan(ctx, cfg, set, opts)
	return plan, err
}

// makePlan returns also the run that looked, ready to carry the plan out.
func makePlan(ctx context.Context, cfg *rest.Config, set *Set, opts Options) (*Plan, *run, error) {
	plan := &Plan{Version: PlanVersion, Set: set.ID(), input: func() (*Set, Options) { return set, opts }}
	looking := opts
	looking.DryRun = true
	looking.Events = withoutDeeds(opts.Events)
	r, err := newRun(cfg, set, looking)
	if err != nil {
		return nil, nil, err
	}
	if err := r.look(ctx); err != nil {
		return nil, nil, err
	}
	plan.Steps = make([]Step, len(r.orders))
	err = r.each(len(r.orders), func(i int) error {
		plan.Steps[i] = r.step(ctx, r.orders[i])
		return ctx.Err()
	})
	if err != nil {
		return nil, nil, context.Cause(ctx)
	}
	ties := r.newTies(r.arrivesWith)
	for i, o := range r.orders {
		plan.Steps[i] = ties.foresee(ctx, o, plan.Steps[i])
	}
	if opts.Prune && !opts.Shared {
		gone, err := r.prune(ctx, maps.Clone(r.inv.records))
		if err != nil {
			return nil, nil, err
		}
		for _, g := range gone {
			plan.Steps = append(plan.Steps, Step{Ref: g.Ref, Intent: intentOf(g.Action), Why: g.Why, uid: types.UID(g.UID)})
		}
		plan.Accident = r.accident(plan.going())
	}
	return plan, r, nil
}

// withoutDeeds passes on what a look can tell; nothing is applied or removed by it.
func withoutDeeds(events func(Event)) func(Event) {
	if events == nil {
		return nil
	}
	return func(e Event) {
		switch e.(type) {
		case Applied, Removed:
		default:
			events(e)
		}
	}
}

func intentOf(a Action) Intent {
	switch a {
	case Pruned:
		return WillPrune
	case Terminating:
		return StillGoing
	}
	return WillKeep
}

// Changes counts the steps that would change the cluster.
func (p *Plan) Changes() int {
	n := 0
	for _, s := range p.Steps {
		switch s.Intent {
		case WillCreate, WillConfigure, WillPrune, WillArrive, WillAdopt, WillRecreate, WillMint, WillRun:
			n++
		}
	}
	return n
}

// Count counts the steps with one intent.
func (p *Plan) Count(i Intent) int {
	n := 0
	for _, s := range p.Steps {
		if s.Intent == i {
			n++
		}
	}
	return n
}

// Step returns the step about an object, or false when the plan has none. Versions are not compared.
func (p *Plan) Step(r Ref) (Step, bool) {
	for _, s := range p.Steps {
		if s.Ref.key() == r.key() {
			return s, true
		}
	}
	return Step{}, false
}

// going lists what the plan prunes.
func (p *Plan) going() []Ref {
	var goes []Ref
	for _, s := range p.Steps {
		if s.Intent == WillPrune {
			goes = append(goes, s.Ref)
		}
	}
	return goes
}

// Err joins why the plan can't be carried out: *ConflictError, *OwnedError or *ObjectError for each object in the way, and the
// *AccidentError, unless the plan was made with Options.AllowPrune; nil when it can.
func (p *Plan) Err() error {
	err := p.inTheWay()
	if p.Accident == nil {
		return err
	}
	if p.input != nil {
		if _, opts := p.input(); opts.AllowPrune {
			return err
		}
	}
	return errors.Join(err, p.Accident)
}

func (p *Plan) inTheWay() error {
	var errs []error
	for _, s := range p.Steps {
		errs = append(errs, s.err)
	}
	return errors.Join(errs...)
}

// A MovedError says that the cluster is not any more as the plan saw it.
type MovedError struct {
	// Plan is what would be done now.
	Plan *Plan
	// Moved are the objects about which the two plans differ.
	Moved []Ref
}

func (e *MovedError) Error() string {
	names := make([]string, len(e.Moved))
	for i, r := range e.Moved {
		names[i] = r.String()
	}
	return fmt.Sprintf("the cluster moved since the plan was made, which does not hold any more for %s", strings.Join(names, ", "))
}

// Apply does what the plan says, with the options that it was made with. It looks again first: when another plan would come out, it
// writes nothing and returns a *MovedError. Each object that exists is written only in the version for which that was found; one that
// moves while the plan is carried out ends it, with the Outcome until then, unless the same is to be done to it still. An object that
// somebody makes between the look and the write is adopted or refused, as Apply does. A plan with an Err is refused with that; about an Accident
// Options.ConfirmPrune is asked.
func (p *Plan) Apply(ctx context.Context, cfg *rest.Config) (*Outcome, error) {
	if p.input == nil {
		return &Outcome{}, errNoPlan
	}
	set, opts := p.input()
	blocked := p.Err()
	if opts.ConfirmPrune != nil {
		blocked = p.inTheWay()
	}
	if blocked != nil {
		return &Outcome{}, blocked
	}
	next, r, err := makePlan(ctx, cfg, set, opts)
	if err != nil {
		return &Outcome{}, err
	}
	if moved := movedBetween(p, next); len(moved) > 0 {
		return &Outcome{}, &MovedError{Plan: next, Moved: moved}
	}
	r.carry(next, opts)
	err = r.write(ctx)
	if one := (*movedObject)(nil); errors.As(err, &one) {
		now, _, planErr := makePlan(ctx, cfg, set, opts)
		return r.outcome(), errors.Join(&MovedError{Plan: now, Moved: []Ref{one.ref}}, planErr)
	}
	return r.outcome(), err
}

var errNoPlan = errors.New("the plan was not made by MakePlan, so that it can be read and not applied")

// movedBetween lists the objects about which two plans differ.
func movedBetween(a, b *Plan) []Ref {
	var moved []Ref
	for _, s := range b.Steps {
		if was, ok := a.Step(s.Ref); !ok || !was.sameAs(s) {
			moved = append(moved, s.Ref)
		}
	}
	for _, s := range a.Steps {
		if _, ok := b.Step(s.Ref); !ok {
			moved = append(moved, s.Ref)
		}
	}
	return moved
}

// sameAs says that two steps do the same. Hidden values compare by the version of their object.
func (s Step) sameAs(t Step) bool {
	same := s.Intent == t.Intent && s.uid == t.uid && s.force == t.force && reflect.DeepEqual(s.Conflicts, t.Conflicts) && reflect.DeepEqual(s.Fields, t.Fields)
	for _, f := range s.Fields {
		if f.Old.Hidden() || f.New.Hidden() {
			return same && s.version == t.version
		}
	}
	return same
}
