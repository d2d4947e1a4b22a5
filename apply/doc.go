// Package apply brings a set of objects into a cluster and says what it changed.
//
// It decides the order of the writes, which of them are needed, who owns what, what is removed because the set no longer holds
// it, what is waited for and when a wait has failed. It does not decide what the objects say: that is the caller's, as is every
// sentence for a person beyond the text of an error.
//
// Writes are server-side applies under one field manager, never forced as a whole. Before the first write the set's inventory,
// a ConfigMap in the set's namespace, lists what may exist; after the last one it lists what does. A run that is cut off at any
// request is therefore completed by the next one. Each object carries the mark of its set (SetAnnotation), so that two sets never take
// each other's objects; what belongs to several sets is applied with Options.Shared. A Secret of the set that
// carries MintAnnotation is not applied: its values are made in the cluster, once, by a request that can only create, and later
// runs add what it lacks and change nothing. EnsureSecret does the same for one that is of no set.
//
// Whether an object is as asked is told by its metadata, in one list for each kind and namespace, or by a dry run of each
// (Options.Verify). An object of no set that is there is adopted, with the fields that client-side apply left (Conflicts.Migrate). One
// with a field that can't be changed is made again only where that is allowed (Options.Recreate).
//
// Read makes a set of manifests, strictly, from streams, directories and kustomizations, in this process and shut in the directory.
// MakePlan says what Apply would do, object by object and field by field, as a value that can be printed and stored; (*Plan).Apply does
// that and nothing else. A Plan holds no value of a Secret.
//
// WaitReady waits until objects of any kind are ready, each by the rules of its kind. What the cluster alone can give, a node, room in a
// quota or the end of a gate, is told and waited for without a deadline of this engine; what fails brings its evidence.
//
// The parts are useful alone: WaitReady, WaitRollout, Verify, Remove, EnsureSecret, ParseGenerator, Lock, Classify, and the pure Ready.
package apply
