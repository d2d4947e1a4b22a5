// Command operator is the main of the operator image: package placement/controller, and nothing else. A program that embeds the
// controller needs no such image.
//
//	manager [--namespace NS]… [--leader-elect] [--leader-election-namespace NS]
//	        [--health-probe-bind-address :8081] [--metrics-bind-address :8080] [--kubeconfig FILE] [--context NAME]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"jr2.dev/jr2/placement/controller"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	klog.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil))) // what client-go says of its own accord; the process has one such logger
	err := Run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// errNoRepoCache answers the command of the Repo cache's DaemonSet, which runs the same image.
var errNoRepoCache = errors.New("repo-cache: this operator has no Repo cache: Sandboxes that want repositories stay in RepoPending")

// Run runs the operator until ctx ends. Logs and help go to out.
func Run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == "repo-cache" {
		return errNoRepoCache
	}
	var opts controller.Options
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Func("namespace", "work in this `namespace` only; may be repeated (default: all)", func(name string) error {
		opts.Namespaces = append(opts.Namespaces, name)
		return nil
	})
	flags.BoolVar(&opts.LeaderElection, "leader-elect", false, "wait while another process leads")
	flags.StringVar(&opts.LeaderElectionNamespace, "leader-election-namespace", "", "the `namespace` of the Lease (default: that of this pod)")
	flags.StringVar(&opts.HealthAddress, "health-probe-bind-address", "", "serve /healthz and /readyz at this `address` (default: nowhere)")
	flags.StringVar(&opts.MetricsAddress, "metrics-bind-address", "", "serve Prometheus metrics at this `address` (default: nowhere)")
	kubeconfig := flags.String("kubeconfig", "", "the `file` that says which cluster (default: KUBECONFIG, or the pod's own account)")
	contextName := flags.String("context", "", "the `name` of the kubeconfig's context (default: the current one)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s: not known: only flags are", strings.Join(flags.Args(), " "))
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = *kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: *contextName}).ClientConfig()
	if err != nil {
		return err
	}
	opts.Log = slog.New(slog.NewJSONHandler(out, nil))
	return controller.Run(ctx, cfg, opts)
}
