package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	moby "github.com/moby/moby/client"
	"sigs.k8s.io/kind/pkg/exec"
)

// A commandError says that a command on a node failed.
type commandError struct {
	command []string
	status  int
	output  string // the end of what it wrote to its standard error
}

func (e *commandError) Error() string {
	text := fmt.Sprintf("%s ended with status %d", strings.Join(e.command, " "), e.status)
	if e.output != "" {
		text += ": " + e.output
	}
	return text
}

// maxOutput is how much of a failed command's words an error shows.
const maxOutput = 2000

// run runs a command on the node through the Docker Engine. stdin and stdout may be nil.
func (n *KindNode) run(ctx context.Context, stdin io.Reader, stdout io.Writer, command ...string) error {
	err := n.exec(ctx, stdin, stdout, command)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (n *KindNode) exec(ctx context.Context, stdin io.Reader, stdout io.Writer, command []string) error {
	if stdout == nil {
		stdout = io.Discard
	}
	created, err := n.api.ExecCreate(ctx, n.id, moby.ExecCreateOptions{
		Cmd: command, AttachStdin: stdin != nil, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return err
	}
	attached, err := n.api.ExecAttach(ctx, created.ID, moby.ExecAttachOptions{})
	if err != nil {
		return err
	}
	defer attached.Close()
	defer context.AfterFunc(ctx, attached.Close)()
	sent := feed(attached, stdin)
	var words bytes.Buffer
	_, read := stdcopy.StdCopy(stdout, &words, attached.Reader)
	attached.Close() // what still waits to be sent has nobody to read it
	unsent := <-sent
	status, err := n.status(ctx, created.ID)
	switch {
	case err != nil:
		return errors.Join(read, err)
	case status != 0: // which may have broken the connection while there was more to send
		return &commandError{command: command, status: status, output: end(words.String())}
	case read != nil:
		return read
	}
	return unsent
}

// feed sends stdin to a command, and then its end, beside what reads the command's output. The channel gives one error: of reading stdin.
func feed(attached moby.ExecAttachResult, stdin io.Reader) <-chan error {
	sent := make(chan error, 1)
	if stdin == nil {
		sent <- nil
		return sent
	}
	go func() {
		in := &failing{inner: stdin}
		io.Copy(attached.Conn, in) //nolint:errcheck // what the command did not want to read is its own affair
		attached.CloseWrite()      //nolint:errcheck // as above
		sent <- in.err
	}()
	return sent
}

// failing remembers why reading failed.
type failing struct {
	inner io.Reader
	err   error
}

// Read implements io.Reader.
func (f *failing) Read(into []byte) (int, error) {
	read, err := f.inner.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return read, err
}

// status waits for the exit status of a command whose output has ended. The engine may need a moment to notice.
func (n *KindNode) status(ctx context.Context, id string) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errors.New("the Docker Engine does not say how the command ended"))
	defer cancel()
	for wait := 5 * time.Millisecond; ; wait *= 2 {
		state, err := n.api.ExecInspect(ctx, id, moby.ExecInspectOptions{})
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if err != nil || !state.Running {
			return state.ExitCode, err
		}
		if err := sleep(ctx, wait); err != nil {
			return 0, err
		}
	}
}

// end is the last part of text, on one line, without the warnings that containerd's commands give on every call.
func end(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "level=warning") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	text = strings.TrimSpace(strings.Join(lines, " "))
	if len(text) > maxOutput {
		text = "… " + strings.ToValidUTF8(text[len(text)-maxOutput:], "")
	}
	return text
}

// kindNode gives a node to kind's library, whose functions take no context.
type kindNode struct {
	*KindNode
	ctx context.Context
}

// String implements nodes.Node.
func (n kindNode) String() string { return n.name }

// Role implements nodes.Node.
func (n kindNode) Role() (string, error) { return n.role, nil }

// IP implements nodes.Node. Nothing here needs it.
func (n kindNode) IP() (ipv4, ipv6 string, err error) { return "", "", errors.ErrUnsupported }

// SerialLogs implements nodes.Node. Nothing here needs it.
func (n kindNode) SerialLogs(io.Writer) error { return errors.ErrUnsupported }

// Command implements exec.Cmder.
func (n kindNode) Command(command string, args ...string) exec.Cmd {
	return n.CommandContext(n.ctx, command, args...)
}

// CommandContext implements exec.Cmder.
func (n kindNode) CommandContext(ctx context.Context, command string, args ...string) exec.Cmd {
	return &kindCommand{node: n.KindNode, ctx: ctx, command: append([]string{command}, args...)}
}

// kindCommand is a command that has not run yet.
type kindCommand struct {
	node    *KindNode
	ctx     context.Context
	command []string
	stdin   io.Reader
	stdout  io.Writer
}

// Run implements exec.Cmd.
func (c *kindCommand) Run() error { return c.node.run(c.ctx, c.stdin, c.stdout, c.command...) }

// SetEnv implements exec.Cmd.
func (c *kindCommand) SetEnv(env ...string) exec.Cmd {
	c.command = append(append([]string{"env"}, env...), c.command...)
	return c
}

// SetStdin implements exec.Cmd.
func (c *kindCommand) SetStdin(r io.Reader) exec.Cmd { c.stdin = r; return c }

// SetStdout implements exec.Cmd.
func (c *kindCommand) SetStdout(w io.Writer) exec.Cmd { c.stdout = w; return c }

// SetStderr implements exec.Cmd. The standard error stands in the error of a command that fails.
func (c *kindCommand) SetStderr(io.Writer) exec.Cmd { return c }
