package jr2_test

import (
	"context"
	"flag"
	"os"
	"reflect"
	"sync"
	"testing"

	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/internal/devcluster"
)

// A world is a real API server with simulated nodes, shared by tests of this package.
type world struct {
	*devcluster.Cluster
	client kubernetes.Interface
	// tests bounds how many tests are in the world at once.
	tests chan struct{}

	// mu guards what follows.
	mu     sync.Mutex
	nodes  map[string]devcluster.Node
	inside map[*testing.T]bool
	// settled says that the operator is there, where tests rely on it together.
	settled bool
}

// A site starts a world when the first test asks for it, and has a converge bring the operator if it is to be settled.
type site struct {
	tests   int
	settled bool
	once    sync.Once
	w       *world
	err     error
}

// The world that tests share in parallel, each with a namespace of its own, and those that a test has for itself. Much of their time is waiting
// for the cluster, so there are more at once than processors.
var (
	sharedSite = &site{tests: 4, settled: true}
	loneSites  = []*site{{tests: 1}, {tests: 1}}
	freeSites  = make(chan *site, len(loneSites))
)

func (s *site) world() (*world, error) {
	s.once.Do(func() {
		cluster, err := devcluster.Start(context.Background(), devcluster.Options{Nodes: []devcluster.Node{}, Context: contextName, Audit: true})
		if err != nil {
			s.err = err
			return
		}
		s.w = &world{Cluster: cluster, nodes: map[string]devcluster.Node{}, inside: map[*testing.T]bool{}, tests: make(chan struct{}, s.tests)}
		s.w.client, s.err = kubernetes.NewForConfig(unlimited(cluster.Config()))
	})
	return s.w, s.err
}

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil { // more than run at once: some wait for a site
		panic(err)
	}
	dir, err := os.MkdirTemp("", "jr2-command-")
	if err != nil {
		panic(err)
	}
	commandDir = dir
	for _, s := range loneSites {
		freeSites <- s
	}
	code := m.Run()
	os.RemoveAll(dir) //nolint:errcheck // the process ends
	for _, s := range append(loneSites, sharedSite) {
		if s.w != nil {
			s.w.Close() //nolint:errcheck // the process ends
		}
	}
	os.Exit(code)
}

// theWorld has exactly these nodes. Nodes that the test before had too stay, and so does what runs there. A test in parallel with others may
// ask for the node "a", which all of them have, and must leave the operator as it is.
func theWorld(t *testing.T, nodes ...devcluster.Node) *world {
	t.Helper()
	return sharedSite.enter(t, nodes)
}

// loneWorld is another world, which no other test is in: this one may take the operator away and choose the nodes, and may nevertheless be in
// parallel with others.
func loneWorld(t *testing.T, nodes ...devcluster.Node) *world {
	t.Helper()
	s := <-freeSites
	t.Cleanup(func() { freeSites <- s })
	return s.enter(t, nodes)
}

func (s *site) enter(t *testing.T, nodes []devcluster.Node) *world {
	t.Helper()
	w, err := s.world()
	if err != nil {
		t.Fatal(err)
	}
	w.enter(t)
	wanted := map[string]devcluster.Node{}
	for _, node := range nodes {
		wanted[node.Name] = node
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !reflect.DeepEqual(wanted, w.nodes) {
		if len(w.inside) > 1 {
			t.Fatal("other tests run on nodes that this one changes: it may not be parallel in the world that they share")
		}
		w.change(t, wanted)
	}
	if s.settled && !w.settled {
		must(t, w.up(t, plainFolder(t), into("resident")).err)
		w.settled = true
	}
	return w
}

// enter waits for a place, which a test keeps to its end.
func (w *world) enter(t *testing.T) {
	w.mu.Lock()
	already := w.inside[t]
	w.mu.Unlock()
	if already {
		return
	}
	w.tests <- struct{}{}
	w.mu.Lock()
	w.inside[t] = true
	w.mu.Unlock()
	t.Cleanup(func() {
		w.mu.Lock()
		delete(w.inside, t)
		w.mu.Unlock()
		<-w.tests
	})
}

// change leaves the world these nodes.
func (w *world) change(t *testing.T, wanted map[string]devcluster.Node) {
	t.Helper()
	for name, node := range w.nodes {
		if !reflect.DeepEqual(wanted[name], node) {
			must(t, w.RemoveNode(t.Context(), name))
			delete(w.nodes, name)
		}
	}
	for name, node := range wanted {
		if _, there := w.nodes[name]; !there {
			must(t, w.AddNode(t.Context(), node))
			w.nodes[name] = node
		}
	}
}
