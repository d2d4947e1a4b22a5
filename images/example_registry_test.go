package images_test

import (
	"fmt"

	"jr2.dev/jr2/images"
)

// Registries whose certificates a private authority signed.
func ExampleTransport() {
	_, err := images.Transport("/nowhere/ca.pem")
	fmt.Println(err)
	transport, err := images.Transport() // none: the library's own
	registry := &images.Registry{Transport: transport, Insecure: []string{"10.0.0.7:5000"}}
	fmt.Println(registry != nil, err)
	// Output:
	// certificate authority for registries: open /nowhere/ca.pem: no such file or directory
	// true <nil>
}

func ExampleHostNote() {
	fmt.Println(images.HostNote("registry", "team"))
	fmt.Printf("%q\n", images.HostNote("registry", "registry.example.com/team"))
	// Output:
	// registry "team" names no host, so it means docker.io/team
	// ""
}

// Somebody names an image by its reference, in another version, that is turned off.
func ExampleBundle_Refused() {
	off := false
	bundle := images.Bundle{Home: "ghcr.io/acme", Prefix: "sandbox-", Version: "1.4.0", Images: map[string]images.Bundled{"node": {Enabled: &off}}}
	fmt.Println(bundle.Refused("ghcr.io/acme/sandbox-node:1.3.0"))
	fmt.Println(bundle.Check())
	// Output:
	// node true
	// <nil>
}

// A release's images under the settings of an administrator; a misspelled name is no silent "on".
func ExampleBundle_With() {
	off := false
	release := images.Bundle{Home: "ghcr.io/acme", Prefix: "sandbox-", Version: "1.4.0", Images: map[string]images.Bundled{"node": {}}}
	_, err := release.With(map[string]images.Bundled{"nod": {Enabled: &off}})
	fmt.Println(err)
	// Output: bundled image "nod" is not among the bundled images; offered are node
}
