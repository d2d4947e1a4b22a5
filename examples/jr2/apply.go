package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/preflight"
)

// applying holds the flags of `jr2 apply`.
type applying struct {
	streams   Streams
	at        target
	dir       string
	name      string
	plan      bool
	empty     bool
	images    []string
	pruneData []string
	options   apply.Options
	output    string
}

func applyCommand(streams Streams) *cobra.Command {
	a := &applying{streams: streams}
	command := &cobra.Command{
		Use:   "apply DIR",
		Short: "Apply a directory of manifests, or a kustomization, in the order of its waves",
		Long: "Apply brings the objects of a directory into the cluster: checked first, in the order of their waves, with their hooks,\n" +
			"waited for until all are ready. What the directory held at the last apply and holds no longer is pruned.",
		Args: oneDirectory,
		RunE: func(command *cobra.Command, args []string) error {
			a.dir = args[0]
			return a.run(command.Context())
		},
	}
	flags := command.Flags()
	clusterFlags(flags, &a.at.context, &a.at.kubeconfig)
	flags.BoolVar(&a.at.embedded, "embedded", false, "use the cluster that up --embedded keeps")
	flags.StringVarP(&a.at.namespace, "namespace", "n", "", "where the record of the set is kept; it places no object (default: the namespace that the set brings, else the context's)")
	flags.StringVar(&a.name, "name", "", "name of the set; with the namespace it says what belongs to it (default: the directory's)")
	flags.BoolVar(&a.plan, "plan", false, "say what would change and write nothing; exit code 0: nothing, 2: something")
	flags.StringArrayVar(&a.images, "image", nil, "NAME=REF, or NAME=@DIGEST: what the images of a name become, for this apply")
	flags.BoolVar(&a.options.Prune, "prune", true, "remove what left the directory since the last apply; what holds data stays, see --prune-data")
	flags.BoolVar(&a.options.AllowPrune, "allow-prune", false, "prune although it looks like an accident, because less is read than at the last apply (default: asked on a terminal, else refused)")
	flags.BoolVar(&a.empty, "allow-empty", false, "go on when the directory holds no object, which prunes all of the set")
	flags.StringArrayVar(&a.pruneData, "prune-data", nil, "an object that may be pruned although it holds data, such as \"PersistentVolumeClaim demo/state\"")
	flags.StringSliceVar(&a.options.Conflicts.TakeFrom, "take-from", nil, "field managers whose fields are taken over, such as kubectl")
	flags.BoolVar(&a.options.Adopt, "adopt", false, "take objects into the set that are there and that no set made")
	flags.StringSliceVar(&a.options.AdoptFrom, "adopt-from", nil, "sets whose objects are taken over, such as demo/web")
	flags.StringSliceVar(&a.options.Recreate, "recreate", nil, "kinds to delete and make again where a field can't be changed, such as Job.batch")
	flags.DurationVar(&a.options.Ready.Timeout, "timeout", 0, "how long one object may take to become ready, without the time in which the cluster has no room (default 3m)")
	flags.StringVarP(&a.output, "output", "o", "text", "text: lines on stderr; json: one event a line on stdout")
	registryFlags(flags, &a.at.rules)
	return command
}

// oneDirectory says what is missing, where cobra counts.
func oneDirectory(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("apply takes one directory, and %d were given: jr2 apply DIR", len(args))
	}
	return nil
}

func (a *applying) run(ctx context.Context) error {
	out, err := newApplyPrinter(a.output, a.streams)
	if err != nil {
		return err
	}
	if a.plan {
		return a.runPlan(ctx, out)
	}
	a.options.ConfirmPrune = asker[*apply.AccidentError](a.streams)
	outcome, err := a.apply(ctx, out)
	return end(ctx, out, outcome, takeable(agreeable(adoptable(err))))
}

// runPlan prints the plan, and tells by the exit code whether it changes something.
func (a *applying) runPlan(ctx context.Context, out applyPrinter) error {
	var plan *apply.Plan
	err := a.prepared(ctx, out, func(c *connected, set *apply.Set) (err error) {
		plan, err = apply.MakePlan(ctx, c.config, set, a.options)
		return err
	})
	if err != nil {
		return end(ctx, out, nil, err)
	}
	return endPlan(ctx, out, plan, takeable(agreeable(adoptable(plan.Err()))))
}

