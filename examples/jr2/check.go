package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"jr2.dev/jr2"
	"jr2.dev/jr2/preflight"
)

// checkCommand has the flags of `plan`, and chooses findings by code.
func checkCommand(streams Streams) *cobra.Command {
	u := &up{streams: streams}
	var choice preflight.Choice
	var probe bool
	command := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Say everything that stands in the way of `up`, at once, and write nothing",
		Long: "Check makes the looks of `up` and does not end at the first that refuses. The findings go to stdout. Exit code 0: nothing refuses " +
			"(there may be warnings), 1: something does, or nobody could look.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 1 {
				u.options.Dir = args[0]
			}
			if err := knownCodes(choice); err != nil {
				return err
			}
			if probe {
				u.options.Models = jr2.ProbeInChecks
			}
			return u.check(command.Context(), choice)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&probe, "probe", false, "ask each model that an Agent names too, as up does: by a pod in the cluster, which is removed again")
	u.placeFlags(flags)
	flags.StringSliceVar(&choice.Only, "only", nil, "codes of the findings to look for, beside what could not be looked at (default: all)")
	flags.StringSliceVar(&choice.Skip, "skip", nil, "codes of findings to leave out")
	flags.StringVarP(&u.output, "output", "o", "text", "text: the findings on stdout; json: the report as the last line on stdout")
	return command
}

func (u *up) check(ctx context.Context, choice preflight.Choice) error {
	out, err := newPrinter(u.output, u.streams)
	if err != nil {
		return err
	}
	if err := u.read(); err != nil {
		return err
	}
	reach(&u.options, u.rules)
	report, err := u.makeReport(ctx, choice)
	if err != nil {
		return end(ctx, out, nil, err)
	}
	out.done(report)
	if err := report.Err(); err != nil {
		return reported{err}
	}
	return nil
}

func (u *up) makeReport(ctx context.Context, choice preflight.Choice) (*jr2.Report, error) {
	if u.embedded {
		embedded, err := startEmbedded(ctx, &u.options, u.streams.Err)
		if err != nil {
			return nil, err
		}
		defer embedded.close()
	}
	return jr2.Check(ctx, u.options, choice)
}

// knownCodes refuses a code that no finding has: a choice of nothing would say that nothing is wrong.
func knownCodes(choice preflight.Choice) error {
	for _, code := range slices.Concat(choice.Only, choice.Skip) {
		if !slices.Contains(preflight.Codes(), code) {
			return fmt.Errorf("no finding has the code %q — codes: %s", code, strings.Join(preflight.Codes(), ", "))
		}
	}
	return nil
}
