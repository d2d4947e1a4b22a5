// Command cmd starts a devcluster and lives until it is interrupted. Its output is one line on stdout, the path of the
// kubeconfig; everything else is on stderr.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"jr2.dev/jr2/internal/devcluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("devcluster", flag.ContinueOnError)
	flags.SetOutput(stderr)
	nodes := flags.Int("nodes", 1, "how many nodes")
	arch := flags.String("arch", devcluster.DefaultArch, "their architecture")
	contextName := flags.String("context", devcluster.DefaultContext, "the name of the kubeconfig's context")
	dir := flags.String("dir", "", "keep the cluster in this directory (default: gone at the end)")
	kubeconfig := flags.String("kubeconfig", "", "add the context to this file too")
	real := flags.Int("real", 0, "how many real nodes beside them, which run pods (takes root)")
	registry := flags.Bool("registry", false, "start a registry")
	builder := flags.Bool("buildkitd", false, "start an image builder (takes root)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	log := func(line string) { fmt.Fprintln(stderr, line) }
	options := devcluster.Options{Nodes: []devcluster.Node{}, Context: *contextName, Dir: *dir, Log: log}
	disk := corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("100Gi")} // a Sandbox requests 10Gi of it
	for i := range *nodes {
		options.Nodes = append(options.Nodes, devcluster.Node{Name: fmt.Sprintf("node-%d", i+1), Arch: *arch, Allocatable: disk})
	}
	cluster, err := devcluster.Start(ctx, options)
	if err != nil {
		return err
	}
	// Its nodes end with it.
	defer closing(&err, cluster)
	if *kubeconfig != "" {
		if err := cluster.WriteKubeconfig(*kubeconfig, *contextName); err != nil {
			return err
		}
	}
	builderOptions := devcluster.BuildkitOptions{Log: log}
	var registries []*devcluster.Registry
	if *registry {
		r, err := devcluster.StartRegistry(ctx, devcluster.RegistryOptions{})
		if err != nil {
			return err
		}
		defer closing(&err, r)
		builderOptions.TrustRegistry(r)
		registries = append(registries, r)
		log("registry: " + r.Host)
	}
	for i := range *real {
		name := fmt.Sprintf("real-%d", i+1)
		if _, err := cluster.StartRealNode(ctx, devcluster.RealNodeOptions{Name: name, Registries: registries}); err != nil {
			return err
		}
		log("real node: " + name)
	}
	if *builder {
		b, err := devcluster.StartBuildkitd(ctx, builderOptions)
		if err != nil {
			return err
		}
		defer closing(&err, b)
		log("BUILDKIT_HOST=" + b.Address)
	}
	fmt.Fprintln(stdout, cluster.Kubeconfig())
	<-ctx.Done()
	return nil
}

func closing(err *error, c io.Closer) {
	if closed := c.Close(); *err == nil {
		*err = closed
	}
}
