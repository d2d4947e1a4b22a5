package jr2

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/assembly"
	"jr2.dev/jr2/internal/seed"
	"jr2.dev/jr2/preflight"
)

// Options say what to converge and where. The zero Options converges the Instance folder around the working directory into the
// kubeconfig's current context, asks nobody (so that a first contact stops), and tells nobody.
type Options struct {
	// Dir is the Instance folder or a folder below it; the working directory when empty. Ignored when Instance is set.
	Dir string
	// Instance is the Instance as a Go value; then no folder is read.
	Instance *config.Instance
	// Env is the environment that the folder's code may read and that git tokens come from; .env fills in what it lacks. Nil is empty:
	// nothing of the process environment is visible unless the caller passes it.
	Env map[string]string

	// Trusted says that code which the folder brings may run here, with the rights of this process: its TypeScript compiler. Without it the
	// folder is data, its types are not checked, and a finding says so.
	Trusted bool
	// Outermost is the outermost folder of which anything is read: packages are looked for in the node_modules of the folders from the
	// Instance's up to this one. Empty is the Instance folder itself. config.FindWorkspace finds it for a folder of the caller's own.
	Outermost string
	// Isolate is a command that evaluates the folder's code in a process of its own and calls config.ServeIsolated; for folders of
	// strangers. Empty evaluates in this process.
	Isolate []string

	// Config is the cluster. When nil, Kubeconfig and Context choose one.
	Config *rest.Config
	// Kubeconfig is a file; when empty, the usual rules ($KUBECONFIG, ~/.kube/config) apply.
	Kubeconfig string
	// Context names the cluster: it chooses the kubeconfig's context (the current one when empty) and stands in messages. A context
	// whose name starts with "kind-" is a kind cluster: without a registry, images are loaded into its nodes, which are looked for in the
	// Docker Engine that the docker command would use with the variables of Env.
	Context string
	// Namespace is the Instance's home; its name when empty.
	Namespace string

	// Yes agrees to a first contact without asking, where the namespace is made or holds nothing of others, and to a deploy key that is generated.
	Yes bool
	// AdoptNamespace agrees to a first contact with a namespace that is there already, whatever others have in it. One that another tool keeps is
	// refused nevertheless.
	AdoptNamespace bool
	// Adopt takes over objects that are there under names of the Instance's or of the operator's and that nobody of jr2 made. Without it each is an
	// *apply.UnownedError. Values of a Secret are never replaced by it.
	Adopt bool
	// Confirm asks whether a first contact may go on. Nil means that nobody can be asked: *UnansweredError, or *OccupiedError where it needs more than Yes.
	Confirm func(context.Context, FirstContact) (bool, error)
	// DeployKey says where the key of repositories comes from that are cloned over ssh, when the Secret that git.credentials names for them is not
	// in the namespace. It is asked once for each Secret, before the first write. Nil generates each with Yes, and else ends in a *DeployKeyError.
	DeployKey func(context.Context, DeployKeyRequest) (DeployKeySource, error)
	// TakeFrom lists field managers whose fields this converge takes over, such as "kubectl". A field that any other manager set to
	// another value is an error that names both.
	TakeFrom []string
	// Force rebuilds and redelivers every image, and publishes the Assembly again.
	Force bool
	// Plan, when set, is what MakePlan said that this converge would do, with the same options: the converge does that or nothing. It
	// plans again before its first write and ends with a *MovedError when another plan comes out.
	Plan *Plan
	// Warm keeps images pulled and nodes open for Sandboxes. What an earlier converge kept and this one does not say is removed.
	Warm Warm
	// BuildArgs are passed to every build.
	BuildArgs map[string]string

	// Builder builds images. When nil, one is looked for when the first build needs it: at BuildkitHost, else in the order of
	// images.Connect, with the variables of Env.
	Builder images.Builder
	// BuildkitHost is the address of a BuildKit daemon, as in BUILDKIT_HOST; when empty, the value of Env is taken.
	BuildkitHost string
	// Buildkit says more of where a builder is: certificates for TLS, another time limit. Its Address gives way to BuildkitHost, and
	// its Env is not used.
	Buildkit images.ConnectOptions
	// Natives are builders for single platforms ("linux/arm64"), so that none has to be emulated: each builds its own, and every platform to
	// build for needs one. They take the place of the one builder, but not of Builder; their Env is not used.
	Natives map[string]images.ConnectOptions
	// Keychain holds the registry credentials; docker's own configuration when nil.
	Keychain authn.Keychain
	// RegistryTransport carries requests to registries; when nil, images.Transport with the files of RegistryCA.
	RegistryTransport http.RoundTripper
	// RegistryCA are PEM files of authorities that certificates of registries are checked by, beside the system's.
	RegistryCA []string
	// InsecureRegistries are hosts ("host" or "host:port") that may be spoken to by plain http; loopback hosts always may.
	InsecureRegistries []string
	// RegistryMirrors are read in place of registries: by the checks of images that pods will run, and by a buildkitd that the converge
	// starts itself, which is told RegistryCA and InsecureRegistries too. Any other builder has a configuration of its own. What is
	// built is pushed to the registry and read back from there.
	RegistryMirrors images.Mirrors
	// Bundle are images that a product brings for Sandboxes. A Workflow whose Workspace names one that is turned off is refused before
	// anything is applied; what runs is left alone.
	Bundle images.Bundle
	// Checks are further checks of the caller's. They run beside those of package preflight, in a Check and in a converge before its first write,
	// which a finding that refuses stops.
	Checks []preflight.Check
	// Models says who asks the models that Agents name: a converge, unless it says otherwise.
	Models ModelProbing
	// Publisher stores the Assembly where the Orchestrator reads it; in the Instance's namespace when nil.
	Publisher Publisher
	// Holder tells other converges who holds the lock; host and process id when empty.
	Holder string

	// Now tells the time by which certificates are judged and made; time.Now when nil.
	Now func() time.Time

	// Events receives what happens, one call at a time; nil discards.
	Events func(Event)
}

// Publisher stores an Assembly where the Orchestrator reads it, and sees which one is current.
type Publisher = assembly.Publisher

// Assembly is the Instance as the Orchestrator reads it: a deterministic archive and its hash.
type Assembly = assembly.Assembly

// ClusterPublisher is the default Publisher: content-addressed chunks in ConfigMaps of a namespace and one atomic pointer.
func ClusterPublisher(client kubernetes.Interface, namespace string, labels map[string]string) Publisher {
	return assembly.Cluster(client, namespace, labels)
}

// FirstContact is what somebody must agree to before an Instance enters a namespace for the first time.
type FirstContact struct {
	Instance string
	Context  string
	// What the converge would do to the namespace, in words.
	What string
	// Holds is what a namespace that is there already holds and is not this Instance's.
	Holds Occupants
}

// Question is the text that asks for the agreement, without a line end.
func (f FirstContact) Question() string {
	return fmt.Sprintf(seed.FirstContactAsk, f.Instance, f.Context, f.what())
}

func (f FirstContact) what() string {
	if f.Holds.None() {
		return f.What
	}
	return f.What + ", which holds what is not this instance's: " + f.Holds.String()
}
