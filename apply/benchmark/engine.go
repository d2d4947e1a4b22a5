package main

import (
	"context"
	"net"

	"k8s.io/client-go/rest"
)

// An engine brings the objects of a job to the cluster.
type engine struct {
	name string
	// told is what it is told to do, for the table's reader.
	told string
	// prepare makes ready what a user has before the engine starts, untimed, and returns what is timed. Nothing that needs the cluster
	// belongs into it.
	prepare func(j job) (func(context.Context) error, error)
	// within is the engine whose namespace it reads, when it has none of its own.
	within string
	// phases is nil for all; otherwise those that it takes part in.
	phases []phase
	// ours is an engine of this project, for which the limits hold.
	ours bool
	// peer is one that ours is compared with.
	peer bool
}

// A job is one application of a set.
type job struct {
	config     *rest.Config
	kubeconfig string // a file that says the same as config
	home       string // of the commands: their caches are in it
	dir        string // as writeInputs left it
	namespace  string
	objects    []map[string]any
}

// A phase is what an engine finds when it starts.
type phase string

const (
	cold   phase = "cold"    // an empty namespace
	noop   phase = "no-op"   // its own objects, as asked
	change phase = "changed" // its own objects, of which one is to be changed
)

func phases() []phase { return []phase{cold, noop, change} }

// fresh is the configuration for clients that open connections of their own: client-go would hand them those of the last run, which a
// command that a person starts does not have. There is no limit on requests per second.
func (j job) fresh() *rest.Config {
	config := rest.CopyConfig(j.config)
	config.QPS = -1
	config.Dial = (&net.Dialer{}).DialContext
	return config
}
