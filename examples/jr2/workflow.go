package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jr2.dev/jr2"
	"jr2.dev/jr2/placement/provision"
)

// workflowRun holds the flags of `jr2 run`.
type workflowRun struct {
	streams  Streams
	options  jr2.RunOptions
	folder   folderOf
	fits     bool
	embedded bool
	output   string
}

func workflowCommand(streams Streams) *cobra.Command {
	w := &workflowRun{streams: streams}
	command := &cobra.Command{
		Use:   "run WORKFLOW [DIR]",
		Short: "Provision the Workspaces of a Workflow, and say what they wait for",
		Long: "Run makes a Sandbox for each Workspace of the Workflow's Machine, with the images that the last up delivered, waits for room as long\n" +
			"as there is none, and then until all are ready. It does not execute the Machine: that is the Orchestrator's. Its last words are the\n" +
			"run's status, as JSON on stdout. When it is stopped, what never ran is deleted; what ran stays until nobody used it for 30 minutes.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return fmt.Errorf("run takes a workflow, and the folder of its Instance if that is not here: jr2 run WORKFLOW [DIR]")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			if w.options.Workflow = args[0]; len(args) == 2 {
				w.options.Dir = args[1]
			}
			return w.run(command.Context())
		},
	}
	flags := command.Flags()
	clusterFlags(flags, &w.options.Context, &w.options.Kubeconfig)
	flags.StringVarP(&w.options.Namespace, "namespace", "n", "", "namespace (default: the Instance's name)")
	w.folder.flag(flags)
	flags.BoolVar(&w.embedded, "embedded", false, "use the cluster that up --embedded keeps")
	flags.DurationVar(&w.options.PlacingDeadline, "placing-deadline", 0, "end with sandbox_lost when there is no node by then (default: wait for ever)")
	flags.BoolVar(&w.fits, "if-it-fits", false, "end instead of waiting for a quota that is smaller than the Size, where no wait helps")
	flags.BoolVar(&w.options.Hold, "hold", false, "keep the Sandboxes in use until interrupted, then delete them")
	flags.StringToStringVar(&w.options.Repos, "repo", nil, "url of a Repo Slot that is bound per run, SLOT=URL; may be repeated")
	flags.StringVarP(&w.output, "output", "o", "text", "text: lines on stderr, the status on stdout; json: one event a line on stdout, the status last")
	return command
}

func (w *workflowRun) run(ctx context.Context) error {
	out, err := newPrinter(w.output, w.streams)
	if err != nil {
		return err
	}
	w.options.Env, w.options.Events = w.streams.environ(), out.event
	if w.options.Outermost, w.options.Isolate, err = w.folder.reading(w.options.Dir); err != nil {
		return err
	}
	if w.fits {
		w.options.Refuse = provision.NeverFits
	}
	result, err := w.provision(ctx)
	if err == nil && w.output == "text" {
		printJSON(w.streams.Out, result)
	}
	if err == nil {
		out.done(result)
		return nil
	}
	if result != nil && result.Namespace != "" { // it began
		if w.output == "text" {
			printJSON(w.streams.Out, result)
		} else {
			out.done(result)
		}
	}
	if ctx.Err() != nil {
		err = stopped{err}
	}
	out.failed(err)
	return reported{err}
}

func (w *workflowRun) provision(ctx context.Context) (*jr2.RunResult, error) {
	if w.embedded {
		up := jr2.Options{Kubeconfig: w.options.Kubeconfig, Context: w.options.Context, Env: w.options.Env}
		embedded, err := startEmbedded(ctx, &up, w.streams.Err)
		if err != nil {
			return nil, err
		}
		defer embedded.close()
		stop, err := operate(ctx, up.Config)
		if err != nil {
			return nil, err
		}
		defer stop()
		w.options.Config, w.options.Context = up.Config, up.Context
	}
	return jr2.Run(ctx, w.options)
}

// printJSON writes a document for people and programs.
func printJSON(w io.Writer, document any) {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	out.Encode(document) //nolint:errcheck // a closed pipe is the reader's wish
}

// runsLook holds the flags of `jr2 runs` and `jr2 status`.
type runsLook struct {
	streams  Streams
	options  jr2.RunsOptions
	folder   folderOf
	embedded bool
	output   string
}

func (l *runsLook) flags(flags *pflag.FlagSet) {
	clusterFlags(flags, &l.options.Context, &l.options.Kubeconfig)
	flags.StringVarP(&l.options.Namespace, "namespace", "n", "", "namespace (default: the name of the folder's Instance)")
	l.folder.flag(flags)
	flags.BoolVar(&l.embedded, "embedded", false, "use the cluster that up --embedded keeps")
	flags.StringVarP(&l.output, "output", "o", "text", "text: the JSON alone; json: the version, then the result, one a line")
}

func runsCommand(streams Streams) *cobra.Command {
	l := &runsLook{streams: streams}
	command := &cobra.Command{
		Use:   "runs [DIR]",
		Short: "List the live runs as JSON; those with a Workspace that waits for its place are marked",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			l.options.Dir = argument(args, 0)
			return l.run(command.Context(), func(ctx context.Context) (any, error) {
				runs, err := jr2.Runs(ctx, l.options)
				return listed(runs), err
			})
		},
	}
	l.flags(command.Flags())
	return command
}

func statusCommand(streams Streams) *cobra.Command {
	l := &runsLook{streams: streams}
	command := &cobra.Command{
		Use:   "status RUN [DIR]",
		Short: "Show a run as JSON, by its id or a prefix of it: where its Workspaces are and what they wait for",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return fmt.Errorf("status takes a run, and the folder of its Instance if that is not here: jr2 status RUN [DIR] (`jr2 runs` lists them)")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			l.options.Dir = argument(args, 1)
			return l.run(command.Context(), func(ctx context.Context) (any, error) {
				return jr2.Status(ctx, l.options, args[0])
			})
		},
	}
	l.flags(command.Flags())
	return command
}

func argument(args []string, at int) string {
	if at < len(args) {
		return args[at]
	}
	return ""
}

func (l *runsLook) run(ctx context.Context, look func(context.Context) (any, error)) error {
	out, err := newPrinter(l.output, l.streams)
	if err != nil {
		return err
	}
	l.options.Env = l.streams.environ()
	if l.options.Outermost, l.options.Isolate, err = l.folder.reading(l.options.Dir); err != nil {
		return err
	}
	if l.embedded {
		up := jr2.Options{Kubeconfig: l.options.Kubeconfig, Context: l.options.Context, Env: l.options.Env}
		embedded, err := startEmbedded(ctx, &up, l.streams.Err)
		if err != nil {
			return end(ctx, out, nil, err)
		}
		defer embedded.close()
		l.options.Config, l.options.Context = up.Config, up.Context
	}
	found, err := look(ctx)
	if err == nil && l.output == "text" {
		printJSON(l.streams.Out, found)
	}
	return end(ctx, out, found, err)
}

// A listedRun is a run as `jr2 runs` shows it: its mark right after its id.
type listedRun struct {
	ID       string   `json:"runId"`
	Placing  []string `json:"placing,omitempty"`
	Workflow string   `json:"workflow"`
	Started  string   `json:"started"`
}

func listed(runs []provision.Run) []listedRun {
	list := make([]listedRun, len(runs))
	for i, run := range runs {
		list[i] = listedRun{run.ID, run.Placing, run.Workflow, run.Started.Format("2006-01-02T15:04:05Z07:00")}
	}
	return list
}
