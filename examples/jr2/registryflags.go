package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"jr2.dev/jr2"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/platforms"
)

// registryFlags say how registries are reached.
func registryFlags(flags *pflag.FlagSet, rules *images.RegistryRules) {
	flags.StringArrayVar(&rules.CAFiles, "registry-ca", nil, "PEM file of an authority that registries' certificates are checked by, beside the system's; may be repeated")
	flags.StringArrayVar(&rules.Insecure, "insecure-registry", nil, "HOST[:PORT] that may be spoken to by plain http; may be repeated (loopback hosts always may)")
	flags.Var((*mirrorsFlag)(&rules.Mirrors), "registry-mirror", "HOST=MIRROR: a mirror, such as docker.io=mirror.example.com:5000/hub, that images of a registry are read from before the registry itself; may be repeated")
}

// builderFlags say where images are built, with the names of buildctl's own flags after "buildkit-".
func builderFlags(flags *pflag.FlagSet, options *jr2.Options) {
	flags.StringVar(&options.BuildkitHost, "buildkit-addr", "", "address of a buildkitd, such as tcp://builder.example.com:1234 (default: $BUILDKIT_HOST; else one at the default sockets, else Docker, else one of our own)")
	flags.Var(nativesFlag{options}, "buildkit-native", "PLATFORM=ADDRESS: a buildkitd that builds for one platform, such as linux/arm64=tcp://arm.example.com:1234, so that none is emulated; once for each platform. The other flags say how to reach it")
	flags.StringVar(&options.Buildkit.ServerName, "buildkit-tlsservername", "", "name in the certificate of the buildkitd (default: its host)")
	flags.StringVar(&options.Buildkit.CACert, "buildkit-tlscacert", "", "PEM file of the authority that its certificate is checked by")
	flags.StringVar(&options.Buildkit.Cert, "buildkit-tlscert", "", "PEM file of our certificate")
	flags.StringVar(&options.Buildkit.Key, "buildkit-tlskey", "", "PEM file of the key to it")
	flags.StringVar(&options.Buildkit.TLSDir, "buildkit-tlsdir", "", "folder with all three as ca.pem, cert.pem and key.pem, or ca.crt, tls.crt and tls.key")
	flags.DurationVar(&options.Buildkit.Timeout, "buildkit-timeout", 0, "how long each place at which a builder may be has to answer (default 10s)")
}

// reach takes the rules for registries, and how to reach builders of single platforms, over into the options of a converge.
func reach(options *jr2.Options, rules images.RegistryRules) {
	options.RegistryCA, options.InsecureRegistries, options.RegistryMirrors = rules.CAFiles, rules.Insecure, rules.Mirrors
	for platform, native := range options.Natives {
		all := options.Buildkit
		all.Address = native.Address
		options.Natives[platform] = all
	}
}

// nativesFlag are builders by platform as a flag.
type nativesFlag struct{ options *jr2.Options }

// String implements pflag.Value.
func (n nativesFlag) String() string { return "" }

// Type implements pflag.Value.
func (n nativesFlag) Type() string { return "PLATFORM=ADDRESS" }

// Set implements pflag.Value. What the other flags say is added when all have been read.
func (n nativesFlag) Set(text string) error {
	platform, address, ok := strings.Cut(text, "=")
	if !ok || address == "" {
		return fmt.Errorf("want PLATFORM=ADDRESS, such as linux/arm64=tcp://arm.example.com:1234")
	}
	platform, err := platforms.Normalize(platform)
	if err != nil {
		return err
	}
	if n.options.Natives == nil {
		n.options.Natives = map[string]images.ConnectOptions{}
	}
	n.options.Natives[platform] = images.ConnectOptions{Address: address}
	return nil
}

// mirrorsFlag is images.Mirrors as a flag.
type mirrorsFlag images.Mirrors

// String implements pflag.Value.
func (m *mirrorsFlag) String() string { return "" }

// Type implements pflag.Value.
func (m *mirrorsFlag) Type() string { return "HOST=MIRROR" }

// Set implements pflag.Value. A mirror that is repeated for its host comes after those before it.
func (m *mirrorsFlag) Set(text string) error {
	host, mirror, ok := strings.Cut(text, "=")
	if !ok || host == "" || mirror == "" {
		return fmt.Errorf("want HOST=MIRROR, such as docker.io=mirror.example.com:5000/hub")
	}
	one := images.Mirrors{host: {mirror}}
	if err := one.Check(); err != nil {
		return err
	}
	if *m == nil {
		*m = mirrorsFlag{}
	}
	(*m)[host] = append((*m)[host], mirror)
	return nil
}
