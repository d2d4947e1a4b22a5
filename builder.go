package jr2

import (
	"context"
	"slices"

	"jr2.dev/jr2/images"
	"jr2.dev/jr2/platforms"
)

// builder is where images are built, once one has to be.
func (c *converge) builder() *lazyBuilder {
	b := &lazyBuilder{given: c.opts.Builder, connect: c.connectOptions()}
	if len(c.opts.Natives) == 0 {
		return b
	}
	b.natives = map[string]images.ConnectOptions{}
	for platform, opts := range c.opts.Natives {
		if normal, err := platforms.Normalize(platform); err == nil {
			platform = normal
		}
		if slices.Contains(c.set.Platforms, platform) { // nobody else is needed
			b.natives[platform] = c.completed(opts)
		}
	}
	return b
}

// connectOptions say where a builder is looked up.
func (c *converge) connectOptions() images.ConnectOptions {
	opts := c.opts.Buildkit
	if c.opts.BuildkitHost != "" {
		opts.Address = c.opts.BuildkitHost
	}
	if opts.Address == "" {
		opts.Address = c.env["BUILDKIT_HOST"]
	}
	return c.completed(opts)
}

// completed adds what holds for every builder: nothing of the process's own environment counts unless the caller passed it, and a builder of
// ours reaches registries as we do.
func (c *converge) completed(opts images.ConnectOptions) images.ConnectOptions {
	if opts.Env = c.env; opts.Env == nil {
		opts.Env = map[string]string{}
	}
	opts.Registries.CAFiles = slices.Concat(opts.Registries.CAFiles, c.opts.RegistryCA)
	opts.Registries.Insecure = slices.Concat(opts.Registries.Insecure, c.opts.InsecureRegistries)
	if opts.Registries.Mirrors == nil {
		opts.Registries.Mirrors = c.opts.RegistryMirrors
	}
	return opts
}

// lazyBuilder connects to BuildKit when the first build needs it.
type lazyBuilder struct {
	given   images.Builder
	natives map[string]images.ConnectOptions // nil for one builder
	connect images.ConnectOptions
	opened  []*images.BuildKit
}

func (b *lazyBuilder) get(ctx context.Context) (images.Builder, error) {
	if b.given != nil {
		return b.given, nil
	}
	if b.natives == nil {
		return b.open(ctx, b.connect)
	}
	natives := images.Natives{}
	for platform, opts := range b.natives {
		builder, err := b.open(ctx, opts)
		if err != nil {
			return nil, err
		}
		natives[platform] = builder
	}
	return natives, nil
}

func (b *lazyBuilder) open(ctx context.Context, opts images.ConnectOptions) (images.Builder, error) {
	builder, err := images.Connect(ctx, opts)
	if err != nil {
		return nil, err
	}
	b.opened = append(b.opened, builder)
	return builder, nil
}

func (b *lazyBuilder) close() {
	for _, builder := range b.opened {
		builder.Close() //nolint:errcheck // nothing is left to say to it
	}
}
