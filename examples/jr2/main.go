// Command jr2 converges Instances from the command line. It is a caller of the public API and decides nothing that the library does
// not.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

func main() {
	klog.SetLogger(logr.Discard()) // client-go's own log lines are for debugging
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process, whatever is still tidied up after the first
	err := Run(ctx, os.Args[1:], Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()})
	stop()
	os.Exit(exitCode(err))
}

// exitCode is 0 for success, 2 for a plan that would change something, 1 for every failure.
func exitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(errChanges)):
		return exitChanges
	}
	return 1
}
