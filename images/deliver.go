package images

import (
	"context"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"jr2.dev/jr2/platforms"
)

// Options of Deliver. The zero value works.
type Options struct {
	// Keychain answers for the credentials of registries; nil means docker's own configuration (authn.DefaultKeychain).
	Keychain authn.Keychain
	// Transport carries our own requests to registries, for a private CA or a proxy; nil means go-containerregistry's default.
	Transport http.RoundTripper
	// Insecure lists registry hosts ("host" or "host:port") that may be spoken to by plain http. Loopback hosts always may.
	Insecure []string
	// BuildArgs are passed to every build; none by default.
	BuildArgs map[string]string
	// Events takes each Event, one at a time, in order; nil means none.
	Events func(Event)
	// Silence is how long a registry may neither take nor send a byte of our own requests; 0 means a minute.
	Silence time.Duration
	// Docker says where the Docker Engine is that runs the nodes of a kind cluster, by the fields by which Connect looks for one.
	Docker ConnectOptions
	// Deliverer replaces the registry and the nodes; nil means Registry with the fields above, or Kind where the Decision names a cluster.
	Deliverer Deliverer
}

// Deliver brings every image of d to where the nodes find it and returns what it delivered per key. An error comes with what was
// delivered before it.
//
// builder is called at most once, and only when something has to be built: an image that the record or the registry proves is
// not. Before the first build the builder's platforms are checked, so that nothing is built when one of them cannot be
// (*platforms.EmulationError). An image counts as delivered when its registry, or every node of the kind cluster, gave it back: every
// platform, one USER.
func Deliver(ctx context.Context, d *Decision, builder func(context.Context) (Builder, error), opts Options) (map[string]Delivered, error) {
	run := &delivery{decision: d, connect: builder, opts: opts, deliverer: opts.Deliverer, emit: opts.Events}
	if run.emit == nil {
		run.emit = func(Event) {}
	}
	registry := &Registry{Keychain: opts.Keychain, Transport: opts.Transport, Insecure: opts.Insecure, Silence: opts.Silence}
	switch {
	case run.deliverer != nil:
	case d.Kind != "":
		nodes := &Kind{Cluster: d.Kind, Docker: opts.Docker, Bases: registry, Progress: run.emit}
		defer nodes.Close() //nolint:errcheck // nothing is left to say to it
		run.deliverer = nodes
	default:
		run.deliverer = registry
	}
	out, byRef := map[string]Delivered{}, map[string]Delivered{}
	for _, img := range d.Images {
		got, done := byRef[img.Ref]
		if !done {
			var err error
			if got, err = run.image(ctx, img); err != nil {
				return out, err
			}
			got.Ref = img.PullRef()
			byRef[img.Ref] = got
		}
		out[img.Key] = got
	}
	return out, nil
}

// delivery is one run of Deliver.
type delivery struct {
	decision  *Decision
	connect   func(context.Context) (Builder, error)
	opts      Options
	deliverer Deliverer
	emit      func(Event)
	builder   Builder // nil until something has to be built
}

func (r *delivery) image(ctx context.Context, img Image) (Delivered, error) {
	if img.Skip {
		r.emit(Fresh{Name: img.Name, Ref: img.Ref, User: img.User, Source: "record"})
		return Delivered{Ref: img.PullRef(), User: img.User}, nil
	}
	if !r.decision.Force {
		got, have, err := r.deliverer.Have(ctx, img, r.decision.Instance, r.decision.Platforms)
		if err != nil {
			return Delivered{}, err
		}
		if have {
			r.emit(Fresh{Name: img.Name, Ref: img.Ref, User: got.User, Source: r.source()})
			return got, nil
		}
	}
	if asks, ok := r.deliverer.(interface {
		MayPush(context.Context, Image) error
	}); ok {
		if err := asks.MayPush(ctx, img); err != nil {
			return Delivered{}, err
		}
	}
	if err := r.prepare(ctx); err != nil {
		return Delivered{}, err
	}
	r.emit(Building{Name: img.Name, Ref: img.Ref})
	got, err := r.deliverer.Send(ctx, r.builder, r.request(img))
	if err != nil {
		return Delivered{}, err
	}
	if got.User == "" {
		r.emit(NoUser{Name: img.Name, Ref: img.Ref})
	} else {
		r.emit(User{Name: img.Name, Ref: img.Ref, User: got.User})
	}
	if set := sorted(r.decision.Platforms); r.decision.Kind != "" {
		r.emit(Loaded{Name: img.Name, Ref: img.Ref, Cluster: r.decision.Kind, Digest: got.Digest, Platforms: set})
	} else {
		r.emit(Pushed{Name: img.Name, Ref: img.Ref, Registry: r.decision.Registry, Digest: got.Digest, Platforms: set})
	}
	return got, nil
}

// source names who had an image that is not built.
func (r *delivery) source() string {
	if r.decision.Kind != "" {
		return "nodes"
	}
	return "registry"
}

// prepare finds the builder and asks once whether it can build for every platform.
func (r *delivery) prepare(ctx context.Context) error {
	if r.builder != nil {
		return nil
	}
	builder, err := r.connect(ctx)
	if err != nil {
		return err
	}
	offered, err := builder.Platforms(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		offered = nil // a builder that cannot say what it builds for has no opinion; the build will tell
	}
	if err := platforms.CheckBuilder(r.decision.Platforms, offered); err != nil {
		return err
	}
	r.builder = builder
	if placed, ok := builder.(interface{ Place() Place }); ok {
		r.emit(Chosen{Builder: placed.Place().String()})
	}
	return nil
}

func (r *delivery) request(img Image) BuildRequest {
	return BuildRequest{
		Name: img.Name, Dir: img.Dir, Ref: img.Ref,
		Platforms: sorted(r.decision.Platforms),
		Labels:    map[string]string{LabelKind: KindSandbox, LabelInstance: r.decision.Instance},
		BuildArgs: r.opts.BuildArgs,
		Progress:  r.emit,
		BeforePush: func(ctx context.Context, images []Built) error {
			return beforePush(ctx, img, images)
		},
	}
}

// beforePush refuses what could not serve: a last stage that stands on an image for another platform, USERs that differ, and a
// folder that is no longer the one that the ref names. A pushed image could not be taken back.
func beforePush(ctx context.Context, img Image, images []Built) error {
	wrong, users := map[string]string{}, map[string]string{}
	for _, image := range images {
		users[image.Platform] = image.User
		if image.BasePlatform != "" && architecture(image.BasePlatform) != architecture(image.Platform) {
			wrong[image.Platform] = image.BasePlatform
		}
	}
	if len(wrong) > 0 {
		return &PlatformError{Ref: img.Ref, Wrong: wrong, Base: true}
	}
	if _, err := oneUser(img.Ref, users); err != nil {
		return err
	}
	digest, err := ContextDigest(ctx, img.Dir)
	if err != nil {
		return err
	}
	if digest != img.Digest {
		return &ChangedError{Dir: img.Dir, Ref: img.Ref}
	}
	return nil
}
