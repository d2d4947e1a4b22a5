package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"jr2.dev/jr2"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Env is the environment as "NAME=value".
	Env []string
}

// environ returns the environment by name.
func (s Streams) environ() map[string]string {
	env := make(map[string]string, len(s.Env))
	for _, entry := range s.Env {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return env
}

// reported is an error that the command has already told the user.
type reported struct{ error }

func (r reported) Unwrap() error { return r.error }

// Run runs one command. Its errors are already written to Streams.Err.
func Run(ctx context.Context, args []string, streams Streams) error {
	raw := streams
	streams.Out, streams.Err = jr2.Terminal(streams.Out), jr2.Terminal(streams.Err) // the one way out for text of others
	root := &cobra.Command{
		Use:           "jr2",
		Short:         "Converge Instances, and sets of manifests, into Kubernetes clusters",
		SilenceErrors: true,
		SilenceUsage:  true,
		// A failure is one line.
		DisableSuggestions: true,
	}
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.AddCommand(upCommand(streams), planCommand(streams), checkCommand(streams), downCommand(streams), applyCommand(streams), roomCommand(streams))
	root.AddCommand(gcCommand(streams), evaluateCommand(raw))
	root.AddCommand(workflowCommand(streams), runsCommand(streams), statusCommand(streams))
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.As(err, new(reported)) {
		fmt.Fprintln(streams.Err, jr2.NarrateError(err))
	}
	return err
}
