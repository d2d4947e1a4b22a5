package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"jr2.dev/jr2"
)

// up holds the flags of `jr2 up`.
type up struct {
	streams  Streams
	options  jr2.Options
	embedded bool
	output   string
}

func upCommand(streams Streams) *cobra.Command {
	u := &up{streams: streams}
	command := &cobra.Command{
		Use:   "up [DIR]",
		Short: "Converge the Instance folder into the cluster of the kubectl context",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 1 {
				u.options.Dir = args[0]
			}
			return u.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&u.options.Context, "context", "", "kubeconfig context (default: the current one)")
	flags.StringVar(&u.options.Kubeconfig, "kubeconfig", "", "kubeconfig file (default: $KUBECONFIG, else ~/.kube/config)")
	flags.StringVarP(&u.options.Namespace, "namespace", "n", "", "namespace (default: the Instance's name)")
	flags.BoolVar(&u.options.Yes, "yes", false, "agree to a first contact without asking")
	flags.BoolVar(&u.options.Force, "force", false, "rebuild and redeliver every image")
	flags.BoolVar(&u.embedded, "embedded", false, "use a cluster that this command starts itself and keeps for the next time")
	flags.StringVarP(&u.output, "output", "o", "text", "text: lines on stderr; json: one event a line on stdout")
	return command
}

func (u *up) run(ctx context.Context) error {
	out, err := u.printer()
	if err != nil {
		return err
	}
	u.options.Env = u.streams.environ()
	u.options.Confirm = u.confirm()
	u.options.Events = out.event
	if u.embedded {
		embedded, err := startEmbedded(ctx, &u.options, u.streams.Err)
		if err != nil {
			out.failed(err)
			return reported{err}
		}
		defer embedded.close()
	}
	result, err := jr2.Converge(ctx, u.options)
	if err != nil {
		out.failed(err)
		return reported{err}
	}
	out.done(result)
	return nil
}

// confirm asks on the terminal; without one there is nobody to ask.
func (u *up) confirm() func(context.Context, jr2.FirstContact) (bool, error) {
	file, ok := u.streams.In.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return func(ctx context.Context, first jr2.FirstContact) (bool, error) {
		fmt.Fprint(u.streams.Err, first.Question())
		return readAnswer(ctx, file)
	}
}

// readAnswer reads one line and gives up when ctx ends: a read of a terminal cannot be interrupted.
func readAnswer(ctx context.Context, in io.Reader) (bool, error) {
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		answers <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case a := <-answers:
		return jr2.Accepts(a.line), a.err
	}
}
