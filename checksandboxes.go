package jr2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/warm"
	"jr2.dev/jr2/preflight"
)

// sandboxes looks whether a Sandbox of each Size would get its pod, and room for it, if it were asked for now. A converge does not: it is whole
// before there is room for what it will run.
func (k *checking) sandboxes(ctx context.Context) error {
	if !k.inst.ComposesSandbox() || k.facts == nil {
		return nil
	}
	shapes, err := k.shapes()
	if err != nil {
		return err
	}
	facts := preflight.SandboxFacts{Facts: placement.Facts{Nodes: k.facts.Nodes, Pods: k.facts.Pods, Namespaces: k.namespaceLabels()}}
	if !k.homeless {
		bounds, err := k.readBounds(ctx)
		if err != nil {
			return err
		}
		facts.Quotas, facts.LimitRanges = bounds.Quotas, bounds.LimitRanges
		facts.DryRun = k.facts.DryRun(k.cluster.namespace)
	}
	if slices.ContainsFunc(facts.Pods, func(pod corev1.Pod) bool { return warm.IsPlaceholder(&pod) }) {
		class, err := k.sandboxPriority(ctx)
		if err != nil {
			return err
		}
		facts.GivesWay = warm.GivesWayTo(class)
	}
	k.result.Findings = append(k.result.Findings, preflight.Sandboxes(ctx, shapes, facts)...)
	return nil
}

// readBounds reads what bounds pods of the namespace. What this user may not read stays unknown: the dry run of the pod answers for it.
func (k *checking) readBounds(ctx context.Context) (*placement.Facts, error) {
	if k.bounds == nil {
		core := k.cluster.client.CoreV1()
		read, err := placement.ReadFacts(ctx, placement.Sources{Quotas: core.ResourceQuotas(k.cluster.namespace), LimitRanges: core.LimitRanges(k.cluster.namespace)})
		if err != nil {
			return nil, err
		}
		k.bounds = read
	}
	return k.bounds, nil
}

func (k *checking) namespaceLabels() map[string]map[string]string {
	if k.facts.Namespaces == nil {
		return nil
	}
	labels := make(map[string]map[string]string, len(k.facts.Namespaces))
	for name, namespace := range k.facts.Namespaces {
		labels[name] = namespace.Labels
	}
	return labels
}

// A wish is one Size and who asks for it.
type wish struct {
	size  config.Size
	of    []string
	seats []render.SandboxSeat
}

// wishes are the Sizes of the Workspaces in their order, and the one that the configuration gives to those that state none.
func (k *checking) wishes() []wish {
	var all []wish
	add := func(size config.Size, of string, seat render.SandboxSeat) {
		at := slices.IndexFunc(all, func(w wish) bool { return w.size == size })
		if at < 0 {
			all, at = append(all, wish{size: size}), len(all)
		}
		w := &all[at]
		if !slices.Contains(w.of, of) {
			w.of = append(w.of, of)
		}
		same := func(other render.SandboxSeat) bool {
			return (other.UserImage == "") == (seat.UserImage == "") && sameLimits(other.Workspace.UserSize, seat.Workspace.UserSize)
		}
		if !slices.ContainsFunc(w.seats, same) {
			w.seats = append(w.seats, seat)
		}
	}
	given := k.inst.Sandbox.Resources
	for _, workflow := range k.inst.Workflows {
		for _, workspace := range workflow.Workspaces {
			add(config.ResolveSize(workspace, given).Size, "workflow "+workflow.Name, k.seat(workflow.Name, workspace))
		}
	}
	if given != (config.Limits{}) {
		add(config.ResolveSize(config.Workspace{}, given).Size, "sandbox.resources", k.seat("default", config.Workspace{}))
	}
	return all
}

