package jr2

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/preflight"
)

// images builds and delivers what the cluster's record does not show as delivered. The record itself goes up with the Orchestrator,
// after every delivery.
func (c *converge) images(ctx context.Context) error {
	if err := c.decideImages(ctx); err != nil {
		return err
	}
	delivered, err := c.deliver(ctx)
	c.result.Images = delivered
	if err != nil {
		return err
	}
	return c.keepRecord(c.kitRecord().With(delivered))
}

// kitRecord names the images that the Kit brings.
func (c *converge) kitRecord() images.Record {
	kit := c.input.Kit
	return images.Record{Harness: kit.Harness, Custodian: kit.Custodian, Operator: kit.Operator, Orchestrator: kit.Orchestrator}
}

// keepRecord makes the image map of what the Instance will run, and the list of what it ran before.
func (c *converge) keepRecord(record images.Record) error {
	text, err := record.Marshal()
	if err != nil {
		return err
	}
	c.record, c.input.ImageMap = record, string(text)
	replaced := c.previous.Replaced(c.replaced, &record)
	if len(replaced) == 0 {
		return nil
	}
	if text, err = json.Marshal(replaced); err != nil {
		return err
	}
	c.input.Replaced = string(text)
	return nil
}

// decideImages decides which Sandbox Images the Instance needs and which of them are to be built.
func (c *converge) decideImages(ctx context.Context) error {
	if !c.inst.ComposesSandbox() {
		c.tell(ImagesNotNeeded{Reason: "no registered Machine makes a Sandbox"})
		return nil
	}
	contexts := c.contexts()
	if len(contexts) == 0 {
		c.tell(ImagesNotNeeded{Reason: "the Instance carries no image context; Sandboxes run the stock Harness image"})
		return nil
	}
	local, err := c.localRegistry(ctx)
	if err != nil {
		return err
	}
	decision, err := images.Plan(ctx, images.Request{
		Instance: c.inst.Name, Registry: c.registry(), Local: local, Context: c.cluster.context, Kind: c.cluster.kind(),
		Platforms: c.set.Platforms, Contexts: contexts, Previous: c.previous, Force: c.opts.Force,
	})
	if err != nil {
		return err
	}
	c.decision, c.digests = decision, decision.Digests
	for _, note := range decision.Notes {
		c.note(preflight.Finding{Severity: preflight.Warn, Code: preflight.CodeRegistryHost, Object: "Instance " + c.inst.Name, Message: note})
	}
	return nil
}

// localRegistry asks the cluster, when the registry is on this machine, by which name nodes know it. A cluster that does not let us read
// that is told as a note: then nodes pull by the name that we push to.
func (c *converge) localRegistry(ctx context.Context) (images.LocalRegistry, error) {
	if !images.MayBeLocal(c.registry()) {
		return images.LocalRegistry{}, nil
	}
	local, err := c.cluster.localRegistry(ctx)
	if apierrors.IsForbidden(err) {
		c.note(preflight.Finding{Severity: preflight.Note, Code: preflight.CodeRegistryHost, Object: "registry " + c.registry(),
			Message: "the cluster may know the registry by another name, and does not let us read it: " + err.Error()})
		return images.LocalRegistry{}, nil
	}
	return local, err
}

func (c *converge) deliver(ctx context.Context) (map[string]images.Delivered, error) {
	if c.decision == nil {
		return nil, nil
	}
	builder := c.builder()
	defer builder.close()
	return images.Deliver(ctx, c.decision, builder.get, images.Options{
		Keychain: c.opts.Keychain, Transport: c.transport, Insecure: c.opts.InsecureRegistries,
		BuildArgs: c.opts.BuildArgs, Events: c.tellImages, Docker: c.connectOptions(),
	})
}

// kindNodes are the nodes of a kind cluster, in the Docker Engine in which a builder would be looked for.
func (c *converge) kindNodes(cluster string) *images.Kind {
	return &images.Kind{Cluster: cluster, Docker: c.connectOptions()}
}

func (c *converge) contexts() []images.Context {
	var contexts []images.Context
	for _, found := range c.inst.ImageContexts() {
		context := images.Context{Name: found.Name, Dir: found.Dir}
		if found.Default {
			context.Key = images.DefaultKey
		}
		contexts = append(contexts, context)
	}
	return contexts
}

// recall reads the Orchestrator as the last converge left it: whether this Instance ran here before, and which images its record names. No
// Orchestrator and no record are one thing: nothing is delivered. A record that cannot be read is that too, and is told.
func (c *converge) recall(ctx context.Context) error {
	deployment, err := c.cluster.client.AppsV1().Deployments(c.cluster.namespace).Get(ctx, names.Orchestrator, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the Deployment of the Orchestrator: %w", err)
	}
	c.ran = true
	annotation := deployment.Annotations[names.AnnotationImages]
	if annotation == "" {
		return nil
	}
	if c.previous, err = images.ParseRecord([]byte(annotation)); err != nil {
		c.tell(Noted{Message: err.Error() + " — every image is delivered again"})
	}
	if replaced := deployment.Annotations[names.AnnotationReplaced]; replaced != "" {
		if err := json.Unmarshal([]byte(replaced), &c.replaced); err != nil {
			c.tell(Noted{Message: "the list of replaced images is not readable and begins anew: " + err.Error()})
		}
	}
	return nil
}

// tellImages turns what package images tells into the events of a converge.
func (c *converge) tellImages(e images.Event) {
	switch e := e.(type) {
	case images.Chosen:
		c.tell(BuildProgress{Status: "builder", Line: e.Builder})
	case images.Building:
		c.tell(ImageBuilding{Name: e.Name, Ref: e.Ref})
	case images.Step:
		c.tell(BuildProgress{Ref: e.Ref, Step: e.Name, Status: stepStatus(e)})
	case images.Log:
		c.tell(BuildProgress{Ref: e.Ref, Step: e.Step, Status: "log", Line: e.Line})
	case images.Warning:
		c.tell(BuildProgress{Ref: e.Ref, Status: "warning", Line: e.Text})
	case images.NoUser:
		c.tell(ImageUser{Name: e.Name})
	case images.User:
		c.tell(ImageUser{Name: e.Name, User: e.User})
	case images.Pushed:
		c.result.Built++
		c.result.Changed++
		c.tell(ImagePushed{Name: e.Name, Registry: e.Registry, Digest: e.Digest, Platforms: e.Platforms})
	case images.Loading:
		c.tell(BuildProgress{Ref: e.Ref, Status: "loading", Line: e.Node})
	case images.Loaded:
		c.result.Built++
		c.result.Changed++
		c.tell(ImageLoaded{Name: e.Name, Cluster: e.Cluster, Digest: e.Digest, Platforms: e.Platforms})
	case images.Fresh:
		c.tell(ImageFresh{Name: e.Name, Ref: e.Ref, Source: e.Source})
	}
}

func stepStatus(step images.Step) string {
	switch {
	case step.Err != "":
		return "failed"
	case step.Cached:
		return "cached"
	case !step.Completed.IsZero():
		return "done"
	}
	return "started"
}