// agreeable names the flag that helps with a prune that looks like an accident.
func agreeable(err error) error {
	if accident := (*apply.AccidentError)(nil); errors.As(err, &accident) {
		return fmt.Errorf("%w — with --allow-prune", err)
	}
	return err
}

// takeable names the flag that helps with fields of other managers, and the managers.
func takeable(err error) error {
	var flags []string
	for _, manager := range managersIn(err) {
		flags = append(flags, fmt.Sprintf("--take-from %q", manager))
	}
	slices.Sort(flags)
	if flags = slices.Compact(flags); len(flags) == 0 {
		return err
	}
	return fmt.Errorf("%w — with %s", err, strings.Join(flags, " "))
}

// managersIn are the field managers of all conflicts in an error, also of several objects.
func managersIn(err error) []string {
	var managers []string
	switch e := err.(type) {
	case *apply.ConflictError:
		for _, c := range e.Conflicts {
			manager, _, _ := strings.Cut(c.Manager, " (") // the subresource
			managers = append(managers, manager)
		}
	case interface{ Unwrap() []error }:
		for _, each := range e.Unwrap() {
			managers = append(managers, managersIn(each)...)
		}
	case interface{ Unwrap() error }:
		managers = managersIn(e.Unwrap())
	}
	return managers
}

// adoptable names the flag that helps with an object of another set, or of none.
func adoptable(err error) error {
	if owned := (*apply.OwnedError)(nil); errors.As(err, &owned) {
		err = fmt.Errorf("%w — or take what belongs to that set over, with --adopt-from %s", err, owned.Owner)
		namespace, name, _ := strings.Cut(owned.Owner, "/")
		if _, ours, _ := strings.Cut(owned.Set, "/"); name == ours {
			err = fmt.Errorf("%w; or, when it is the same set and only its record is looked for elsewhere, with -n %s", err, namespace)
		}
	}
	if unowned := (*apply.UnownedError)(nil); errors.As(err, &unowned) {
		err = fmt.Errorf("%w — or take what is there into the set, with --adopt; --plan shows what changes", err)
	}
	return err
}

func (a *applying) apply(ctx context.Context, out applyPrinter) (*apply.Outcome, error) {
	a.options.Wait, a.options.Events = true, out.applied
	var outcome *apply.Outcome
	err := a.prepared(ctx, out, func(c *connected, set *apply.Set) (err error) {
		home, err := c.bringHome(ctx, set, a.options)
		if err != nil {
			return err
		}
		held, release, err := c.lock(ctx, set, out.applied)
		if err != nil {
			return err
		}
		defer release()
		outcome, err = apply.Apply(held, c.config, set, a.options)
		join(home, outcome)
		if cause := context.Cause(held); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return err
	})
	return outcome, err
}

// join keeps what was done to an object before the rest was begun, which then found it as asked.
func join(before, all *apply.Outcome) {
	for i, now := range all.Objects {
		if was := before.Did(now.Ref); was != "" && now.Action == apply.Unchanged {
			all.Objects[i].Action = was
		}
	}
}

// prepared reads the set, connects, checks the set, and goes on when nothing refuses.
func (a *applying) prepared(ctx context.Context, out applyPrinter, then func(*connected, *apply.Set) error) error {
	set, err := a.read()
	if err != nil {
		return err
	}
	c, err := a.at.connect(ctx, a.streams)
	if err != nil {
		return err
	}
	defer c.close()
	if set.Namespace == "" {
		set.Namespace = c.namespace
	}
	out.started(set, c.context)
	out.unread(set.Unread())
	findings, err := c.check(ctx, set, a.options)
	if err != nil {
		return err
	}
	for _, finding := range findings {
		if finding.Severity != preflight.Refuse {
			out.found(finding)
		}
	}
	if err := preflight.Refused(findings); err != nil {
		return err
	}
	return then(c, set)
}

