package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement/provision"
)

// A scene is a cluster with the source document's Instance in it, converged, and the operator at work.
type scene struct {
	cluster *devcluster.Cluster
	client  kubernetes.Interface
	dir     string
}

// TestRunWorkflow is "Work under a quota" of the source document, line by line.
func TestRunWorkflow(t *testing.T) {
	room := corev1.ResourceList{ // for all that the subtests leave running
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"), corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
	}
	reader := devcluster.User{Name: "reader", ClusterRules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}}}
	cluster := devcluster.ForTest(t, devcluster.Options{Context: "shared", Nodes: []devcluster.Node{{Allocatable: room}}, Users: []devcluster.User{reader}})
	isolated(t)
	client, err := kubernetes.NewForConfig(cluster.Config())
	must(t, err)
	s := &scene{cluster: cluster, client: client, dir: t.TempDir()}
	must(t, os.CopyFS(s.dir, os.DirFS(instances(t, "hold"))))
	edit(t, filepath.Join(s.dir, "jr2.config.ts"), "fx-hold", "my-instance")
	edit(t, filepath.Join(s.dir, "workflows/hold.ts"), "3Gi", "1Gi")
	ping, err := os.ReadFile(filepath.Join(instances(t, "ping"), "workflows/ping.ts"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(s.dir, "workflows/ping.ts"), ping, 0o600))
	t.Run("before the first up", s.testNotConverged)
	up := newSession()
	must(t, up.run(t.Context(), "up", s.dir, "--kubeconfig", cluster.Kubeconfig(), "--yes"))
	stop, err := operate(t.Context(), cluster.Config())
	must(t, err)
	defer stop()
	t.Run("wrong names", s.testWrongNames)
	t.Run("no Workspace", s.testNoWorkspace)
	t.Run("missing rights", s.testMissingRights)
	t.Run("a quota", s.testQuota)
	t.Run("killed", s.testKilled)
	t.Run("ended by hand and by the clock", s.testEnds)
	t.Run("what can't be deleted", s.testUndeleted)
	t.Run("held", s.testHeld)
	t.Run("a Go value", s.testValue)
}

func edit(t *testing.T, file, from, to string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	if !strings.Contains(string(text), from) {
		t.Fatalf("%s holds no %q", file, from)
	}
	must(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), from, to)), 0o600))
}

func (s *scene) args(verb string, more ...string) []string {
	return append([]string{verb}, append(more, "--kubeconfig", s.cluster.Kubeconfig())...)
}

// quota sets the memory limit of the namespace, as "team-quota"; "" removes it.
func (s *scene) quota(t *testing.T, memory string) {
	t.Helper()
	quotas := s.client.CoreV1().ResourceQuotas("my-instance")
	if err := quotas.Delete(t.Context(), "team-quota", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if memory == "" {
		return
	}
	hard := corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse(memory)}
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team-quota"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{})
	must(t, err)
	until(t, func() bool {
		quota, err := quotas.Get(t.Context(), "team-quota", metav1.GetOptions{})
		return err == nil && len(quota.Status.Used) == 1
	})
}

func until(t *testing.T, done func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return done(), nil }); err != nil {
		t.Fatalf("it did not come: %v", err)
	}
}

// seedLine is the line of the source document, with the names of this run.
const seedLine = `  placing: waits for quota — pods "%s" is forbidden: exceeded quota: team-quota, requested: limits.memory=1Gi, used: limits.memory=2Gi, limited: limits.memory=512Mi`

var sandboxNamed = regexp.MustCompile(`ws-[0-9a-f]{8}-x-0-[0-9a-f]{6}`)

func (s *scene) testQuota(t *testing.T) {
	s.quota(t, "512Mi")
	run := newSession()
	ended := run.start(t.Context(), s.args("run", "hold", s.dir)...)
	run.err.await(t, "waits for quota")
	name := sandboxNamed.FindString(run.err.String())
	words := strings.TrimPrefix(fmt.Sprintf(seedLine, name), "  placing: waits for quota — ")
	listed, status := s.runs(t), s.status(t, name[3:11])
	if len(listed) != 1 || !slices.Equal(listed[0].Placing, []string{""}) || listed[0].Workflow != "hold" {
		t.Errorf("runs: %+v", listed)
	}
	if len(status.Waiting) != 1 || status.Waiting[0].Message != words || status.Waiting[0].On != "quota" || status.Waiting[0].Child != "" || time.Since(status.Waiting[0].Since) > time.Minute {
		t.Errorf("status: %+v", status)
	}
	s.quota(t, "4Gi")
	must(t, within(t, ended, 20*time.Second))
	lines := run.err.lines()
	id := status.ID
	for i, want := range []string{
		`jr2 run — workflow "hold" of instance "my-instance" as run ` + id + ` → context shared / namespace my-instance`,
		`  → active "placing"`,
		fmt.Sprintf(seedLine, name),
		`  placed: after ~`,
		`  → active "provisioning"`,
	} {
		if want, after := strings.CutSuffix(want, "~"); i >= len(lines) || lines[i] != want && !(after && strings.HasPrefix(lines[i], want)) {
			t.Errorf("line %d: want %s\n%s", i, want, run.err)
		}
	}
	if run.err.lastLine() != `  → active "ready"` {
		t.Errorf("last: %s", run.err.lastLine())
	}
	var result jr2.RunResult
	must(t, json.Unmarshal([]byte(run.out.String()), &result))
	if result.ID != id || result.Status != jr2.RunReady || len(result.Workspaces) != 1 || result.Workspaces[0].Sandbox != name || result.Workspaces[0].State != provision.Ready {
		t.Errorf("%+v", result)
	}
	if listed = s.runs(t); len(listed) != 1 || listed[0].Placing != nil {
		t.Errorf("runs: %+v", listed)
	}
}

