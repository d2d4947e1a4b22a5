package preflight

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// A Check looks at one thing and says what is wrong with it. Checks know nothing of each other, so they can be run together, by Run, or alone.
// A program may write its own.
type Check interface {
	// Name says what is looked at, for the Note that nobody could look: "rights", "webhooks".
	Name() string
	// Codes are those of the findings that it may come to.
	Codes() []string
	// Look returns what is wrong, in an order in which equal clusters repeat it. An error says that it could not look; what it found until
	// then counts. "Not found" is never inferred from another error. It ends soon after ctx has: whoever runs it waits for it.
	//
	// Run takes a finding whose Severity is none of the three, or empty, as Refuse: what somebody found and nobody weighed must not pass unseen. One
	// without a Code gets the check's name as its code, by which it can be chosen.
	Look(ctx context.Context) ([]Finding, error)
}

// NewCheck makes a Check of a function.
func NewCheck(name string, look func(context.Context) ([]Finding, error), codes ...string) Check {
	return check{name: name, look: look, codes: codes}
}

type check struct {
	name  string
	codes []string
	look  func(context.Context) ([]Finding, error)
}

func (c check) Name() string                                { return c.name }
func (c check) Codes() []string                             { return c.codes }
func (c check) Look(ctx context.Context) ([]Finding, error) { return c.look(ctx) }

// A Choice chooses findings by their codes. The zero Choice takes all.
type Choice struct {
	// Only, when not empty, takes findings of these codes, and those that say what nobody could look at.
	Only []string
	// Skip leaves findings of these codes out.
	Skip []string
}

// Takes says whether findings of a code are wanted. That a check could not look is wanted unless it is skipped by name: a choice of codes
// must not turn "nobody looked" into "fine".
func (c Choice) Takes(code string) bool {
	if slices.Contains(c.Skip, code) {
		return false
	}
	return len(c.Only) == 0 || code == CodeNotLookedAt || slices.Contains(c.Only, code)
}

// Of are the findings that the choice takes, in their order.
func (c Choice) Of(findings []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return !c.Takes(f.Code) })
}

// wants says whether a check can come to anything that is taken.
func (c Choice) wants(check Check) bool {
	codes := check.Codes()
	return len(codes) == 0 || slices.ContainsFunc(codes, func(code string) bool { return code != CodeNotLookedAt && c.Takes(code) })
}

// RunOptions say how checks are run. The zero value runs all of them, eight at a time.
type RunOptions struct {
	Choice
	// Limit is how many checks look at once. Default: 8.
	Limit int
}

const defaultLimit = 8

// Run runs checks beside each other and returns their findings in the order of the checks, so equal clusters give equal lists. A check that
// could not look gives one Note with its reason, beside what it found until then; so does one that panics, whose fault must not end a program that
// may be holding a lock, and an entry that is nil. The error is that of ctx alone; the findings of the checks that had ended by then come with it.
func Run(ctx context.Context, checks []Check, opts RunOptions) ([]Finding, error) {
	limit := opts.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	found := make([][]Finding, len(checks))
	var group errgroup.Group
	group.SetLimit(limit)
	for i, check := range checks {
		if check == nil {
			found[i] = []Finding{unlooked(fmt.Sprint(i), "it is nil")}
			continue
		}
		group.Go(func() error {
			found[i] = looked(ctx, check, opts.Choice)
			return nil
		})
	}
	_ = group.Wait()
	return opts.Of(slices.Concat(found...)), context.Cause(ctx)
}

func looked(ctx context.Context, check Check, choice Choice) (findings []Finding) {
	name := "?"
	defer func() {
		if fault := recover(); fault != nil {
			findings = append(findings, unlooked(name, fmt.Sprintf("it panicked: %v", fault)))
		}
	}()
	name = check.Name()
	if !choice.wants(check) || ctx.Err() != nil {
		return nil
	}
	findings, err := check.Look(ctx)
	if err != nil && ctx.Err() == nil {
		findings = append(findings, unlooked(name, err.Error()))
	}
	return whole(name, findings)
}

// whole fills in what findings of a check leave out: a severity that nobody knows would else count for nothing.
func whole(name string, findings []Finding) []Finding {
	findings = slices.Clone(findings) // a check may keep its list
	for i := range findings {
		f := &findings[i]
		if f.Severity != Refuse && f.Severity != Warn && f.Severity != Note {
			f.Severity = Refuse
		}
		if f.Code == "" {
			f.Code = name
		}
	}
	return findings
}

// unlooked is the Note of a check that could not look.
func unlooked(name, why string) Finding {
	return notLooked("check "+name, name+": nobody could look: "+why)
}
