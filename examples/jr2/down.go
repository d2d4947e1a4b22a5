package main

import (
	"context"

	"github.com/spf13/cobra"

	"jr2.dev/jr2"
)

// down holds the flags of `jr2 down`.
type down struct {
	streams  Streams
	options  jr2.DownOptions
	folder   folderOf
	embedded bool
	output   string
}

func downCommand(streams Streams) *cobra.Command {
	d := &down{streams: streams}
	command := &cobra.Command{
		Use:   "down [DIR]",
		Short: "Remove the Instance of the folder from the cluster of the kubectl context",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 1 {
				d.options.Dir = args[0]
			}
			return d.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.BoolVar(&d.options.All, "all", false, "remove the operator too, and with it the Sandboxes and Repos of every Instance on the cluster")
	clusterFlags(flags, &d.options.Context, &d.options.Kubeconfig)
	flags.StringVarP(&d.options.Namespace, "namespace", "n", "", "namespace (default: the Instance's name)")
	flags.DurationVar(&d.options.Timeout, "timeout", 0, "how long to wait for what is deleted (default: as long as pods may drain, 13m)")
	flags.BoolVar(&d.options.Yes, "yes", false, "remove without asking")
	d.folder.flag(flags)
	flags.BoolVar(&d.embedded, "embedded", false, "use the cluster that up --embedded keeps")
	flags.StringVarP(&d.output, "output", "o", "text", "text: lines on stderr; json: one event a line on stdout")
	return command
}

func (d *down) run(ctx context.Context) error {
	out, err := newPrinter(d.output, d.streams)
	if err != nil {
		return err
	}
	d.options.Env = d.streams.environ()
	if d.options.Outermost, d.options.Isolate, err = d.folder.reading(d.options.Dir); err != nil {
		return err
	}
	d.options.Confirm = asker[jr2.Removal](d.streams)
	d.options.Events = out.event
	result, err := d.remove(ctx)
	return end(ctx, out, result, err)
}

func (d *down) remove(ctx context.Context) (*jr2.DownResult, error) {
	if d.embedded {
		up := jr2.Options{Kubeconfig: d.options.Kubeconfig, Context: d.options.Context, Env: d.options.Env}
		embedded, err := startEmbedded(ctx, &up, d.streams.Err)
		if err != nil {
			return nil, err
		}
		defer embedded.close()
		d.options.Config, d.options.Context = up.Config, up.Context
	}
	return jr2.Down(ctx, d.options)
}