func (s *scene) runs(t *testing.T) []listedRun {
	t.Helper()
	look := newSession()
	must(t, look.run(t.Context(), s.args("runs", s.dir)...))
	var runs []listedRun
	must(t, json.Unmarshal([]byte(look.out.String()), &runs))
	return runs
}

func (s *scene) status(t *testing.T, id string) provision.Run {
	t.Helper()
	look := newSession()
	must(t, look.run(t.Context(), s.args("status", id, "-n", "my-instance")...))
	var run provision.Run
	must(t, json.Unmarshal([]byte(look.out.String()), &run))
	return run
}

// testKilled: what a killed run leaves is told by the cluster alone, and gets its place.
func (s *scene) testKilled(t *testing.T) {
	s.quota(t, "512Mi")
	cmd := command(t, s.args("run", "hold", s.dir, "-o", "json")...)
	out := newScreen()
	cmd.Stdout = out
	must(t, cmd.Start())
	out.await(t, `"type":"placingWaiting"`)
	must(t, cmd.Process.Kill())
	cmd.Wait() //nolint:errcheck // it was killed
	var started struct{ RunID string }
	for _, line := range out.lines() {
		if strings.Contains(line, `"type":"runStarted"`) {
			must(t, json.Unmarshal([]byte(line), &started))
		}
	}
	marked := slices.DeleteFunc(s.runs(t), func(r listedRun) bool { return r.Placing == nil })
	if len(marked) != 1 || marked[0].ID != started.RunID {
		t.Errorf("marked: %+v, want %s", marked, started.RunID)
	}
	if status := s.status(t, started.RunID); len(status.Waiting) != 1 || status.Waiting[0].On != "quota" {
		t.Errorf("status: %+v", status)
	}
	look := newSession()
	must(t, look.run(t.Context(), s.args("runs", "-n", "my-instance", "-o", "json")...))
	if types := look.types(t); !slices.Equal(types, []string{"version", "result"}) || !strings.Contains(look.out.lastLine(), `{"runId":"`+started.RunID+`","placing":[""],"workflow":"hold",`) {
		t.Errorf("got %s", look.out)
	}
	s.quota(t, "")
	until(t, func() bool {
		w := s.status(t, started.RunID).Workspaces
		return len(w) == 1 && w[0].State == provision.Ready
	})
}

// testEnds: a run that is interrupted or whose deadline passes leaves nothing that never ran.
func (s *scene) testEnds(t *testing.T) {
	before := len(s.runs(t))
	s.quota(t, "512Mi")
	defer s.quota(t, "")
	cmd := command(t, s.args("run", "hold", s.dir)...)
	out, told := newScreen(), newScreen()
	cmd.Stdout, cmd.Stderr = out, told
	must(t, cmd.Start())
	told.await(t, "waits for quota")
	must(t, cmd.Process.Signal(os.Interrupt))
	if code := exitOf(cmd.Wait()); code != 1 || told.lastLine() != "error: stopped — what never ran is deleted, what ran stays until its idle timeout" || !strings.Contains(told.String(), " deleted — it never ran\n") {
		t.Errorf("code %d\n%s", code, told)
	}
	if !strings.Contains(out.String(), `"status": "error"`) {
		t.Errorf("got %s", out)
	}
	late := newSession()
	err := late.run(t.Context(), s.args("run", "hold", s.dir, "--placing-deadline", "1s")...)
	var lost *provision.LostError
	if !errors.As(err, &lost) || !strings.HasPrefix(late.err.lastLine(), "error: sandbox_lost: ws-") || !strings.Contains(late.err.lastLine(), "it waited for quota: pods ") || !strings.Contains(late.out.String(), `"code": "sandbox_lost"`) {
		t.Errorf("got %v\n%s%s", err, late.err, late.out)
	}
	never := newSession()
	if err := never.run(t.Context(), s.args("run", "hold", s.dir, "--if-it-fits", "-o", "json")...); !errors.Is(err, provision.ErrRefused) {
		t.Errorf("got %v", err)
	}
	if types := never.types(t); types[0] != "version" || types[len(types)-1] != "error" || !slices.Contains(types, "sandboxRemoved") || !slices.Contains(types, "result") {
		t.Errorf("types %q", types)
	}
	if after := len(s.runs(t)); after != before {
		t.Errorf("%d runs, and %d before", after, before)
	}
}

