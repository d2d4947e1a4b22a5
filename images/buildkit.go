package images

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	cplatforms "github.com/containerd/platforms"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/moby/buildkit/client"
	"github.com/moby/buildkit/exporter/containerimage/exptypes"
	gateway "github.com/moby/buildkit/frontend/gateway/client"
	"github.com/moby/buildkit/session"
	"github.com/moby/buildkit/util/bklog"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sirupsen/logrus"
	"github.com/tonistiigi/fsutil"

	"jr2.dev/jr2/platforms"
)

// imageTime is the time, in Unix seconds, that an image and the files that its build wrote carry, so that equal inputs give an equal
// digest: the start of 1980, because archives of the ZIP kind hold no time before. A build argument SOURCE_DATE_EPOCH replaces it.
const imageTime = 315532800

// drainTimeout bounds the wait for a cancelled build to end by itself.
const drainTimeout = 15 * time.Second

// Platforms lists what the first worker, which runs the builds, can build for.
func (b *BuildKit) Platforms(ctx context.Context) ([]string, error) {
	workers, err := b.client.ListWorkers(quiet(ctx))
	if err != nil || len(workers) == 0 {
		return nil, err
	}
	var out []string
	for _, p := range workers[0].Platforms {
		out = append(out, cplatforms.Format(p))
	}
	return out, nil
}

// Build implements Builder by the Dockerfile frontend and the image exporter.
func (b *BuildKit) Build(ctx context.Context, req BuildRequest) (BuildResult, error) {
	if b.engine != nil && b.engine.classic {
		return b.engine.build(ctx, b, req)
	}
	export := map[string]string{"name": req.Ref, "push": "true", "oci-mediatypes": "true", "rewrite-timestamp": "true"}
	if req.Insecure {
		export["registry.insecure"] = "true"
	}
	if req.ByDigest {
		target, err := req.target()
		if err != nil {
			return BuildResult{}, err
		}
		export["name"], export["push-by-digest"] = target.Context().Name(), "true"
	}
	var built []Built
	before := req.BeforePush
	req.BeforePush = func(ctx context.Context, images []Built) error {
		built = images
		if before == nil {
			return nil
		}
		return before(ctx, images)
	}
	response, err := b.solve(ctx, req, client.ExportEntry{Type: client.ExporterImage, Attrs: export})
	if err != nil {
		return BuildResult{}, err
	}
	return BuildResult{Digest: response.ExporterResponse[exptypes.ExporterImageDigestKey], Users: users(built)}, nil
}

func users(built []Built) map[string]string {
	out := map[string]string{}
	for _, image := range built {
		out[image.Platform] = image.User
	}
	return out
}

// solve runs one build with one export. Errors are those of Build.
func (b *BuildKit) solve(ctx context.Context, req BuildRequest, export client.ExportEntry) (*client.SolveResponse, error) {
	opt, err := req.solveOptions(export)
	if err != nil {
		return nil, err
	}
	s := &solve{req: req, attrs: opt.FrontendAttrs, status: newStatus(req.Ref, req.Progress), drain: b.drain}
	if s.drain == 0 {
		s.drain = drainTimeout
	}
	response, err := s.run(ctx, b.client, opt)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case s.refused != nil:
		return nil, s.refused
	case err != nil && s.built:
		return nil, &PushError{Name: req.Name, Ref: req.Ref, Err: err}
	case err != nil:
		step, log := s.status.failed()
		return nil, &BuildError{Name: req.Name, Ref: req.Ref, Dir: req.Dir, Sources: sources(err, req.Dir), Step: step, Log: log, Err: err}
	}
	return response, nil
}

// target is the parsed Ref.
func (req BuildRequest) target() (name.Reference, error) {
	var opts []name.Option
	if req.Insecure {
		opts = append(opts, name.Insecure)
	}
	target, err := name.ParseReference(req.Ref, opts...)
	if err != nil {
		return nil, &RefError{req.Ref, err.Error()}
	}
	return target, nil
}

// remote are the options of our own requests to the registry.
func (req BuildRequest) remote(ctx context.Context) []remote.Option {
	keychain, transport := req.login()
	return remoteOptions(ctx, keychain, transport)
}

func (req BuildRequest) login() (authn.Keychain, http.RoundTripper) {
	keychain, transport := req.Keychain, req.Transport
	if keychain == nil {
		keychain = authn.DefaultKeychain
	}
	if transport == nil {
		transport = remote.DefaultTransport
	}
	return keychain, transport
}

