// Package preflight says what is wrong with a cluster, a namespace or an Instance before anything is written there.
//
// It decides which facts stop a converge and how each is said: every check returns Findings, values with a severity, a stable code,
// the object, the reason and the fix. It reads what it must and it never writes: a probe of the API server is a dry run. A check
// that cannot look returns its error; "not found" is never inferred from another error.
//
// Set, and the checks that it is made of, look at a set of objects before it is applied: placeholders, image names and architectures,
// whether kubelets can pull the images with the credentials of the pods, nodes that take the pods, what admits them, and the arithmetic of
// replicas, budgets and drains. They decide nothing about where facts come from: the caller reads nodes, pods and namespaces, and gives
// functions that ask a registry and the API server. A set's check that cannot look says so by a Note.
//
// Of the cluster as a whole, Floor, PodFeatures and APIServices look at what an API server serves; of a namespace, Ownership and DefaultAccount; and
// Sandboxes at pods that others will make later: whether they would be let in, and where there is room. The API server is asked by dry run wherever
// its own admission decides, since what it would say is worth more than what can be reckoned.
//
// NodeChecks and ModelProbes are the exception: on request alone they ask nodes, and models, by pods that live for seconds, and remove them.
package preflight