// testHeld: a run that is held ends with the signal, without an error, and takes its Sandbox along.
func (s *scene) testHeld(t *testing.T) {
	before := len(s.runs(t))
	cmd := command(t, s.args("run", "hold", s.dir, "--hold")...)
	out, told := newScreen(), newScreen()
	cmd.Stdout, cmd.Stderr = out, told
	must(t, cmd.Start())
	told.await(t, `active "ready"`)
	must(t, cmd.Process.Signal(os.Interrupt))
	if code := exitOf(cmd.Wait()); code != 0 || !strings.Contains(told.lastLine(), "deleted — the run is over") || !strings.Contains(out.String(), `"status": "ended"`) {
		t.Errorf("code %d\n%s%s", code, told, out)
	}
	until(t, func() bool { return len(s.runs(t)) == before })
}

func (s *scene) testWrongNames(t *testing.T) {
	nowhere := t.TempDir()
	for want, args := range map[string][]string{
		`error: no workflow is called "hld" — workflows: hold, ping` + "\n":                                                                                          {"run", "hld", s.dir},
		`error: no run in namespace "my-instance" has an id that begins with "zz"` + "\n":                                                                            {"status", "zz", s.dir},
		"error: run takes a workflow, and the folder of its Instance if that is not here":                                                                            {"run"},
		"error: status takes a run, and the folder of its Instance if that is not here":                                                                              {"status"},
		"error: no jr2.config.ts in " + nowhere + " or in a folder above it — run this in an Instance folder, or name one, or give the namespace of the runs (-n)\n": {"runs", nowhere},
		`error: --output "yaml": want text or json` + "\n":                                                                                                           {"runs", s.dir, "-o", "yaml"},
	} {
		look := newSession()
		if err := look.run(t.Context(), s.args(args[0], args[1:]...)...); err == nil || !strings.HasPrefix(look.err.String(), want) || look.out.String() != "" {
			t.Errorf("got %v\n%s%s", err, look.err, look.out)
		}
	}
}

// testNotConverged: an Instance that is not in the cluster, and one whose namespace is another's.
func (s *scene) testNotConverged(t *testing.T) {
	look := newSession()
	err := look.run(t.Context(), s.args("run", "hold", s.dir)...)
	if !errors.As(err, new(*jr2.NotConvergedError)) || look.err.lastLine() != "error: instance \"my-instance\" is not converged into namespace \"my-instance\" on shared: the namespace does not exist — bring it there with `jr2 up` first" {
		t.Errorf("got %v\n%s", err, look.err)
	}
	theirs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Labels: map[string]string{"jr2.dev/instance": "elder"}}}
	_, err = s.client.CoreV1().Namespaces().Create(t.Context(), theirs, metav1.CreateOptions{})
	must(t, err)
	look = newSession()
	if err := look.run(t.Context(), s.args("run", "hold", s.dir, "-n", "theirs")...); err == nil || !strings.HasPrefix(look.err.lastLine(), `refusing: namespace "theirs" on shared belongs to another instance ("elder")`) {
		t.Errorf("got %v\n%s", err, look.err)
	}
}

func (s *scene) testNoWorkspace(t *testing.T) {
	run := newSession()
	must(t, run.run(t.Context(), s.args("run", "ping", s.dir)...))
	if !strings.Contains(run.err.String(), `workflow "ping" makes no Workspace, so nothing is provisioned`) || !strings.Contains(run.out.String(), `"workspaces": []`) {
		t.Errorf("got %s%s", run.err, run.out)
	}
}

func (s *scene) testMissingRights(t *testing.T) {
	theirs, err := s.cluster.KubeconfigFor("reader")
	must(t, err)
	for verb, args := range map[string][]string{"get": {"run", "hold", s.dir}, "list": {"runs", s.dir}} {
		run := newSession()
		err := run.run(t.Context(), append(args, "--kubeconfig", theirs)...)
		if !apierrors.IsForbidden(err) || !strings.Contains(run.err.lastLine(), "cannot "+verb) {
			t.Errorf("got %v\n%s", err, run.err)
		}
	}
}
