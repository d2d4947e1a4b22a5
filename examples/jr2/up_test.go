package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2"
	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/devcluster"
)

// A stage is a cluster that the tests of `up` share. Each has a namespace of its own.
type stage struct {
	cluster *devcluster.Cluster
	client  kubernetes.Interface
	ping    string
}

const interruptedLine = "error: interrupted — run it again to complete what was begun"

func TestUp(t *testing.T) {
	cluster := devcluster.ForTest(t, devcluster.Options{Context: "shared", Users: []devcluster.User{{Name: "stranger"}}})
	w := newWorkshop(t)
	isolated(t) // after the starts: the executables of the cluster and the builder are kept in the home
	config := cluster.Config()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	s := &stage{cluster: cluster, client: client, ping: instances(t, "ping")}
	t.Run("nobody to ask", s.testNobodyToAsk)
	t.Run("without rights", s.testWithoutRights)
	t.Run("text", s.testText)
	t.Run("json", s.testJSON)
	t.Run("a refusal in json", s.testRefusalInJSON)
	t.Run("plan", s.testPlan)
	t.Run("prompt", s.testPrompt)
	t.Run("deploy keys", s.testDeployKeys)
	t.Run("two at once", s.testTwoAtOnce)
	t.Run("interrupted while it waits for another", s.testInterruptedAtTheLock)
	t.Run("interrupted by a signal", s.testSignal)
	t.Run("builders", func(t *testing.T) { s.testBuilders(t, w) })
	t.Run("models", func(t *testing.T) { s.testModels(t, w) })
	t.Run("down", s.testDown)
	t.Run("interrupted while it waits for pods", s.testInterruptedAtTheRollout)
}

func (s *stage) args(namespace string, more ...string) []string {
	return append([]string{"up", s.ping, "--kubeconfig", s.cluster.Kubeconfig(), "--context", "shared", "-n", namespace}, more...)
}

func (s *stage) isAbsent(t *testing.T, namespace string) {
	t.Helper()
	if _, err := s.client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("namespace %s: %v", namespace, err)
	}
}

func (s *stage) testNobodyToAsk(t *testing.T) {
	run := newSession()
	err := run.run(t.Context(), s.args("unasked")...)
	var unanswered *jr2.UnansweredError
	if !errors.As(err, &unanswered) {
		t.Errorf("got %v", err)
	}
	run.silent(t)
	const want = `first contact: deploy instance "fx-ping" to context shared (create namespace "unasked")? — not a tty; pass --yes to proceed non-interactively`
	if run.err.lastLine() != want {
		t.Errorf("got %s", run.err)
	}
	s.isAbsent(t, "unasked")

	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close() //nolint:errcheck // only read
	cmd := command(t, s.args("unasked")...)
	cmd.Stdin = null
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.HasSuffix(stderr.String(), "\n"+want+"\n") {
		t.Errorf("got %v, %s", err, stderr.String())
	}
	s.isAbsent(t, "unasked")
}

// testWithoutRights: who is refused for want of a right is pointed to the check that names them all, and nobody else is.
func (s *stage) testWithoutRights(t *testing.T) {
	const last = "  `jr2 check` names every right that is missing, and the smallest roles for an admin to give"
	kubeconfig, err := s.cluster.KubeconfigFor("stranger")
	must(t, err)
	run := newSession()
	err = run.run(t.Context(), "up", s.ping, "--kubeconfig", kubeconfig, "-n", "stranger", "--yes")
	if !apierrors.IsForbidden(err) || run.err.lastLine() != last || strings.Count(run.err.String(), "jr2 check") != 1 {
		t.Errorf("got %v\n%s", err, run.err)
	}
	run.silent(t)
	other := newSession()
	if err := other.run(t.Context(), s.args("Not A Name", "--yes")...); err == nil || strings.Contains(other.err.String(), "jr2 check") {
		t.Errorf("got %v\n%s", err, other.err)
	}
}

func (s *stage) testText(t *testing.T) {
	first := newSession()
	must(t, first.run(t.Context(), s.args("text", "--yes")...))
	first.silent(t)
	if first.err.lines()[0] != `jr2 up — instance "fx-ping" → context shared / namespace text` || first.err.lastLine() != "converged — `jr2 run <workflow>` when ready" {
		t.Errorf("got %s", first.err)
	}
	again := newSession() // the namespace is the Instance's: nobody is asked
	must(t, again.run(t.Context(), s.args("text")...))
	again.silent(t)
	if !strings.Contains(again.err.String(), "\nnothing changed: ") {
		t.Errorf("got %s", again.err)
	}
}

func (s *stage) testJSON(t *testing.T) {
	run := newSession()
	must(t, run.run(t.Context(), s.args("json", "--yes", "-o", "json")...))
	if run.err.String() != "" {
		t.Errorf("stderr holds %q", run.err)
	}
	types := run.types(t)
	if types[0] != "version" || types[1] != "started" || types[len(types)-2] != "converged" || types[len(types)-1] != "result" {
		t.Errorf("got the types %q", types)
	}
	if run.out.lines()[0] != `{"type":"version","version":1}` {
		t.Errorf("got %s", run.out.lines()[0])
	}
	if strings.Contains(run.out.String(), ":null") {
		t.Errorf("a null: %s", run.out)
	}
	var last struct{ Result jr2.Result }
	must(t, json.Unmarshal([]byte(run.out.lastLine()), &last))
	if r := last.Result; r.Instance != "fx-ping" || r.Namespace != "json" || r.Changed == 0 || r.Assembly == "" || len(r.Workflows) != 1 || len(r.Objects) == 0 {
		t.Errorf("got %s", run.out.lastLine())
	}
}

