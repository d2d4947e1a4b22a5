package apply

// Annotations by which the objects of a set say their place in it. The names and the values are Argo CD's, so that one directory serves both.
const (
	// WaveAnnotation puts an object into a wave: a whole number, 0 when it is not there. A wave starts when all objects of the one before
	// are ready. Objects of one wave go by kind: namespaces first, webhook configurations last.
	WaveAnnotation = "argocd.argoproj.io/sync-wave"
	// HookAnnotation makes an object a hook of one or more phases: "PreSync", "Sync", "PostSync", "SyncFail", with commas between them. "Skip"
	// leaves the object out.
	HookAnnotation = "argocd.argoproj.io/hook"
	// HookDeletePolicyAnnotation says when a hook is deleted: "HookSucceeded", "HookFailed", "BeforeHookCreation" (the default), with commas.
	HookDeletePolicyAnnotation = "argocd.argoproj.io/hook-delete-policy"
)

// A Phase is a part of an Apply.
type Phase string

const (
	PreSync  Phase = "PreSync"  // before the first ordinary object
	Sync     Phase = "Sync"     // with the ordinary objects, in the same waves
	PostSync Phase = "PostSync" // when all of the set is ready
	SyncFail Phase = "SyncFail" // when one of the phases above failed
)

// releaseAnnotation is the mark of the release and the phase that a hook was made for: "7 Sync 4QZ2W7KD". It tells a hook that a cut-off run left
// running from one of an earlier release.
const releaseAnnotation = "jr2.dev/release"

// noHooks refuses hooks in a shared set. It keeps no inventory, so nobody could tell for which content of the set one ran.
func noHooks(orders []order) error {
	var problems []Problem
	for _, o := range orders {
		if o.pos.isHook() {
			problems = append(problems, Problem{Ref: o.ref, Path: join("metadata.annotations", HookAnnotation), Text: "a shared set keeps no inventory, which would tell for what a hook ran; apply it as a set of its own"})
		}
	}
	if len(problems) > 0 {
		return &SetError{Problems: problems}
	}
	return nil
}

// A hookRun is one run of a hook.
type hookRun struct {
	ref   Ref
	phase Phase
}

// String is "Sync Job.batch demo/migrate".
func (h hookRun) String() string { return string(h.phase) + " " + h.ref.String() }
