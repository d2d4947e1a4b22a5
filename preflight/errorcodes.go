package preflight

// Stable codes of the findings that stand for errors of other packages, as a check of a whole Instance gathers them.
const (
	CodeInstanceMissing    = "instance-missing"     // no folder with jr2.config.ts
	CodeConfigField        = "config-field"         // a field of the configuration
	CodeConfigModule       = "config-module"        // a module that can't be read or evaluated
	CodeTypes              = "types"                // the Instance's own compiler
	CodeSizeTooSmall       = "size-too-small"       // a Size that leaves the Harness too little
	CodeKitRegistry        = "kit-registry"         // kitRegistry or kitVersion names no image
	CodePlatform           = "platform"             // a platform that no image is released for
	CodeNoPlatform         = "no-platform"          // no node has a platform that images are released for
	CodeNoRegistry         = "no-registry"          // images are to be built, and nothing says where to
	CodeImageContext       = "image-context"        // a folder that no image can be built from
	CodeRegistryOptions    = "registry-options"     // mirrors or authorities that say nothing usable
	CodeNoContext          = "no-context"           // nothing names a cluster
	CodeUnreachable        = "unreachable"          // the API server does not answer
	CodeUnauthorized       = "unauthorized"         // the API server does not know the caller
	CodeRightMissing       = "right-missing"        // the caller may not do what a converge does
	CodeEscalation         = "escalation"           // the caller would grant what it does not hold
	CodeFieldConflict      = "field-conflict"       // other managers own fields with other values
	CodeInventory          = "inventory-unreadable" // the list of the Instance's objects can't be read
	CodeOwnedByOther       = "owned-by-other"       // another set holds the object
	CodeImmutable          = "immutable"            // a field can't be changed once the object is made
	CodeSecretEmpty        = "secret-key-empty"     // a key that is to be kept has no value
	CodeRefusedByServer    = "refused-by-server"    // the server would not take the object
	CodeQuotaNever         = "quota-never"          // an object is more than its quota
	CodeQuotaFull          = "quota-full"           // a quota has no room for an object now
	CodeWebhookUnreachable = "webhook-unreachable"  // a webhook that judges the object does not answer
	CodeKindUnserved       = "kind-unserved"        // nobody serves the kind
	// CodePriorityClassMissing is a class that the configuration names and the cluster lacks.
	CodePriorityClassMissing = "priority-class-missing"
	CodeUnexplained          = "unexplained" // an error that no other code stands for
	// CodeLockHeld is another converge of the same Instance, which this one would wait for.
	CodeLockHeld = "lock-held"
	// CodeObjectTerminating is an object that is being deleted and that finalizers keep: the one in its place waits for its end.
	CodeObjectTerminating = "object-terminating"
)