func (req BuildRequest) solveOptions(export client.ExportEntry) (client.SolveOpt, error) {
	folder, err := fsutil.NewFS(req.Dir)
	if err != nil {
		return client.SolveOpt{}, &ContextError{Dir: req.Dir, Err: err}
	}
	target, err := req.target()
	if err != nil {
		return client.SolveOpt{}, err
	}
	attrs := map[string]string{"platform": strings.Join(req.Platforms, ","), "build-arg:SOURCE_DATE_EPOCH": strconv.Itoa(imageTime)}
	for key, value := range req.Labels {
		attrs["label:"+key] = value
	}
	for key, value := range req.BuildArgs {
		attrs["build-arg:"+key] = value
	}
	if req.NoCache {
		attrs["no-cache"] = ""
	}
	keychain, transport := req.login()
	return client.SolveOpt{
		FrontendAttrs: attrs,
		LocalMounts:   map[string]fsutil.FS{"context": folder, "dockerfile": folder},
		Exports:       []client.ExportEntry{export},
		Session:       []session.Attachable{newAuthServer(keychain, transport, target)},
	}, nil
}

// solve is one running build.
type solve struct {
	req    BuildRequest
	attrs  map[string]string
	status *status
	drain  time.Duration

	// Written by the build's callback, read when the build has ended.
	images  []Built
	built   bool
	refused error
}

// run builds and waits until everything has ended; a cancelled build gets s.drain for that.
func (s *solve) run(ctx context.Context, c *client.Client, opt client.SolveOpt) (*client.SolveResponse, error) {
	type answer struct {
		response *client.SolveResponse
		err      error
	}
	answers, updates := make(chan answer, 1), make(chan *client.SolveStatus)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for update := range updates {
			s.status.add(update)
		}
	}()
	go func() {
		response, err := c.Build(quiet(ctx), opt, "jr2", s.callback, updates)
		<-drained
		answers <- answer{response, err}
	}()
	defer s.status.mute() // no event after the return
	select {
	case a := <-answers:
		return a.response, a.err
	case <-ctx.Done():
	}
	late := time.NewTimer(s.drain)
	defer late.Stop()
	select {
	case a := <-answers:
		return a.response, a.err
	case <-late.C:
		return nil, context.Cause(ctx)
	}
}

// callback runs between the steps of the Dockerfile and the push.
func (s *solve) callback(ctx context.Context, c gateway.Client) (*gateway.Result, error) {
	result, err := c.Solve(ctx, gateway.SolveRequest{Frontend: "dockerfile.v0", FrontendOpt: maps.Clone(s.attrs), Evaluate: true})
	if err != nil {
		return nil, err
	}
	if err := evaluate(ctx, result); err != nil {
		return nil, err
	}
	if s.images, err = builtImages(result, s.req.Platforms); err != nil {
		return nil, err
	}
	if s.req.BeforePush != nil {
		if err := s.req.BeforePush(ctx, s.images); err != nil {
			s.refused = err
			return nil, err
		}
	}
	s.built = true
	return result, nil
}

// evaluate runs all steps. An old BuildKit does not know the request's own Evaluate, and would run them with the export.
func evaluate(ctx context.Context, result *gateway.Result) error {
	return result.EachRef(func(ref gateway.Reference) error {
		_, err := ref.StatFile(ctx, gateway.StatRequest{Path: "."})
		return err
	})
}

// builtImages reads what the Dockerfile frontend says of the images that it made.
func builtImages(result *gateway.Result, platformSet []string) ([]Built, error) {
	var out []Built
	for _, p := range platformSet {
		platform, err := platforms.Normalize(p)
		if err != nil {
			return nil, err
		}
		image := Built{Platform: platform}
		var config, base ocispecs.Image
		if err := platformMeta(result, exptypes.ExporterImageConfigKey, platform, len(platformSet) > 1, &config); err != nil {
			return nil, err
		}
		if err := platformMeta(result, exptypes.ExporterImageBaseConfigKey, platform, len(platformSet) > 1, &base); err != nil {
			return nil, err
		}
		image.User = config.Config.User
		if base.OS != "" && base.Architecture != "" {
			image.BasePlatform = cplatforms.Format(cplatforms.Normalize(base.Platform))
		}
		out = append(out, image)
	}
	return out, nil
}

// platformMeta decodes one piece of metadata; one that is not there leaves into as it is.
func platformMeta(result *gateway.Result, key, platform string, several bool, into any) error {
	if several {
		key += "/" + platform
	}
	text, ok := result.Metadata[key]
	if !ok {
		return nil
	}
	return json.Unmarshal(text, into)
}

// quiet keeps the client's own log lines from the process's standard logger.
func quiet(ctx context.Context) context.Context {
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	return bklog.WithLogger(ctx, logrus.NewEntry(logger))
}

// sorted is set without duplicates, in normal form where there is one.
func sorted(set []string) []string {
	out := make([]string, 0, len(set))
	for _, p := range set {
		if normal, err := platforms.Normalize(p); err == nil {
			p = normal
		}
		out = append(out, p)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
