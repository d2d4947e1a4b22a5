package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Group is the API group of both kinds.
	Group = "core.jr2.dev"
	// Version is the one version that is served and stored.
	Version = "v1alpha1"
)

// GroupVersion returns core.jr2.dev/v1alpha1.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// Resource names of both kinds.
const (
	SandboxResource = "sandboxes"
	RepoResource    = "repos"
)

// AddToScheme makes a scheme know both kinds and their lists.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &Sandbox{}, &SandboxList{}, &Repo{}, &RepoList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
