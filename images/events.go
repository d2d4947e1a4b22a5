package images

import "time"

// An Event is one step of a delivery: Chosen, Building, Step, Log, Warning, NoUser, User, Pushed, Loading, Loaded or Fresh.
type Event interface{ isImagesEvent() }

// Chosen says which builder builds, in one line, before the first build.
type Chosen struct{ Builder string }

// Building says that the build of an image starts.
type Building struct{ Name, Ref string }

// Step is a state of one step of a build. The same ID comes again when the state changes.
type Step struct {
	Ref  string
	ID   string // the builder's own id of the step
	Name string // as the builder names it, such as "[2/2] RUN make"
	// Started and Completed are zero until then.
	Started, Completed time.Time
	Cached             bool
	Err                string // empty unless the step failed
}

// Log is one line of output of a build step, without its newline.
type Log struct {
	Ref, Step, Line string
	Stderr          bool
}

// Warning is a remark of the builder about the Dockerfile. File and Line are empty when it names no place.
type Warning struct {
	Ref, Text, URL, File string
	Line                 int
}

// NoUser says that an image declares no USER.
type NoUser struct{ Name, Ref string }

// User names the USER that an image declares.
type User struct{ Name, Ref, User string }

// Pushed says that an image is in its registry and was read back from there.
type Pushed struct {
	Name, Ref, Registry, Digest string
	Platforms                   []string
}

// Loading says that an image goes to a node of a kind cluster.
type Loading struct{ Name, Ref, Node string }

// Loaded says that an image is on every node of a kind cluster and was read back from each.
type Loaded struct {
	Name, Ref, Cluster, Digest string
	Platforms                  []string
}

// Fresh says that an image was not built.
type Fresh struct {
	Name, Ref, User string
	// Source is "record" when the cluster's record named the image, "registry" when the registry held it, and "nodes" when every node
	// of a kind cluster did.
	Source string
}

func (Chosen) isImagesEvent()   {}
func (Building) isImagesEvent() {}
func (Step) isImagesEvent()     {}
func (Log) isImagesEvent()      {}
func (Warning) isImagesEvent()  {}
func (NoUser) isImagesEvent()   {}
func (User) isImagesEvent()     {}
func (Pushed) isImagesEvent()   {}
func (Loading) isImagesEvent()  {}
func (Loaded) isImagesEvent()   {}
func (Fresh) isImagesEvent()    {}
