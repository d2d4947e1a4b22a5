package v1alpha1

import (
	"embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed crds/*.yaml
var manifests embed.FS

// CRDs returns the CustomResourceDefinitions of both kinds, Repo first, as controller-gen made them from the types of this package, and
// narrowed to what a Sandbox may ask of a node.
// Each call returns objects of its own. An error means that this package was built wrong.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := manifests.ReadDir("crds")
	if err != nil {
		return nil, err
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		text, err := manifests.ReadFile("crds/" + file.Name())
		if err != nil {
			return nil, err
		}
		crd := new(apiextensionsv1.CustomResourceDefinition)
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		if err := narrow(crd); err != nil {
			return nil, err
		}
		all = append(all, crd)
	}
	return all, nil
}
