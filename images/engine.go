package images

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/docker/cli/cli/config"
	dockercontext "github.com/docker/cli/cli/context"
	"github.com/docker/cli/cli/context/docker"
	"github.com/docker/cli/cli/context/store"
	bkclient "github.com/moby/buildkit/client"
	moby "github.com/moby/moby/client"

	"jr2.dev/jr2/platforms"
)

// engine is a Docker Engine as a builder.
type engine struct {
	api *moby.Client
	// classic says that it keeps images in its own store and not in containerd's: its BuildKit can then neither push nor hand out an
	// image, which has to be fetched from the store.
	classic bool
	// architecture is the one that it runs without emulation.
	architecture string
}

// dockerEngine looks for the Docker Engine that the docker command would use.
func (o ConnectOptions) dockerEngine(ctx context.Context) (*BuildKit, Place, error) {
	api, place, err := o.dockerClient()
	if err != nil {
		return nil, place, err
	}
	within, cancel := context.WithTimeoutCause(ctx, o.timeout(), fmt.Errorf("no answer within %s", o.timeout()))
	defer cancel()
	b, version, err := dialEngine(within, api)
	if err == nil {
		err = o.answers(within, b.client)
	}
	if err != nil {
		if within.Err() != nil {
			err = context.Cause(within)
		}
		return nil, place, errors.Join(err, api.Close())
	}
	place.What += " " + version
	return b, place, nil
}

// dockerClient makes a client for the Docker Engine that the docker command would use, and asks it nothing yet.
func (o ConnectOptions) dockerClient() (*moby.Client, Place, error) {
	place := Place{What: "Docker Engine"}
	endpoint, why, err := o.dockerEndpoint()
	place.Address, place.Why = endpoint.Host, why
	if err != nil {
		return nil, place, err
	}
	if path, ok := socketPath(endpoint.Host); ok {
		if _, err := os.Stat(path); err != nil {
			return nil, place, err
		}
	}
	options, err := endpoint.ClientOpts()
	if err != nil {
		return nil, place, err
	}
	api, err := moby.New(options...)
	return api, place, err
}

// dialEngine reaches BuildKit through the engine's API, which upgrades a connection to gRPC.
//
// Source: buildx, driver/docker/driver.go.
func dialEngine(ctx context.Context, api *moby.Client) (*BuildKit, string, error) {
	info, err := api.Info(ctx, moby.InfoOptions{})
	if err != nil {
		return nil, "", err
	}
	if info.Info.OSType != "linux" {
		return nil, "", fmt.Errorf("it runs %s containers; Sandboxes are Linux", info.Info.OSType)
	}
	e := &engine{api: api, classic: true}
	if native, err := platforms.Normalize("linux/" + info.Info.Architecture); err == nil {
		e.architecture = architecture(native)
	}
	for _, status := range info.Info.DriverStatus {
		if status == [2]string{"driver-type", "io.containerd.snapshotter.v1"} {
			e.classic = false
		}
	}
	// The client of the connection's whole life, not of this call, whose context ends.
	c, err := bkclient.New(quiet(context.WithoutCancel(ctx)), "",
		bkclient.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return api.DialHijack(ctx, "/grpc", "h2c", nil)
		}),
		bkclient.WithSessionDialer(func(ctx context.Context, proto string, meta map[string][]string) (net.Conn, error) {
			return api.DialHijack(ctx, "/session", proto, meta)
		}))
	if err != nil {
		return nil, "", err
	}
	return &BuildKit{client: c, engine: e, closes: []func() error{c.Close, api.Close}}, info.Info.ServerVersion, nil
}

// dockerEndpoint finds the engine as the docker command does, and says why it is that one.
//
// Source: docker/cli, cli/command/cli.go (resolveContextName, resolveDefaultDockerEndpoint).
func (o ConnectOptions) dockerEndpoint() (docker.Endpoint, string, error) {
	dir := o.env(config.EnvOverrideConfigDir)
	if home := o.env("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".docker")
	}
	if host := o.env(moby.EnvOverrideHost); host != "" {
		endpoint, err := o.dockerTLS(host, dir)
		return endpoint, "DOCKER_HOST is set", err
	}
	name, why := o.env("DOCKER_CONTEXT"), "DOCKER_CONTEXT is set"
	if name == "" && dir != "" {
		file, err := config.Load(dir)
		if err != nil {
			return docker.Endpoint{}, "", err
		}
		name, why = file.CurrentContext, "the current docker context"
	}
	if name == "" || name == "default" {
		endpoint, err := o.dockerTLS(moby.DefaultDockerHost, dir)
		return endpoint, "docker's default socket", err
	}
	why = fmt.Sprintf("docker context %q: %s", name, why)
	endpoint, err := dockerContext(filepath.Join(dir, "contexts"), name)
	return endpoint, why, err
}

// dockerContext reads an endpoint from the docker command's store of contexts.
func dockerContext(dir, name string) (docker.Endpoint, error) {
	contexts := store.New(dir, store.NewConfig(func() any { return &map[string]any{} },
		store.EndpointTypeGetter(docker.DockerEndpoint, func() any { return &docker.EndpointMeta{} })))
	metadata, err := contexts.GetMetadata(name)
	if err != nil {
		return docker.Endpoint{}, err
	}
	meta, err := docker.EndpointFromContext(metadata)
	if err != nil {
		return docker.Endpoint{}, err
	}
	return docker.WithTLSData(contexts, name, meta)
}

// dockerTLS adds what DOCKER_TLS, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH say.
func (o ConnectOptions) dockerTLS(host, dir string) (docker.Endpoint, error) {
	endpoint := docker.Endpoint{EndpointMeta: docker.EndpointMeta{Host: host}}
	verify := o.env(moby.EnvTLSVerify) != ""
	if !verify && o.env("DOCKER_TLS") == "" {
		return endpoint, nil
	}
	endpoint.SkipTLSVerify = !verify
	if path := o.env(moby.EnvOverrideCertPath); path != "" {
		dir = path
	}
	var err error
	endpoint.TLSData, err = dockercontext.TLSDataFromFiles(existing(dir, "ca.pem"), existing(dir, "cert.pem"), existing(dir, "key.pem"))
	if endpoint.TLSData == nil && verify {
		endpoint.TLSData = &dockercontext.TLSData{} // TLS by the system's authorities; the docker command would go on without TLS
	}
	return endpoint, err
}

func existing(dir, name string) string {
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}