// read makes the set of the directory. Its namespace is empty where only the kubeconfig can tell it.
func (a *applying) read() (*apply.Set, error) {
	name, err := a.setName()
	if err != nil {
		return nil, err
	}
	for _, text := range a.pruneData {
		ref, err := parseRef(text)
		if err != nil {
			return nil, err
		}
		a.options.PruneData = append(a.options.PruneData, ref)
	}
	mappings, err := parseImages(a.images)
	if err != nil {
		return nil, err
	}
	set, err := apply.Read(name, a.at.namespace, apply.Directory(a.dir))
	if err != nil {
		return nil, err
	}
	if len(set.Objects) == 0 && !a.empty {
		return nil, fmt.Errorf("%s: its files hold no object, so all of the set would be pruned — correct them, or give --allow-empty to have that", a.dir)
	}
	if len(set.Objects) == 0 {
		a.options.AllowPrune = true // --allow-empty said so
	}
	if err := set.MapImages(mappings); err != nil {
		return nil, err
	}
	if set.Namespace == "" {
		set.Namespace, err = home(set)
	}
	return set, err
}

// setName is that of the directory, unless a name is given.
func (a *applying) setName() (string, error) {
	name := a.name
	if name == "" {
		dir, err := filepath.Abs(a.dir)
		if err != nil {
			return "", err
		}
		name = filepath.Base(dir)
	}
	if len(validation.IsDNS1123Label(name)) > 0 {
		return "", fmt.Errorf("%q can't be the name of a set: it takes lower case letters, digits and '-' between them, 63 at most — give another with --name", name)
	}
	return name, nil
}

// home is the one namespace that the set brings; empty when it brings none.
func home(set *apply.Set) (string, error) {
	var names []string
	for _, o := range set.Objects {
		if o.GetAPIVersion() == "v1" && o.GetKind() == "Namespace" {
			names = append(names, o.GetName())
		}
	}
	switch len(names) {
	case 0:
		return "", nil
	case 1:
		return names[0], nil
	}
	return "", fmt.Errorf("the set brings the namespaces %s — say with -n in which one its record is kept", strings.Join(names, ", "))
}

// parseImages reads NAME=REF.
func parseImages(texts []string) (map[string]apply.ImageMapping, error) {
	mappings := map[string]apply.ImageMapping{}
	for _, text := range texts {
		name, ref, ok := strings.Cut(text, "=")
		if !ok || name == "" || ref == "" {
			return nil, fmt.Errorf("--image %q: want NAME=REF or NAME=@DIGEST", text)
		}
		var m apply.ImageMapping
		ref, m.Digest, _ = strings.Cut(ref, "@")
		if at := strings.LastIndexByte(ref, ':'); at >= 0 && at > strings.LastIndexByte(ref, '/') {
			ref, m.NewTag = ref[:at], ref[at+1:]
		}
		m.NewName = ref
		mappings[name] = m
	}
	return mappings, nil
}

// dataKinds are the kinds of which --prune-data names objects. A StatefulSet may take its claims along.
func dataKinds() []string {
	return []string{"PersistentVolumeClaim", "PersistentVolume", "Secret", "Namespace", "CustomResourceDefinition", "StatefulSet"}
}

// parseRef reads an object as plans and outcomes print it: "PersistentVolumeClaim demo/state", "Namespace demo".
func parseRef(text string) (apply.Ref, error) {
	kind, name, ok := strings.Cut(strings.TrimSpace(text), " ")
	if !ok || kind == "" || name == "" || strings.Contains(name, " ") {
		return apply.Ref{}, fmt.Errorf("--prune-data %q: want an object as it is printed, such as \"PersistentVolumeClaim demo/state\"", text)
	}
	var ref apply.Ref
	ref.Kind, ref.Group, _ = strings.Cut(kind, ".")
	if ref.Kind == "CustomResourceDefinition" && ref.Group == "" {
		ref.Group = "apiextensions.k8s.io"
	}
	if ref.Kind == "StatefulSet" && ref.Group == "" {
		ref.Group = "apps"
	}
	if !slices.Contains(dataKinds(), ref.Kind) {
		return apply.Ref{}, fmt.Errorf("--prune-data %q: only %s hold data", text, strings.Join(dataKinds(), ", "))
	}
	if namespace, rest, in := strings.Cut(name, "/"); in {
		ref.Namespace, name = namespace, rest
	}
	ref.Name = name
	return ref, nil
}
