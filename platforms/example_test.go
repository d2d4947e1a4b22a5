package platforms_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"jr2.dev/jr2/platforms"
)

func ExampleFromNodes() {
	set, err := platforms.FromNodes([]corev1.Node{node("jr2-control-plane", "amd64"), node("mainframe", "s390x")})
	fmt.Println(set.Platforms, set.Nodes, set.Skipped, set.Suffix(), err)
	// Output: [linux/amd64] 2 [s390x] -amd64 <nil>
}

func ExampleNamed() {
	set, err := platforms.Named([]string{"linux/arm64/v8", "linux/amd64"})
	fmt.Println(set.Platforms, err)
	// Output: [linux/amd64 linux/arm64] <nil>
}

func ExampleMissing() {
	fmt.Println(platforms.Missing([]string{"linux/amd64", "linux/arm64"}, []string{"linux/amd64", "linux/386"}))
	// Output: [linux/arm64]
}

func ExampleCheckBuilder() {
	err := platforms.CheckBuilder([]string{"linux/arm64"}, []string{"linux/amd64", "linux/386"})
	fmt.Println(err)
	// Output:
	// this host cannot build for linux/arm64: a foreign architecture's RUN steps need qemu binfmt emulation, and none is registered (this builder targets linux/amd64, linux/386). Install it, then re-run:
	//   docker run --privileged --rm tonistiigi/binfmt --install arm64
}

func ExampleCheckRegistry() {
	set, _ := platforms.Named([]string{"linux/amd64", "linux/arm64"})
	prefix := "registry.example.com/team"
	fmt.Println(platforms.CheckRegistry(set, &prefix))
	// Output: <nil>
}

func ExampleNormalize() {
	platform, err := platforms.Normalize("linux/aarch64")
	fmt.Println(platform, err)
	// Output: linux/arm64 <nil>
}

func ExampleFromIndex() {
	index := &v1.IndexManifest{Manifests: []v1.Descriptor{image("linux", "amd64", ""), attestation()}}
	fmt.Println(platforms.FromIndex(index))
	// Output: [linux/amd64]
}

func ExampleUnserved() {
	nodes := []corev1.Node{node("one", "amd64"), node("two", "arm64")}
	fmt.Println(platforms.Unserved(nodes, []string{"linux/amd64"}))
	// Output: [{arm64 [two]}]
}

func ExampleSupported() {
	fmt.Println(platforms.Supported())
	// Output: [linux/amd64 linux/arm64]
}
