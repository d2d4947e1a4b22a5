package preflight

import (
	"context"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
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
	// Images asks a registry what an image reference points to now. as are the credentials to ask with: authn.Anonymous for none, and nil for
	// those that the caller has. It is asked once for each reference and credentials, several at a time, so it must bear concurrent calls. Where
	// nodes know a registry by another name than the caller, it translates. nil means that no registry is asked.
	Images func(ctx context.Context, ref string, as authn.Authenticator) (ImageFacts, error)
	// Pulled are images that the nodes are known to have pulled: nobody asks about them again whether they can. nil means none.
	Pulled []string
	// Secrets and ServiceAccounts are where the pull Secrets of pods are read, by namespace. With client-go:
	// func(namespace string) preflight.SecretGetter { return client.CoreV1().Secrets(namespace) }. nil means that nobody reads them. Those of the
	// set need not be there.
	Secrets         func(namespace string) SecretGetter
	ServiceAccounts func(namespace string) ServiceAccountGetter
	// DryRun is where a pod of a namespace would be made; every call to it is a dry run. With client-go:
	// func(namespace string) preflight.PodCreator { return client.CoreV1().Pods(namespace) }. nil means that the server is not asked.
	DryRun func(namespace string) PodCreator
	// Webhooks is where the webhooks of the cluster are read. nil means that nobody reads them.
	Webhooks *WebhookReader
}

// ImageFacts is what a registry says about one image reference to somebody with some credentials.
type ImageFacts struct {
	// Digest is what the reference points to now: "sha256:…".
	Digest string
	// Platforms for which it holds an image, such as "linux/amd64". None means that they are not known, as for an artifact.
	Platforms []string
	// Missing is the registry's clear word that it holds no such image.
	Missing bool
	// Denied is the registry's clear word that these credentials may not read it, or that it wants some. Any other failure is an error of the
	// call.
	Denied error
}

// Set runs every check of a set of objects. It writes nothing: it reads the facts, asks registries through SetFacts.Images and makes
// pods by dry run through SetFacts.DryRun. The findings come check by check, in the order of the objects within a check, so equal
// facts give equal findings.
//
// Refused turns what refuses into an error. Capacity and platforms only ever warn, because the nodes of a cluster move.
func Set(ctx context.Context, objs []*unstructured.Unstructured, facts SetFacts) []Finding {
	l := lookAt(objs, facts)
	// First, since the pods that the server lets in are what the next checks reckon with.
	admission := l.admission(ctx)
	l.askPulls(ctx)
	l.askImages(ctx)
	return slices.Concat(l.unread, Placeholders(objs), l.digests(), l.pullFindings(), l.architectures(), l.nodeVersions(), l.schedulability(), admission, l.webhooks(ctx), l.drains())
}
