package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if errors.Is(err, errBroken) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(2)
	}
}

// errBroken says that something was measured that may not be.
var errBroken = errors.New("a limit is broken")

type options struct {
	sizes    []int
	rounds   int
	peersTo  int    // the largest size at which the peers take part
	peers    string // the folder of their modules
	profiles string
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("benchmark", flag.ContinueOnError)
	sizes := flags.String("objects", "1000", "how many objects; several sizes with commas between them (limits exist for 100, 1000 and 5000)")
	flags.IntVar(&o.rounds, "rounds", 3, "how many times all engines start from an empty namespace, at each size")
	flags.IntVar(&o.peersTo, "peers-to", 1000, "the largest size at which the peers take part")
	flags.StringVar(&o.peers, "peers", "peers", "the folder with a module for each peer that is a command")
	flags.StringVar(&o.profiles, "profiles", "", "write CPU and heap profiles of package apply into this folder instead of measuring")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for _, s := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 {
			return o, fmt.Errorf("-objects: %q is no number of objects", s)
		}
		o.sizes = append(o.sizes, n)
	}
	if o.rounds < 1 {
		return o, errors.New("-rounds: at least 1")
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	started := time.Now()
	logf := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%5.0fs "+format+"\n", append([]any{time.Since(started).Seconds()}, args...)...)
	}
	if o.profiles != "" {
		return profile(ctx, o, logf)
	}
	engines, missing, err := allEngines(ctx, o.peers, logf)
	if err != nil {
		return err
	}
	measured := results{}
	for number := range o.rounds {
		for _, size := range o.sizes {
			if err := round(ctx, number, size, taking(engines, size, o.peersTo), measured, number == 0, logf); err != nil {
				return err
			}
		}
	}
	printTables(os.Stdout, measured, o.sizes, engines, missing)
	if slices.ContainsFunc(judge(measured, o.sizes, engines), func(v verdict) bool { return !v.holds() }) {
		return errBroken
	}
	return nil
}

// allEngines builds the commands. One that can't be built is missing, with the reason.
func allEngines(ctx context.Context, peers string, logf func(string, ...any)) (engines []engine, missing []string, err error) {
	engines = []engine{raw(), ours(), oursFromFiles(), fluxSSA()}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, nil, err
	}
	for _, c := range commands() {
		logf("building %s…", c.name)
		executable, err := c.build(ctx, peers, filepath.Join(cache, "jr2-benchmark"))
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			missing = append(missing, err.Error())
			continue
		}
		engines = append(engines, c.engine(executable))
	}
	return append(engines, listsAsJSON(), listsOfMetadata()), missing, nil
}

// taking are the engines that take part at a size.
func taking(engines []engine, size, peersTo int) []engine {
	return slices.DeleteFunc(slices.Clone(engines), func(e engine) bool { return e.peer && size > peersTo })
}
