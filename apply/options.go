package apply

import (
	"context"
	"time"
)

// Options say how Apply works; the zero Options is ready for use: it prunes nothing, fails on conflicts and bounds every retry.
type Options struct {
	// Prune deletes what the inventory lists and the set no longer holds: only what carries the mark of the set as this engine wrote it, and
	// nothing that says to keep it (the annotations of Argo CD, Helm, Flux, cli-utils and kapp). Custom resources, and what is held by
	// finalizers of others, go first; what may serve them goes when they are gone, and stays with a *RemovalError after Ready.Timeout.
	Prune bool
	// PruneData names objects of kinds that hold data (PersistentVolumeClaim, PersistentVolume, Namespace,
	// CustomResourceDefinition, Secret with data) that Prune may delete; without that they are kept. Versions are not compared.
	PruneData []Ref
	// AllowPrune agrees to a prune that looks like an accident; see AccidentError.
	AllowPrune bool
	// ConfirmPrune asks whether to go on with such a prune, once, before the first write; "no" is ErrPruneDeclined. When it is nil and
	// AllowPrune is not set, such a prune is an *AccidentError. A dry run does not ask.
	ConfirmPrune func(context.Context, *AccidentError) (bool, error)
	// Shared is for objects that outlive every set or belong to several: they get no owner mark, the set keeps no inventory, and
	// nothing is pruned. A set with hooks can't be shared.
	Shared bool
	// Adopt takes objects into the set that are there and that no set made; without it each of them is an *UnownedError. A Namespace needs no
	// adoption: it is joined, and never deleted by a set that did not make it. Of a Secret no value is replaced, unless Conflicts.TakeFrom
	// names its manager. Hooks are never adopted, because they are deleted for each release.
	Adopt bool
	// AdoptFrom lists other sets, by their ID ("<namespace>/<name>"), whose objects are taken over; that of any other set is an *OwnedError.
	AdoptFrom []string
	// Kin are labels by which a set knows its own objects that carry no mark, because an earlier release or another program made them for
	// it: an object with all of them needs no adoption. None when empty.
	Kin map[string]string
	// Conflicts decides about fields that another manager owns.
	Conflicts Conflicts
	// Concurrency bounds the requests in flight; 16 when 0.
	Concurrency int
	// FieldManager is the name under which fields are owned; "jr2" when empty.
	FieldManager string
	// DryRun asks the server what it would do and writes nothing. Objects whose namespace or kind arrives with the set itself are
	// reported as created, unseen by the server.
	DryRun bool
	// Arriving names namespaces that somebody makes between a plan and its Apply: what lives in one is planned as WillArrive.
	Arriving []string
	// Retry bounds retries of refused or failed requests, per object.
	Retry Retry
	// Verify says how an unchanged object is told from a changed one.
	Verify Verification
	// Recreate lists kinds, as "Job.batch", whose objects may be deleted and made again when the server says that a field which is to
	// change is immutable; so may an object whose annotation argocd.argoproj.io/sync-options has Replace=true or Force=true. Anything else
	// is an *ImmutableError, and so is an object that is not the set's yet, one that says to keep it, and whatever holds data: claims,
	// volumes, namespaces, definitions, Secrets, and StatefulSets whose claims go with them.
	Recreate []string
	// Hooks says when the hooks of the set run.
	Hooks HookRuns
	// Wait makes Apply wait until the last wave is ready too. Earlier waves are always waited for: see WaveAnnotation.
	Wait bool
	// Ready bounds and refines those waits.
	Ready WaitOptions
	// Events receives what happens, one call at a time; nil discards.
	Events func(Event)

	// sumWork is how often the sum of a set with a Secret is hashed; the constant when 0. Tests that apply one set many times take less.
	sumWork int
	// withdraw deletes what holds data too: all of the set goes, because that was asked for.
	withdraw bool
}

// Verification is a way to tell that an object needs no write.
type Verification string

const (
	// VerifyMetadata, the zero Verification, compares what the server notes about our fields: one list for each kind and namespace.
	VerifyMetadata Verification = ""
	// VerifyFull has the server dry-run the write of every object, and compares the object before and after; it reads whole objects,
	// those of Secrets too.
	VerifyFull Verification = "full"
)

// HookRuns says when hooks run.
type HookRuns string

const (
	// HooksOnChange, the zero HookRuns, runs each hook once for a content of the set: again when anything in the set was changed, and
	// again when it did not succeed. Argo CD runs them at each sync, which would make an unchanged set a change.
	HooksOnChange HookRuns = ""
	// HooksAlways runs each hook in each Apply. One that continues a failed or cut-off Apply of the same content runs those that are left.
	HooksAlways HookRuns = "always"
)

// Conflicts decides what happens to a field that another manager owns with another value.
type Conflicts struct {
	// TakeFrom lists field managers whose fields are taken over; a conflict with any other is a *ConflictError.
	TakeFrom []string
	// LeaveTo lists field managers whose fields are left as they are: the set does not ask for them while they are theirs. When such a
	// manager lets go of a field, the set asks for it again with the next change of the object.
	LeaveTo []string
	// Migrate lists field managers whose fields, as far as they updated and did not apply them, become this set's when it adopts an
	// object, so that what the set leaves out goes away and nothing conflicts with them. Nil stands for those that wrote the object by
	// client-side apply: "kubectl-client-side-apply", and whichever manager owns the annotation
	// kubectl.kubernetes.io/last-applied-configuration; an empty slice, for none. An object that the set has already is not migrated.
	Migrate []string
}

// Retry bounds how long one object's request is repeated. Each time is measured from the first failure of its class.
type Retry struct {
	// Limit is for failures that end by themselves: throttling, a server that restarts, a webhook that is not ready yet, a kind
	// that is not served yet, an object that is being deleted. 60 s when 0.
	Limit time.Duration
	// Quota is for a request that a quota refuses now and has room for in principle. 0 waits until the context ends, because nobody
	// but the quota's other users can end it; a negative value fails at once.
	Quota time.Duration
}

func (o Options) withDefaults() Options {
	if o.Concurrency <= 0 {
		o.Concurrency = 16
	}
	if o.FieldManager == "" {
		o.FieldManager = DefaultFieldManager
	}
	if o.Retry.Limit <= 0 {
		o.Retry.Limit = time.Minute
	}
	if o.sumWork <= 0 {
		o.sumWork = sumWork
	}
	return o
}

// DefaultFieldManager is the field manager of this engine.
const DefaultFieldManager = "jr2"
