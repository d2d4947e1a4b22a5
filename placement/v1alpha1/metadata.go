package v1alpha1

// Annotations of a Sandbox that its user writes and the operator reads. Values are times in RFC 3339, UTC or with an offset.
const (
	// AnnotationKeepalive is the last sign of use: a Sandbox with an idleTimeout is deleted when that time has passed since it, or since
	// the Sandbox was created where that is later.
	AnnotationKeepalive = Domain + "/keepalive"
	// annotationAsked and a Repo's key are when a fetch of that Repo was asked for.
	annotationAsked = Domain + "/asked-"
)

// Domain is the prefix of annotations and labels that belong to no kind alone.
const Domain = "jr2.dev"

// AnnotationAsked is the annotation that says when a fetch of the Repo of that key was asked for.
func AnnotationAsked(key string) string { return annotationAsked + key }