func sameLimits(a, b config.Limits) bool {
	same := func(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
	return same(a.Memory, b.Memory) && same(a.CPU, b.CPU)
}

// shapes are the pods of the wishes. A Size that leaves the Harness too little is told already.
func (k *checking) shapes() ([]preflight.SandboxShape, error) {
	noNode := slices.ContainsFunc(k.result.Findings, func(f preflight.Finding) bool { return f.Code == preflight.CodeNoSandboxNode })
	var large []placement.Demand
	if !k.set.FromConfig {
		large = placement.TooLarge(placement.Look(k.nodes, k.sandboxRules()).Nodes, k.demands())
	}
	input := k.sketch().input
	var shapes []preflight.SandboxShape
	for _, w := range k.wishes() {
		shape := preflight.SandboxShape{
			Of:        fmt.Sprintf("Sandboxes of %s memory and %s CPU (%s)", config.FormatMemory(w.size.Memory), config.FormatCPU(w.size.CPU), firstOf(w.of)),
			NodesTold: noNode || slices.ContainsFunc(large, func(d placement.Demand) bool { return d.Size == w.size }),
		}
		for _, seat := range w.seats {
			box, err := render.Sandbox(input, seat)
			if errors.As(err, new(*config.SizeError)) {
				continue
			}
			if err != nil {
				return nil, err
			}
			pod := controller.Pod(box, nil)
			pod.Namespace, pod.Name, pod.GenerateName, pod.OwnerReferences = k.cluster.namespace, "", "jr2-check-", nil
			shape.Pods = append(shape.Pods, pod)
		}
		if len(shape.Pods) > 0 {
			shapes = append(shapes, shape)
		}
	}
	return shapes, nil
}

// firstOf names the first few.
func firstOf(names []string) string {
	const shown = 3
	if len(names) <= shown+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

// seat is that of a Sandbox that nobody makes, with the images as far as they are known. Whether an image declares a USER with which pods start is
// the affair of who runs it.
func (k *checking) seat(workflow string, workspace config.Workspace) render.SandboxSeat {
	kit := k.input.Kit
	seat := render.SandboxSeat{Name: "check", Run: "check", Workflow: workflow, Workspace: workspace, Image: kit.Harness}
	if dir, folder := config.ImageFolder(workspace.Image); folder || workspace.Image == "" && k.inst.DefaultImage != "" {
		key := images.DefaultKey
		if folder {
			key = k.digests[dir]
		}
		seat.Built = true
		if ref := k.record.Sandbox[key]; ref != "" {
			seat.Image = ref
		}
	} else if workspace.Image != "" {
		seat.Image = workspace.Image
	}
	if workspace.User != "" {
		seat.UserImage = kit.Harness // any that has a name: a folder's is not known yet
		if _, folder := config.ImageFolder(workspace.User); !folder {
			seat.UserImage = workspace.User
		}
	}
	for _, slot := range workspace.Repos {
		repo := config.Repo{URL: slot.URL, Key: "of-a-run"} // of one that is bound per run
		if address, err := config.ParseRepoURL(slot.URL); err == nil && slot.URL != "" {
			repo.Key = address.Key
		}
		if !slices.ContainsFunc(seat.Repos, func(other config.Repo) bool { return other.Key == repo.Key }) {
			seat.Repos = append(seat.Repos, repo)
		}
	}
	return seat
}

// accounts looks at the service account that Sandboxes get.
func (k *checking) accounts(ctx context.Context) error {
	if k.homeless || k.facts == nil || !k.inst.ComposesSandbox() {
		return nil
	}
	home := k.cluster.namespace
	made := time.Now() // of a namespace that this user may not see: then nobody says that the account is late
	if namespace := k.facts.Namespaces[home]; namespace != nil {
		made = namespace.CreationTimestamp.Time
	} else if namespace, err := k.cluster.client.CoreV1().Namespaces().Get(ctx, home, metav1.GetOptions{}); err == nil {
		made = namespace.CreationTimestamp.Time
	}
	findings, err := preflight.DefaultAccount(ctx, k.facts.ServiceAccounts(home), k.facts.Secrets(home), home, made, time.Now())
	for _, f := range findings {
		told := slices.ContainsFunc(k.result.Findings, func(other preflight.Finding) bool {
			return other.Code == f.Code && strings.Contains(other.Message, f.Object) // of an image that is new
		})
		if !told {
			k.result.Findings = append(k.result.Findings, f)
		}
	}
	if apierrors.IsForbidden(err) {
		k.noteUnread("the default service account of namespace "+home+" or its Secrets", "whether Sandboxes get them", err)
		return nil
	}
	return err
}
