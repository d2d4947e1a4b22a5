// Package v1alpha1 is the kinds core.jr2.dev/v1alpha1: Sandbox, the one pod in which the agents of a Workspace work, and Repo, a
// git repository that the Repo cache keeps on the nodes.
//
// It decides the shape of both kinds and what an API server refuses of them. It does not decide what an operator does with them.
//
// zz_generated.deepcopy.go and crds/ are made from the types by controller-gen: go generate ./placement/v1alpha1. Descriptions
// are left out of the CRDs, because a Sandbox holds the whole container shape of Kubernetes and its documentation would be most
// of the object.
//
// +kubebuilder:object:generate=true
// +groupName=core.jr2.dev
package v1alpha1

//go:generate go run -modfile=../../internal/devcluster/build/tools/controller-gen.mod sigs.k8s.io/controller-tools/cmd/controller-gen object crd:maxDescLen=0 paths=. output:object:dir=. output:crd:dir=crds
