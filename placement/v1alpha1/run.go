package v1alpha1

// What a Sandbox says of the run that it belongs to. Whoever writes the Sandbox sets them; the operator does not read them.
const (
	// LabelRun is the id of the run, LabelWorkflow the name of its Workflow.
	LabelRun      = Domain + "/run"
	LabelWorkflow = Domain + "/workflow"
	// AnnotationChild is the path of the Workspace in the Machine: slot keys joined with "/", and empty for the Workspace that is the root.
	// An annotation, because a path is no label value.
	AnnotationChild = Domain + "/child"
)
