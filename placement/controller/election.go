package controller

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// renewDeadline is controller-runtime's: a leader that can't renew its Lease for so long stops.
const renewDeadline = 10 * time.Second

// accountNamespace is the file in which a pod finds its own namespace.
const accountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// ErrNoElectionNamespace is matched by the error of Run when Options ask for a leader election, name no namespace for its Lease, and this
// process is in no pod.
var ErrNoElectionNamespace = errors.New("a leader election outside a pod needs a namespace for its Lease")

// electionNamespace is where the Lease of an election is; empty without one.
func electionNamespace(opts Options) (string, error) {
	if !opts.LeaderElection || opts.LeaderElectionNamespace != "" {
		return opts.LeaderElectionNamespace, nil
	}
	namespace, err := os.ReadFile(accountNamespace)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoElectionNamespace, err)
	}
	return strings.TrimSpace(string(namespace)), nil
}

// electionLock is the Lease by which controllers elect a leader; nil without an election. It writes no Events: controller-runtime's own lock
// does, and complains on standard error when the last of them comes too late.
func electionLock(cfg *rest.Config, opts Options, namespace string) (resourcelock.Interface, error) {
	if !opts.LeaderElection {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	me := resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}
	return resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, cmp.Or(opts.LeaderElectionID, DefaultLeaderElectionID), me, cfg, renewDeadline)
}
