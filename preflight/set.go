package preflight

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// SetFacts is what is known about the world that a set of objects goes to. The zero value is usable: a check that cannot look for want
// of a fact says so by one Note and never calls the set fine.
type SetFacts struct {
	// Nodes of the cluster, as placement.Nodes reads them. nil means that nobody read them; a cluster without a node is a slice that is
	// empty and not nil.
	Nodes []corev1.Node
	// Pods that the cluster holds, in all namespaces. nil means that nobody read them: nodes are then taken to be empty, and nobody can
	// say which running pods a new Pod Security level would refuse.
	Pods []corev1.Pod
	// Namespaces that the cluster holds, by name. nil means that nobody read them; a name that is not in the map does not exist.
	Namespaces map[string]*corev1.Namespace
	// RuntimeClasses that the cluster holds, by name. nil means that nobody read them. Those of the set need not be here.
	RuntimeClasses map[string]*nodev1.RuntimeClass
	// Images says what an image reference points to now. It is asked once for each reference, several at a time, so it must bear
	// concurrent calls. nil means that no registry is asked.
	Images func(ctx context.Context, ref string) (ImageFacts, error)
	// DryRun is where a pod of a namespace would be made; every call to it is a dry run. With client-go:
	// func(namespace string) preflight.PodCreator { return client.CoreV1().Pods(namespace) }. nil means that the server is not asked.
	DryRun func(namespace string) PodCreator
}

// ImageFacts is what a registry says about one image reference.
type ImageFacts struct {
	// Digest is what the reference points to now: "sha256:…".
	Digest string
	// Platforms for which it holds an image, such as "linux/amd64". None means that they are not known, as for an artifact.
	Platforms []string
	// Missing is the registry's clear word that it holds no such image. Any other failure is an error of the call.
	Missing bool
}

// Set runs every check of a set of objects. It writes nothing: it reads the facts, asks registries through SetFacts.Images and makes
// pods by dry run through SetFacts.DryRun. The findings come check by check, in the order of the objects within a check, so equal
// facts give equal findings.
//
// Refused turns what refuses into an error. Capacity and platforms only ever warn, because the nodes of a cluster move.
func Set(ctx context.Context, objs []*unstructured.Unstructured, facts SetFacts) []Finding {
	return nil
}

// Placeholders finds values that a template left to be filled in: REPLACE_ME, CHANGEME and their spellings, and <words in angle brackets>.
// In a Secret and in the name of an image they refuse; anywhere else, such as a host or a ConfigMap, they warn. A Secret's value is
// never said, only its key.
func Placeholders(objs []*unstructured.Unstructured) []Finding { return nil }

// Digests finds images that are not pinned by digest, of init and ephemeral containers and of image volumes too. It warns, with the
// digest that the name points to now as the fix when SetFacts.Images can tell. A name that is no image reference refuses. One that
// only means Docker Hub because it names no registry warns.
func Digests(ctx context.Context, objs []*unstructured.Unstructured, facts SetFacts) []Finding {
	return nil
}

// Architectures warns of images that are not published for the architecture of a node that their pod can land on.
func Architectures(ctx context.Context, objs []*unstructured.Unstructured, facts SetFacts) []Finding {
	return nil
}

// Schedulability warns of workloads whose pod no node takes, with the reason for each group of nodes: cordons, taints, node selectors, node
// affinity, and requests, by the scheduler's own rules, against what a node has. No toleration is ever added.
func Schedulability(objs []*unstructured.Unstructured, facts SetFacts) []Finding { return nil }

// Admission asks whether the pods that workloads will make are let in: a dry run of a pod made from each template, so that the
// server names container and field. Where the namespace, or its Pod Security labels, arrive with the set, the pod is evaluated
// here at the level and version of those labels. What is not let in refuses.
func Admission(ctx context.Context, objs []*unstructured.Unstructured, facts SetFacts) []Finding {
	return nil
}

// Drains does the arithmetic of nodes and replicas: required anti-affinity against the nodes there are, and PodDisruptionBudgets that
// never allow an eviction.
func Drains(objs []*unstructured.Unstructured, facts SetFacts) []Finding { return nil }
