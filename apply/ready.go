package apply

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// A Status is how far an object's rollout is.
type Status struct {
	Done bool
	// Failed says that the rollout gave up at FailedAt. It may be left from an earlier one: see RolloutOptions.Grace.
	Failed   bool
	FailedAt time.Time
	// Message is what is waited for, or that it is complete, in the words of kubectl rollout status.
	Message string
	// Note is what a person should know about a rollout that is done: "staged, needs pod deletion".
	Note string
}

// Ready reads the rollout of a Deployment, StatefulSet or DaemonSet from its status, without any request. Other kinds are done as
// soon as they exist.
func Ready(obj runtime.Object) Status { return Status{} }
