package jr2

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/assembly"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/preflight"
)

// planning is a converge that decides and does nothing. Its steps stand for the steps of the same name that write.
type planning struct {
	converge
	plan *Plan
	// brought are the objects of the operator, where it is this Instance's to apply.
	brought []*unstructured.Unstructured
}

// fill takes over what the looks found.
func (p *planning) fill() {
	r := p.result
	p.plan.Instance, p.plan.Context, p.plan.Namespace, p.plan.Kubernetes = r.Instance, r.Context, r.Namespace, r.Kubernetes
	p.plan.Platforms, p.plan.SandboxNodes, p.plan.Findings = r.Platforms, r.SandboxNodes, r.Findings
	if p.found.FirstContact {
		p.plan.FirstContact = p.found.What
	}
}

// layer plans one set.
func (p *planning) layer(ctx context.Context, name string, set *apply.Set, opts apply.Options) error {
	if p.homeless {
		opts.Arriving = []string{p.cluster.namespace}
	}
	plan, err := apply.MakePlan(ctx, p.cluster.config, set, p.applying(opts))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.plan.Layers = append(p.plan.Layers, PlannedLayer{Name: name, Plan: plan})
	if p.whole {
		p.noteWaits(plan)
	}
	return nil
}

func (p *planning) namespace(ctx context.Context) error {
	set, opts, err := p.namespaceSet()
	if err != nil {
		return err
	}
	return p.layer(ctx, layerNamespace, set, opts)
}

// podLevelResources asks in a namespace that every cluster has, where the Instance's is not there yet: the gate is the server's.
func (p *planning) podLevelResources(ctx context.Context) error {
	where := p.cluster.namespace
	if p.homeless {
		where = metav1.NamespaceDefault
	}
	err := p.podLevelResourcesIn(ctx, where)
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
		for i, finding := range refusal.Findings {
			// The sentence is a converge's, which has made the namespace by then.
			refusal.Findings[i].Message = strings.Replace(finding.Message, " The namespace was created; nothing else was applied.", " Nothing was applied.", 1)
		}
	}
	return err
}

func (p *planning) images(ctx context.Context) error {
	if err := p.decideImages(ctx); err != nil {
		return err
	}
	delivered, unknown := map[string]images.Delivered{}, []string{}
	if p.decision != nil {
		for _, image := range p.decision.Images {
			planned, user, known, err := p.image(ctx, image)
			if err != nil {
				return err
			}
			p.plan.Images = append(p.plan.Images, planned)
			delivered[image.Key] = images.Delivered{Ref: image.PullRef(), User: user}
			if !known {
				unknown = append(unknown, image.Key)
			}
		}
	}
	record := p.kitRecord().With(delivered)
	for _, key := range unknown {
		delete(record.SandboxUser, key)
	}
	return p.keepRecord(record)
}

// image says what would be done for one image, and which USER it has, where that can be known. A registry that can't be asked makes no
// plan wrong: then the image is built, and the build meets what is wrong with the registry.
func (p *planning) image(ctx context.Context, image images.Image) (planned PlannedImage, user string, known bool, err error) {
	planned = PlannedImage{Name: image.Name, Ref: image.Ref, Intent: WillBuild, Why: image.Why}
	if image.Skip {
		planned.Intent = Delivered
		return planned, image.User, true, nil
	}
	if p.opts.Force {
		return planned, "", false, nil
	}
	var deliverer images.Deliverer = p.registries()
	who := "the registry holds"
	if p.decision.Kind != "" {
		nodes := p.kindNodes(p.decision.Kind)
		defer nodes.Close() //nolint:errcheck // nothing is left to say to it
		deliverer, who = nodes, "every node holds"
	}
	held, have, err := deliverer.Have(ctx, image, p.inst.Name, p.set.Platforms)
	switch {
	case ctx.Err() != nil:
		return planned, "", false, err
	case err != nil:
		p.note(preflight.Finding{
			Severity: preflight.Note, Code: preflight.CodeNotLookedAt, Object: "image " + image.Ref,
			Message: fmt.Sprintf("nobody could say whether %s %s already: %v", who, image.Ref, err),
		})
	case have:
		planned.Intent, planned.Why = WillReuse, who+" it"
	}
	return planned, held.User, have, nil
}

func (p *planning) priorityClasses(ctx context.Context) error {
	set, opts, err := p.prioritySet()
	if err != nil || len(set.Objects) == 0 {
		return err
	}
	return p.layer(ctx, layerPriority, set, opts)
}

func (p *planning) operator(ctx context.Context) error {
	input, ours, err := p.decideOperator(ctx)
	if err != nil || !ours {
		return err
	}
	set, opts, err := operatorSet(input, p.opts.Adopt)
	if err != nil {
		return err
	}
	p.brought = set.Objects
	return p.layer(ctx, layerOperator, set, opts)
}

// standInKey takes the place of a signing key that is yet to be made.
const standInKey = "made by the converge"

// tokens says which of the Instance's tokens would be made.
func (p *planning) tokens(ctx context.Context) error {
	ref := apply.Ref{Version: "v1", Kind: "Secret", Namespace: p.cluster.namespace, Name: names.InstanceSecret}
	secret, err := p.cluster.client.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret, err = &corev1.Secret{}, nil
	}
	if err != nil {
		return fmt.Errorf("read Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	if err := p.claim(secret); err != nil {
		p.input.SigningKey = config.NewSecret(standInKey)
		return p.passes(err)
	}
	var missing, empty []string
	for _, key := range slices.Sorted(maps.Keys(render.InstanceSecretKeys())) {
		switch value, there := secret.Data[key]; {
		case !there:
			missing = append(missing, key)
		case len(value) == 0:
			empty = append(empty, key)
		}
	}
	if len(empty) > 0 {
		return &apply.EmptyKeyError{Ref: ref, Keys: empty}
	}
	if len(missing) > 0 {
		p.plan.Mint = &PlannedMint{Secret: ref, Keys: missing}
	}
	p.noteSigningKey(missing, "a new one will be made: live Sandboxes hold tokens of the old one and will be refused from then on")
	p.useTokens(secret)
	if slices.Contains(missing, names.KeySigningKey) {
		p.input.SigningKey = config.NewSecret(standInKey)
	}
	return nil
}

func (p *planning) objects(ctx context.Context) error {
	set, opts, err := p.instanceSet()
	if err != nil {
		return err
	}
	return p.layer(ctx, layerInstance, set, opts)
}

func (p *planning) assembly(ctx context.Context) error {
	built, err := assembly.Build(p.inst, p.contextDigests())
	if err != nil {
		return err
	}
	publisher := p.publisher()
	current, found, err := publisher.Current(ctx)
	if err != nil && !errors.Is(err, assembly.ErrInvalid) {
		p.plan.Assembly = PlannedAssembly{Hash: built.Hash}
		return p.passes(fmt.Errorf("assembly: %w", unowned(err)))
	}
	p.plan.Assembly = PlannedAssembly{Hash: built.Hash, Current: current, Publish: !found || current != built.Hash || p.opts.Force}
	if p.plan.Assembly.Publish {
		return nil
	}
	_, err = publisher.WaitCurrent(ctx, built.Hash) // whole, and not only named
	if errors.Is(err, assembly.ErrInvalid) {
		p.plan.Assembly.Publish = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("assembly %s: %w", built.Hash, err)
	}
	return nil
}