func (s *stage) testRefusalInJSON(t *testing.T) {
	theirs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Labels: map[string]string{"jr2.dev/instance": "elder"}}}
	_, err := s.client.CoreV1().Namespaces().Create(t.Context(), theirs, metav1.CreateOptions{})
	must(t, err)
	run := newSession()
	var refusal *jr2.Refusal
	if err := run.run(t.Context(), s.args("theirs", "--yes", "-o", "json")...); !errors.As(err, &refusal) {
		t.Errorf("got %v", err)
	}
	types := run.types(t)
	var last errorLine
	must(t, json.Unmarshal([]byte(run.out.lastLine()), &last))
	if types[0] != "version" || last.Type != "error" || !strings.HasPrefix(last.Message, `refusing: namespace "theirs" on shared belongs to another instance ("elder").`) ||
		len(last.Findings) != 1 || last.Findings[0].Code != "namespace-owner" || run.err.String() != "" {
		t.Errorf("got %s, stderr %q", run.out, run.err)
	}
}

// testTwoAtOnce holds the first at the first step under its lock, until the second says that it waits.
func (s *stage) testTwoAtOnce(t *testing.T) {
	first, second := newSession(), newSession()
	locked, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	first.err.hold = func(written string) {
		if strings.HasPrefix(written, "sandbox images: ") {
			once.Do(func() { close(locked) })
			<-goOn
		}
	}
	one := first.start(t.Context(), s.args("both", "--yes")...)
	select {
	case <-locked:
	case err := <-one:
		t.Fatalf("the first ended: %v\n%s", err, first.err)
	}
	two := second.start(t.Context(), s.args("both", "--yes")...)
	second.err.await(t, "waiting: ")
	close(goOn)
	for _, ended := range []<-chan error{one, two} {
		if err := within(t, ended, 3*time.Minute); err != nil {
			t.Errorf("one of two failed: %v\n%s\n%s", err, first.err, second.err)
		}
	}
	if strings.Contains(first.err.String(), "waiting: ") || strings.Count(second.err.String(), "waiting: ") != 1 {
		t.Errorf("who waited?\n%s\n%s", first.err, second.err)
	}
	if !strings.Contains(second.err.String(), " converges this Instance since 2") || !strings.Contains(second.err.String(), "\nnothing changed: ") {
		t.Errorf("the second told\n%s", second.err)
	}
}

// lock holds the lock of a namespace that it makes.
func (s *stage) lock(t *testing.T, namespace string) {
	t.Helper()
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, err := s.client.CoreV1().Namespaces().Create(t.Context(), home, metav1.CreateOptions{})
	must(t, err)
	_, release, err := apply.Lock(t.Context(), s.client, namespace, "jr2-converge", "bo@desk", apply.LockOptions{})
	must(t, err)
	t.Cleanup(release)
}

func (s *stage) testInterruptedAtTheLock(t *testing.T) {
	s.lock(t, "held")
	run := newSession()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := run.start(ctx, s.args("held", "--yes")...)
	run.err.await(t, "kubectl delete lease jr2-converge -n held\n") // the second line about the wait
	before := len(run.err.lines())
	cancel()
	if err := within(t, ended, 5*time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if lines := run.err.lines(); len(lines) != before+1 || run.err.lastLine() != interruptedLine {
		t.Errorf("got\n%s", run.err)
	}
	run.silent(t)
}

func (s *stage) testSignal(t *testing.T) {
	s.lock(t, "signalled")
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		stderr := newScreen()
		cmd := command(t, s.args("signalled", "--yes")...)
		cmd.Stderr = stderr
		must(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		stderr.await(t, "waiting: bo@desk ")
		must(t, cmd.Process.Signal(signal))
		if err := within(t, ended, 10*time.Second); err == nil || cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%s: got %v", signal, err)
		}
		if stderr.lastLine() != interruptedLine {
			t.Errorf("%s: got\n%s", signal, stderr)
		}
	}
}

// testInterruptedAtTheRollout comes last: it takes the room from the only node. Run again with room, the Instance converges.
func (s *stage) testInterruptedAtTheRollout(t *testing.T) {
	small := devcluster.Node{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}
	must(t, s.cluster.UpdateNode(t.Context(), small))
	run := newSession()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := run.start(ctx, s.args("no-room", "--yes", "-o", "json")...)
	run.out.await(t, `{"type":"rolloutWaiting"`)
	cancel()
	if err := within(t, ended, 10*time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if types := run.types(t); types[0] != "version" || run.out.lastLine() != `{"type":"error","message":"`+interruptedLine+`"}` {
		t.Errorf("got\n%s", run.out)
	}
	must(t, s.cluster.UpdateNode(t.Context(), devcluster.Node{}))
	again := newSession()
	if err := again.run(t.Context(), s.args("no-room")...); err != nil {
		t.Errorf("got %v\n%s", err, again.err)
	}
}
