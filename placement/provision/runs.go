package provision

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"jr2.dev/jr2/placement/v1alpha1"
)

// A Run is what the Sandboxes of a namespace say of one run. Its JSON is what `jr2 status` prints.
type Run struct {
	ID string `json:"runId"`
	// Placing is the child paths of the Workspaces in Placing, sorted and each once; "" is the root. Nil when there are none.
	Placing  []string `json:"placing,omitempty"`
	Workflow string   `json:"workflow"`
	// Started is when its first Sandbox was written.
	Started time.Time `json:"started"`
	// Waiting is why Workspaces are in Placing, as far as the cluster has said why.
	Waiting []ChildWait `json:"waiting,omitempty"`
	// Workspaces are its Sandboxes, in the order of their paths.
	Workspaces []Workspace `json:"workspaces"`
}

// A ChildWait is the Wait of one Workspace.
type ChildWait struct {
	Child   string    `json:"child"`
	On      string    `json:"on"`
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
	// Outlook says whether waiting can help.
	Outlook Outlook `json:"-"`
}

// A Workspace is one Sandbox of a run.
type Workspace struct {
	Child    string `json:"child"`
	Sandbox  string `json:"sandbox"`
	State    State  `json:"state"`
	Node     string `json:"node,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	// Reason and Message are why it is not Ready, or was lost; a Workspace in Placing says that in Run.Waiting.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Kept is the last renewal of its lease: nobody uses a Sandbox whose lease lapses.
	Kept *time.Time `json:"kept,omitempty"`
}

// Live says that the run has a Sandbox that is neither lost nor being deleted.
func (r Run) Live() bool {
	return slices.ContainsFunc(r.Workspaces, func(w Workspace) bool { return w.State != Lost && w.State != Ending })
}

// Runs reads the runs that the Sandboxes of a namespace tell of, the oldest first, those that are not Live too. A Sandbox that a quota keeps out
// of the cluster itself is not seen: only its Provision knows of it.
func Runs(ctx context.Context, cfg *rest.Config, namespace string) ([]Run, error) {
	c, err := connect(cfg, namespace)
	if err != nil {
		return nil, err
	}
	boxes, err := c.all(ctx, v1alpha1.LabelRun)
	if err != nil {
		return nil, err
	}
	return RunsOf(boxes), nil
}

// Status reads one run by its id or a prefix of it. An id of which another one is the prefix names that one alone. The error is an
// *UnknownRunError, or the server's own.
func Status(ctx context.Context, cfg *rest.Config, namespace, id string) (*Run, error) {
	runs, err := Runs(ctx, cfg, namespace)
	if err != nil {
		return nil, err
	}
	return find(runs, namespace, id)
}

func find(runs []Run, namespace, id string) (*Run, error) {
	unknown := &UnknownRunError{ID: id, Namespace: namespace}
	var found *Run
	for i := range runs {
		switch {
		case runs[i].ID == id:
			return &runs[i], nil
		case id != "" && strings.HasPrefix(runs[i].ID, id):
			found = &runs[i]
			unknown.Matches = append(unknown.Matches, runs[i].ID)
		}
	}
	switch len(unknown.Matches) {
	case 0:
		return nil, unknown
	case 1:
		return found, nil
	}
	return nil, unknown
}

// RunsOf groups Sandboxes by their runs, the oldest run first. Sandboxes without a run are left out.
func RunsOf(boxes []v1alpha1.Sandbox) []Run {
	at := map[string]int{}
	var runs []Run
	for i := range boxes {
		box := &boxes[i]
		id := box.Labels[v1alpha1.LabelRun]
		if id == "" {
			continue
		}
		n, known := at[id]
		if !known {
			n = len(runs)
			at[id] = n
			runs = append(runs, Run{ID: id, Workflow: box.Labels[v1alpha1.LabelWorkflow], Started: box.CreationTimestamp.Time})
		}
		runs[n].add(box)
	}
	for i := range runs {
		runs[i].sort()
	}
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID)) })
	return runs
}

func (r *Run) add(box *v1alpha1.Sandbox) {
	w := Workspace{
		Child: box.Annotations[v1alpha1.AnnotationChild], Sandbox: box.Name, State: StateOf(box), Node: box.Status.Node, Endpoint: box.Status.Endpoint,
	}
	switch w.State {
	case Placing:
		r.Placing = append(r.Placing, w.Child)
	case Provisioning:
		w.Reason, w.Message = unready(box)
	case Lost:
		w.Reason, w.Message = lossOf(box)
	}
	if kept, err := time.Parse(time.RFC3339, box.Annotations[v1alpha1.AnnotationKeepalive]); err == nil {
		w.Kept = &kept
	}
	if wait, ok := WaitOf(box); ok {
		r.Waiting = append(r.Waiting, ChildWait{Child: w.Child, On: wait.On, Message: wait.Message, Since: wait.Since.UTC(), Outlook: wait.Outlook})
	}
	if box.CreationTimestamp.Time.Before(r.Started) {
		r.Started = box.CreationTimestamp.Time
	}
	r.Workspaces = append(r.Workspaces, w)
}

func (r *Run) sort() {
	r.Started = r.Started.UTC()
	slices.Sort(r.Placing)
	r.Placing = slices.Compact(r.Placing)
	slices.SortFunc(r.Waiting, func(a, b ChildWait) int { return cmp.Compare(a.Child, b.Child) })
	slices.SortFunc(r.Workspaces, func(a, b Workspace) int {
		return cmp.Or(cmp.Compare(a.Child, b.Child), cmp.Compare(a.Sandbox, b.Sandbox))
	})
}
