package controller

import (
	"errors"
	"log/slog"

	"k8s.io/utils/clock"
)

// Options say how the controller runs. The zero value works: all namespaces, no leader election, no ports, silence.
type Options struct {
	// Namespaces limits what is read and written to these. Default: all, which takes a ClusterRole.
	Namespaces []string
	// LeaderElection makes all but one of several processes wait. They may run without it as well: what they write is safe, only their
	// requests double.
	LeaderElection bool
	// LeaderElectionNamespace is where the Lease is. Default: the namespace of the pod that this process is in; an error outside a pod.
	LeaderElectionNamespace string
	// LeaderElectionID is the name of the Lease. Default: DefaultLeaderElectionID.
	LeaderElectionID string
	// HealthAddress serves /healthz and /readyz, such as ":8081". Default: none.
	HealthAddress string
	// MetricsAddress serves controller-runtime's Prometheus metrics over plain HTTP, such as ":8080". Default: none.
	MetricsAddress string
	// Concurrency is how many Sandboxes are worked on at once. Default: DefaultConcurrency.
	Concurrency int
	// Clock says what time it is, for leases and waits. Default: the system's.
	Clock clock.PassiveClock
	// Log takes what helps to find a fault, and errors that the next try may mend. Default: silent, but for one notice on standard error that
	// controller-runtime gives in a process which never called its log.SetLogger.
	Log *slog.Logger
}

// Defaults of Options.
const (
	DefaultLeaderElectionID = "jr2-controller-manager"
	DefaultConcurrency      = 8
)

// ErrNoKinds is matched by the error of Run when the API server doesn't serve Sandbox and Repo: v1alpha1.CRDs are not installed.
var ErrNoKinds = errors.New("the API server does not serve the kinds Sandbox and Repo of core.jr2.dev/v1alpha1: install their CustomResourceDefinitions first")
