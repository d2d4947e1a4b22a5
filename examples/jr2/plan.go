package main

import (
	"context"

	"github.com/spf13/cobra"

	"jr2.dev/jr2"
)

// planCommand has the flags of `up` that decide what a converge does; it asks nobody.
func planCommand(streams Streams) *cobra.Command {
	u := &up{streams: streams}
	command := &cobra.Command{
		Use:   "plan [DIR]",
		Short: "Say what `up` would change, and write nothing",
		Long:  "Plan looks and decides like `up`, and writes nothing. The plan goes to stdout. Exit code 0: nothing would change, 2: something, 1: an error.",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 1 {
				u.options.Dir = args[0]
			}
			return u.plan(command.Context())
		},
	}
	flags := command.Flags()
	u.placeFlags(flags)
	flags.BoolVar(&u.options.Force, "force", false, "plan to rebuild and redeliver every image")
	flags.StringVarP(&u.output, "output", "o", "text", "text: the plan on stdout, what was seen on stderr; json: one event a line on stdout, last the plan")
	return command
}

func (u *up) plan(ctx context.Context) error {
	out, err := newPrinter(u.output, u.streams)
	if err != nil {
		return err
	}
	if err := u.read(); err != nil {
		return err
	}
	u.options.Events = out.event
	reach(&u.options, u.rules)
	plan, err := u.makePlan(ctx)
	if err != nil {
		return end(ctx, out, nil, takeable(namesAdopt(err)))
	}
	return endPlan(ctx, out, plan, takeable(namesAdopt(plan.Err())))
}

func (u *up) makePlan(ctx context.Context) (*jr2.Plan, error) {
	if u.embedded {
		embedded, err := startEmbedded(ctx, &u.options, u.streams.Err)
		if err != nil {
			return nil, err
		}
		defer embedded.close()
	}
	return jr2.MakePlan(ctx, u.options)
}

// errChanges is how a plan ends that would change something: it is no failure, and has an exit code of its own.
type errChanges struct{}

func (errChanges) Error() string { return "something would change" }

// exitChanges is the exit code of errChanges.
const exitChanges = 2

// endPlan prints a plan and tells by its error whether it would change something. A plan that can't be carried out is an error.
func endPlan(ctx context.Context, out ending, plan interface{ Changes() int }, blocked error) error {
	out.done(plan)
	if blocked != nil {
		return end(ctx, out, nil, blocked)
	}
	if plan.Changes() > 0 {
		return reported{errChanges{}}
	}
	return nil
}
