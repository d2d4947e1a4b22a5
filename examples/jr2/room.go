package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/warm"
)

// asked holds the flags of `jr2 room`.
type asked struct {
	streams           Streams
	at                target
	cpu, memory, disk string
	rules             placement.Rules
	output            string
}

func roomCommand(streams Streams) *cobra.Command {
	a := &asked{streams: streams}
	command := &cobra.Command{
		Use:   "room",
		Short: "Say how many more Sandboxes of a Size the namespace's quotas and the nodes admit now, and what limits them",
		Long: "Room looks at nodes, what runs there, and the quotas and limit ranges of a namespace, and writes nothing. What this user may not\n" +
			"read is named, and then limits nothing.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return a.run(command.Context())
		},
	}
	flags := command.Flags()
	clusterFlags(flags, &a.at.context, &a.at.kubeconfig)
	flags.BoolVar(&a.at.embedded, "embedded", false, "use the cluster that up --embedded keeps")
	flags.StringVarP(&a.at.namespace, "namespace", "n", "", "namespace of the Sandboxes (default: the context's)")
	flags.StringVar(&a.memory, "memory", "", "memory of one Sandbox (default 2Gi)")
	flags.StringVar(&a.cpu, "cpu", "", "cpu of one Sandbox (default 1)")
	flags.StringVar(&a.disk, "disk", "", "ephemeral storage that one Sandbox requests, or 0 for none (default 10Gi)")
	flags.StringToStringVar(&a.rules.NodeSelector, "node-selector", nil, "label that a node must have, KEY=VALUE; may be repeated")
	flags.StringVar(&a.rules.PriorityClassName, "priority-class", "jr2-sandbox", "priority class of the Sandboxes, by which quotas may count")
	flags.StringVarP(&a.output, "output", "o", "text", "text: lines on stdout; json: the version, then the result, one a line")
	return command
}

func (a *asked) run(ctx context.Context) error {
	out, err := newPrinter(a.output, a.streams)
	if err != nil {
		return err
	}
	room, err := a.look(ctx)
	if err == nil && a.output == "text" {
		a.print(room)
	}
	return end(ctx, out, room, err)
}

func (a *asked) look(ctx context.Context) (*placement.Headroom, error) {
	share, err := a.share()
	if err != nil {
		return nil, err
	}
	c, err := a.at.connect(ctx, a.streams)
	if err != nil {
		return nil, err
	}
	defer c.close()
	namespace := c.namespace
	if a.at.namespace != "" {
		namespace = a.at.namespace
	}
	objects, err := metadata.NewForConfig(c.config)
	if err != nil {
		return nil, fmt.Errorf("context %s: %w", c.context, err)
	}
	facts, err := placement.ReadFacts(ctx, placement.Sources{
		Nodes: c.client.CoreV1().Nodes(), Pods: c.client.CoreV1().Pods(metav1.NamespaceAll), DaemonSets: c.client.AppsV1().DaemonSets(metav1.NamespaceAll),
		Quotas: c.client.CoreV1().ResourceQuotas(namespace), LimitRanges: c.client.CoreV1().LimitRanges(namespace),
		RuntimeClasses: c.client.NodeV1().RuntimeClasses(), PriorityClasses: c.client.SchedulingV1().PriorityClasses(),
		Namespaces: objects.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")),
	})
	if err != nil {
		return nil, fmt.Errorf("context %s: %w", c.context, err)
	}
	if _, there := facts.Namespaces[namespace]; facts.Namespaces != nil && !there {
		return nil, fmt.Errorf("%s has no namespace %s, so no quota speaks of it — name another with -n", c.context, namespace)
	}
	room := placement.Room(placement.SandboxPod(namespace, share, a.rules), facts, placement.RoomOptions{
		Objects: placement.SandboxObjects(), GivesWay: warm.GivesWayTo(a.class(facts)),
	})
	return &room, nil
}

// class is that of the Sandboxes; nil when the cluster has none of that name, or nobody may read it.
func (a *asked) class(facts *placement.Facts) *schedulingv1.PriorityClass {
	for i := range facts.PriorityClasses {
		if facts.PriorityClasses[i].Name == a.rules.PriorityClassName {
			return &facts.PriorityClasses[i]
		}
	}
	return nil
}

// share is what was asked, and the Kit's for what was not.
func (a *asked) share() (placement.Share, error) {
	kit := placement.KitShare()
	disk := a.disk
	if disk == "0" {
		disk, kit.Disk = "", 0
	}
	share, err := placement.ParseShare(a.cpu, a.memory, disk)
	if err != nil {
		return placement.Share{}, fmt.Errorf("--%w", err)
	}
	return placement.SizeRange{Default: kit, Max: share}.Resolve(share) // nobody caps what is only asked about
}

// print tells the count, what runs into it, and who waits for the same room.
func (a *asked) print(room *placement.Headroom) {
	fmt.Fprintln(a.streams.Out, room)
	if room.Waiting > 0 {
		fmt.Fprintf(a.streams.Out, "  %d pods wait for a node and compete for this room\n", room.Waiting)
	}
	if room.Gated > 0 {
		fmt.Fprintf(a.streams.Out, "  %d pods are held by the queues that gate them, and hold no room of a node\n", room.Gated)
	}
}
