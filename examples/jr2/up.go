package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"jr2.dev/jr2"
	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/preflight"
)

// up holds the flags of `jr2 up`.
type up struct {
	streams   Streams
	options   jr2.Options
	rules     images.RegistryRules
	folder    folderOf
	embedded  bool
	deployKey string
	output    string
}

func upCommand(streams Streams) *cobra.Command {
	u := &up{streams: streams}
	var unasked bool
	command := &cobra.Command{
		Use:   "up [DIR]",
		Short: "Converge the Instance folder into the cluster of the kubectl context",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 1 {
				u.options.Dir = args[0]
			}
			if unasked {
				u.options.Models = jr2.ProbeNever
			}
			return u.run(command.Context())
		},
	}
	flags := command.Flags()
	u.placeFlags(flags)
	builderFlags(flags, &u.options)
	flags.BoolVar(&u.options.Yes, "yes", false, "agree to a first contact without asking, where nothing of others is in the namespace, and to the generation of deploy keys")
	flags.StringVar(&u.deployKey, "deploy-key", "", "the private key of repositories that are cloned over ssh, where its Secret is missing: generate, or a path (default: asked)")
	flags.BoolVar(&unasked, "no-probe", false, "ask no model that an Agent names; else each is asked by a pod in the cluster, and a wrong one stops the converge")
	flags.BoolVar(&u.options.Force, "force", false, "rebuild and redeliver every image")
	flags.StringVarP(&u.output, "output", "o", "text", "text: lines on stderr; json: one event a line on stdout")
	return command
}

// placeFlags say where a converge or a plan goes, and whose fields it takes.
func (u *up) placeFlags(flags *pflag.FlagSet) {
	clusterFlags(flags, &u.options.Context, &u.options.Kubeconfig)
	flags.StringVarP(&u.options.Namespace, "namespace", "n", "", "namespace (default: the Instance's name)")
	flags.BoolVar(&u.embedded, "embedded", false, "use a cluster that this command starts itself and keeps for the next time")
	flags.StringSliceVar(&u.options.TakeFrom, "take-from", nil, "field managers whose fields are taken over, such as kubectl")
	flags.BoolVar(&u.options.AdoptNamespace, "adopt-namespace", false, "agree to a first contact with a namespace that is there and holds what is not the Instance's")
	flags.BoolVar(&u.options.Adopt, "adopt", false, "take over objects that are there under names of the Instance's or the operator's and that jr2 did not make")
	registryFlags(flags, &u.rules)
	u.folder.flag(flags)
}

// read says in which environment and how far the folder is read.
func (u *up) read() (err error) {
	u.options.Env, u.options.Trusted = u.streams.environ(), !u.folder.untrusted
	u.options.Outermost, u.options.Isolate, err = u.folder.reading(u.options.Dir)
	return err
}

func (u *up) run(ctx context.Context) error {
	out, err := newPrinter(u.output, u.streams)
	if err != nil {
		return err
	}
	if err := u.read(); err != nil {
		return err
	}
	u.options.Confirm = u.confirm()
	u.options.Events = out.event
	u.askForKeys(ctx)
	reach(&u.options, u.rules)
	result, err := u.converge(ctx)
	if lacksRight(err) {
		err = pointed{err}
	}
	return end(ctx, out, result, takeable(namesAdopt(err)))
}

// namesAdopt names the flag by which a converge takes over what somebody else made.
func namesAdopt(err error) error {
	if errors.As(err, new(*apply.UnownedError)) {
		return fmt.Errorf("%w — or take it over with --adopt; jr2 plan --adopt shows what changes", err)
	}
	return err
}

// pointed is a converge that ended for want of a right: the next one may be missing too, and a check names all.
type pointed struct{ err error }

func (p pointed) Error() string {
	return p.err.Error() + "\n`jr2 check` names every right that is missing, and the smallest roles for an admin to give"
}

func (p pointed) Unwrap() error { return p.err }

func lacksRight(err error) bool {
	_, _, refused := preflight.RefusedRight(err)
	return refused || apply.Classify(err) == apply.ClassEscalation
}

func (u *up) converge(ctx context.Context) (*jr2.Result, error) {
	if u.embedded {
		embedded, err := startEmbedded(ctx, &u.options, u.streams.Err)
		if err != nil {
			return nil, err
		}
		defer embedded.close()
	}
	return jr2.Converge(ctx, u.options)
}

// confirm asks on the terminal; without one there is nobody to ask.
func (u *up) confirm() func(context.Context, jr2.FirstContact) (bool, error) {
	return asker[jr2.FirstContact](u.streams)
}

// asker asks a question on the terminal; without one there is nobody to ask, and it is nil.
func asker[Q interface{ Question() string }](streams Streams) func(context.Context, Q) (bool, error) {
	tty := terminalOf(streams)
	if tty == nil {
		return nil
	}
	return func(ctx context.Context, about Q) (bool, error) {
		answer, err := ask(ctx, tty, streams.Err, about.Question())
		return jr2.Accepts(answer), err
	}
}

// terminalOf is the terminal at which somebody answers; nil without one.
func terminalOf(streams Streams) *os.File {
	file, ok := streams.In.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return file
}

// ask puts a question and returns the line that answers it, without blanks around.
func ask(ctx context.Context, in io.Reader, out io.Writer, question string) (string, error) {
	fmt.Fprint(out, question)
	answer, err := readLine(ctx, in)
	if !strings.HasSuffix(answer, "\n") {
		fmt.Fprintln(out) // nobody ended the line of the question
	}
	return strings.TrimSpace(answer), err
}

// readLine reads one line, or what stands before the end, and gives up when ctx ends.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	return untilDone(ctx, func() (string, error) {
		text, err := bufio.NewReader(in).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return text, err
	})
}

// untilDone waits for a read, or for the end of ctx: a read of a terminal cannot be interrupted, and goes on then with nobody to hear of it.
func untilDone(ctx context.Context, read func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := read()
		answers <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case got := <-answers:
		return got.text, got.err
	}
}
