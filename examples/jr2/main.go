// Command jr2 converges Instances from the command line. It is a caller of the public API and decides nothing that the library does
// not.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := Run(ctx, os.Args[1:], Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()})
	stop()
	if err != nil {
		os.Exit(1)
	}
}
