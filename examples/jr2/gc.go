package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"jr2.dev/jr2"
	"jr2.dev/jr2/images"
)

// gcCommand is `jr2 gc`.
func gcCommand(streams Streams) *cobra.Command {
	var options jr2.GCOptions
	var output string
	command := &cobra.Command{
		Use:   "gc",
		Short: "Remove from Docker and kind's nodes the images that converges built and that nothing in the cluster needs any more",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options.Env = streams.environ()
			return runGC(command.Context(), streams, options, output)
		},
	}
	flags := command.Flags()
	clusterFlags(flags, &options.Context, &options.Kubeconfig)
	flags.BoolVar(&options.DryRun, "dry-run", false, "say what would be removed and remove nothing")
	flags.StringVarP(&output, "output", "o", "text", "text: lines on stderr; json: the result on stdout")
	return command
}

func runGC(ctx context.Context, streams Streams, options jr2.GCOptions, output string) error {
	out, err := newPrinter(output, streams)
	if err != nil {
		return err
	}
	swept, err := jr2.GC(ctx, options)
	if swept != nil && output == "text" {
		tellSweeping(streams.Err, swept)
	}
	return end(ctx, out, swept, err)
}

// tellSweeping prints the report: one line for Docker and one for each node, and for a dry run each ref below.
func tellSweeping(w io.Writer, swept *images.Sweeping) {
	fmt.Fprintln(w, swept)
	tellRefs(w, *swept)
	for _, node := range swept.Nodes {
		fmt.Fprintln(w, node)
		tellRefs(w, node.Sweeping)
	}
}

func tellRefs(w io.Writer, swept images.Sweeping) {
	if swept.DryRun {
		for _, ref := range swept.Removed {
			fmt.Fprintln(w, "  "+ref)
		}
	}
}
