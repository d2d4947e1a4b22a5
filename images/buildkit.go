package images

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
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
	opt, err := solveOptions(req)
	if err != nil {
		return BuildResult{}, err
	}
	s := &solve{req: req, attrs: opt.FrontendAttrs, status: newStatus(req.Ref, req.Progress)}
	response, err := s.run(ctx, b.client, opt)
	switch {
	case ctx.Err() != nil:
		return BuildResult{}, context.Cause(ctx)
	case s.refused != nil:
		return BuildResult{}, s.refused
	case err != nil && s.built:
		return BuildResult{}, &PushError{Name: req.Name, Ref: req.Ref, Err: err}
	case err != nil:
		return BuildResult{}, &BuildError{Name: req.Name, Ref: req.Ref, Dir: req.Dir, Sources: sources(err), Log: s.status.failedLog(), Err: err}
	}
	result := BuildResult{Digest: response.ExporterResponse[exptypes.ExporterImageDigestKey], Users: map[string]string{}}
	for _, image := range s.images {
		result.Users[image.Platform] = image.User
	}
	return result, nil
}

func solveOptions(req BuildRequest) (client.SolveOpt, error) {
	folder, err := fsutil.NewFS(req.Dir)
	if err != nil {
		return client.SolveOpt{}, &ContextError{Dir: req.Dir, Err: err}
	}
	target, err := name.ParseReference(req.Ref)
	if err != nil {
		return client.SolveOpt{}, &RefError{req.Ref, err.Error()}
	}
	attrs := map[string]string{"platform": strings.Join(req.Platforms, ",")}
	for key, value := range req.Labels {
		attrs["label:"+key] = value
	}
	for key, value := range req.BuildArgs {
		attrs["build-arg:"+key] = value
	}
	if req.NoCache {
		attrs["no-cache"] = ""
	}
	export := map[string]string{"name": req.Ref, "push": "true", "oci-mediatypes": "true"}
	if req.Insecure {
		export["registry.insecure"] = "true"
	}
	keychain, transport := req.Keychain, req.Transport
	if keychain == nil {
		keychain = authn.DefaultKeychain
	}
	if transport == nil {
		transport = remote.DefaultTransport
	}
	return client.SolveOpt{
		FrontendAttrs: attrs,
		LocalMounts:   map[string]fsutil.FS{"context": folder, "dockerfile": folder},
		Exports:       []client.ExportEntry{{Type: client.ExporterImage, Attrs: export}},
		Session:       []session.Attachable{newAuthServer(keychain, transport, target)},
	}, nil
}

// solve is one running build.
type solve struct {
	req    BuildRequest
	attrs  map[string]string
	status *status

	// Written by the build's callback, read when the build has ended.
	images  []Built
	built   bool
	refused error
}

// run builds and waits until everything has ended; a cancelled build gets drainTimeout for that.
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
	late := time.NewTimer(drainTimeout)
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
