package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2"
	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

// A site is a cluster of three nodes with a copy of examples/manifests/jarvis.
type site struct {
	cluster *devcluster.Cluster
	client  kubernetes.Interface
	dir     string
}

// TestJarvis is the life of one set, release by release, on three nodes.
func TestJarvis(t *testing.T) {
	cluster := devcluster.ForTest(t, devcluster.Options{Context: "shared", Nodes: []devcluster.Node{{Name: "a"}, {Name: "b"}, {Name: "c"}}})
	isolated(t)
	client, err := kubernetes.NewForConfig(cluster.Config())
	must(t, err)
	s := &site{cluster: cluster, client: client, dir: filepath.Join(t.TempDir(), "jarvis")}
	must(t, os.CopyFS(s.dir, os.DirFS(filepath.Join("..", "manifests", "jarvis"))))
	s.edit(t, "*.yaml", "registry.example/", "127.0.0.1:1/") // a registry that is away at once, with a network or without
	for _, step := range []struct {
		name string
		test func(*testing.T)
	}{
		{"a plan of nothing yet", s.testFirstPlan}, {"a template", s.testTemplate}, {"the first release", s.testFirst},
		{"nothing new", s.testNothingNew}, {"the second release", s.testSecond}, {"a failing migration", s.testFailing},
		{"repaired", s.testRepaired}, {"cut off", s.testCutOff}, {"what left the set", s.testPruned},
	} {
		if !t.Run(step.name, step.test) {
			return // each stands on the one before
		}
	}
}

func (s *site) testFirstPlan(t *testing.T) {
	run, err := s.apply(t, "--plan")
	if exitCode(err) != exitChanges {
		t.Fatalf("got %v:\n%s", err, run.err)
	}
	order(t, run,
		"jr2 apply — jarvis/jarvis (19 objects) → context shared", "create      Namespace jarvis",
		"mint        Secret jarvis/jarvis-generated: JWT_ACCESS_SECRET, JWT_REFRESH_SECRET, VAULT_MASTER_KEY", "run         Job.batch jarvis/jarvis-migrate")
	if _, err := s.client.CoreV1().Namespaces().Get(t.Context(), "jarvis", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace: %v", err)
	}
}

// testTemplate is the mistake that overwrites credentials: the template in the set. Row A05.
func (s *site) testTemplate(t *testing.T) {
	s.edit(t, "kustomization.yaml", "  - 02-config.yaml\n", "  - 02-config.yaml\n  - 01-secret.example.yaml\n")
	run, err := s.apply(t, "-o", "json")
	s.edit(t, "kustomization.yaml", "  - 01-secret.example.yaml\n", "")
	var refusal *jr2.Refusal
	var last errorLine
	must(t, json.Unmarshal([]byte(run.out.lastLine()), &last))
	if !errors.As(err, &refusal) || exitCode(err) != 1 || len(last.Findings) != 1 || last.Findings[0].Code != preflight.CodePlaceholder ||
		last.Findings[0].Object != "Secret jarvis/jarvis-secrets" {
		t.Errorf("got %v:\n%s", err, run.out)
	}
	if _, err := s.client.CoreV1().Namespaces().Get(t.Context(), "jarvis", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace: %v", err)
	}
}

func (s *site) testFirst(t *testing.T) {
	run, err := s.apply(t)
	must(t, err)
	run.silent(t)
	order(t, run,
		"note: ", // nobody could ask the registry
		"  Namespace jarvis created", "wave -2: 7 objects", "  StatefulSet.apps jarvis/jarvis-redis created", "wave -1: 1 object",
		"  Secret jarvis/jarvis-generated minted", "wave 0: 1 object", "  Job.batch jarvis/jarvis-migrate runs", "  Job.batch jarvis/jarvis-migrate ran",
		"wave 1: 4 objects", "  Deployment.apps jarvis/jarvis-api created", "wave 2: 5 objects", "  Ingress.networking.k8s.io jarvis/jarvis created",
		"applied: 19 objects changed, 0 unchanged — all of the set is ready")
	secret, err := s.client.CoreV1().Secrets("jarvis").Get(t.Context(), "jarvis-generated", metav1.GetOptions{})
	must(t, err)
	if len(secret.Data) != 3 || len(secret.Data["VAULT_MASTER_KEY"]) != 64 || strings.Contains(run.err.String(), string(secret.Data["VAULT_MASTER_KEY"])) {
		t.Errorf("the Secret has %d keys", len(secret.Data))
	}
	pods, err := s.client.CoreV1().Pods("jarvis").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	nodes := map[string]map[string]bool{}
	for _, pod := range pods.Items {
		name := pod.Labels["app.kubernetes.io/name"]
		if nodes[name] == nil {
			nodes[name] = map[string]bool{}
		}
		nodes[name][pod.Spec.NodeName] = true
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if !digests.MatchString(c.Image) {
				t.Errorf("pod %s runs %s", pod.Name, c.Image)
			}
		}
	}
	if len(pods.Items) != 11 || len(nodes["jarvis-redis"]) != 3 || len(nodes["jarvis-sentinel"]) != 3 {
		t.Errorf("%d pods, on %v", len(pods.Items), nodes)
	}
}

func (s *site) testNothingNew(t *testing.T) {
	run, err := s.apply(t)
	must(t, err)
	if run.err.lastLine() != "nothing changed: 19 objects as asked" || strings.Contains(run.err.String(), "\nwave ") {
		t.Errorf("got\n%s", run.err)
	}
	plan, err := s.apply(t, "--plan")
	if exitCode(err) != 0 || plan.out.String() != "19 unchanged\n" {
		t.Errorf("got %v:\n%s", err, plan.out)
	}
	if out, err := command(t, "apply", s.dir, "--kubeconfig", s.cluster.Kubeconfig(), "--plan", "-o", "json").Output(); err != nil || !strings.Contains(string(out), `"set":"jarvis/jarvis"`) {
		t.Errorf("as a process: %v\n%s", err, out)
	}
}

// testSecond is what a Job that is no hook would fail at: its template can't be changed. Rows A02 and A03.
func (s *site) testSecond(t *testing.T) {
	before := s.migration(t)
	secret, err := s.client.CoreV1().Secrets("jarvis").Get(t.Context(), "jarvis-generated", metav1.GetOptions{})
	must(t, err)
	s.release(t, "2")
	run, err := s.apply(t, "-o", "json")
	must(t, err)
	order(t, run,
		`{"type":"version","version":1}`, `{"type":"started","set":"jarvis/jarvis","context":"shared","objects":19}`, `{"type":"finding",`,
		`"name":"jarvis-redis"},"action":"configured"}`, `{"type":"hookStarted",`, `"name":"jarvis-migrate"},"action":"ran"}`,
		`"name":"jarvis-api"},"action":"configured"}`, `{"type":"result","result":{"objects":[`)
	run.types(t)
	two := "@sha256:" + strings.Repeat("2", 64)
	if after := s.migration(t); after == before || !strings.HasSuffix(after, two) {
		t.Errorf("the migration was %s and is %s", before, after)
	}
	if image, _ := s.api(t); !strings.HasSuffix(image, two) {
		t.Errorf("the api runs %s", image)
	}
	kept, err := s.client.CoreV1().Secrets("jarvis").Get(t.Context(), "jarvis-generated", metav1.GetOptions{})
	must(t, err)
	if kept.ResourceVersion != secret.ResourceVersion {
		t.Error("the minted Secret was written")
	}
}

const lastWords = "refusing to drop the column assistant.notes: 1204 rows hold a value"

// testFailing: the api goes on as it was, and the error holds the Job's log. Row A03.
func (s *site) testFailing(t *testing.T) {
	image, generation := s.api(t)
	s.release(t, "3")
	must(t, s.cluster.SetPodLog("connecting\n"+lastWords+"\n"))
	s.edit(t, "03-migrate-job.yaml", "    metadata:\n      labels:\n", "    metadata:\n      annotations: { "+devcluster.TroubleAnnotation+": Failed }\n      labels:\n")
	run, err := s.apply(t)
	var hook *apply.HookError
	if !errors.As(err, &hook) || hook.Ref.Name != "jarvis-migrate" || exitCode(err) != 1 {
		t.Fatalf("got %v", err)
	}
	order(t, run, "wave 0: 1 object", "error: the Sync hook Job.batch jarvis/jarvis-migrate", "| "+lastWords)
	if strings.Contains(run.err.String(), "wave 1") {
		t.Errorf("it went on:\n%s", run.err)
	}
	if now, at := s.api(t); now != image || at != generation {
		t.Errorf("the api was %s in generation %d and is %s in %d", image, generation, now, at)
	}
}

// testRepaired takes the next image from the command line, and goes on where the failed apply stopped.
func (s *site) testRepaired(t *testing.T) {
	before := s.migration(t)
	s.edit(t, "03-migrate-job.yaml", "      annotations: { "+devcluster.TroubleAnnotation+": Failed }\n", "")
	four := "@sha256:" + strings.Repeat("4", 64)
	run, err := s.apply(t, "--image", "127.0.0.1:1/jarvis/api="+four)
	must(t, err)
	order(t, run, "  Job.batch jarvis/jarvis-migrate ran", "  Deployment.apps jarvis/jarvis-api configured", "applied: ")
	if after := s.migration(t); after == before || !strings.HasSuffix(after, four) {
		t.Errorf("the migration was %s and is %s", before, after)
	}
	if image, _ := s.api(t); !strings.HasSuffix(image, four) {
		t.Errorf("the api runs %s", image)
	}
}

// testCutOff ends an apply between the migration and the api; the next one completes it and does not migrate again. Row A11.
func (s *site) testCutOff(t *testing.T) {
	s.release(t, "5")
	run := newSession()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	run.err.hold = func(written string) {
		if strings.HasSuffix(written, "jarvis-migrate ran\n") {
			cancel()
		}
	}
	err := run.run(ctx, "apply", s.dir, "--kubeconfig", s.cluster.Kubeconfig(), "--context", "shared")
	if !errors.Is(err, context.Canceled) || run.err.lastLine() != interruptedLine {
		t.Fatalf("got %v:\n%s", err, run.err)
	}
	migrated := s.migration(t)
	again, err := s.apply(t)
	must(t, err)
	five := "@sha256:" + strings.Repeat("5", 64)
	if image, _ := s.api(t); !strings.HasSuffix(image, five) || !strings.HasSuffix(migrated, five) || s.migration(t) != migrated {
		t.Errorf("the api runs %s; it was migrated by %s and then by %s:\n%s", image, migrated, s.migration(t), again.err)
	}
}

// testPruned takes the Ingress away, and leaves what holds keys. While the file is still there it may be an accident. A set of another name takes
// nothing of this one.
func (s *site) testPruned(t *testing.T) {
	files := []string{"06-ingress.yaml", "01-secret.yaml"}
	for _, file := range files {
		s.edit(t, "kustomization.yaml", "  - "+file+"\n", "")
	}
	run, err := s.apply(t)
	if accident := (*apply.AccidentError)(nil); !errors.As(err, &accident) || len(accident.Goes) != 1 || !strings.Contains(run.err.String(), "06-ingress.yaml: it gave 1 object at the last apply, and is still there") {
		t.Errorf("its file is still there: %v\n%s", err, run.err)
	}
	for _, file := range files {
		must(t, os.Remove(filepath.Join(s.dir, file)))
	}
	run, err = s.apply(t)
	must(t, err)
	order(t, run, "  Ingress.networking.k8s.io jarvis/jarvis pruned")
	order(t, run, "  Secret jarvis/jarvis-generated kept — ")
	_, err = s.client.CoreV1().Secrets("jarvis").Get(t.Context(), "jarvis-generated", metav1.GetOptions{})
	must(t, err)
	run, err = s.apply(t, "--name", "other")
	if err == nil || !strings.Contains(run.err.String(), "belongs to the set jarvis/jarvis") || !strings.Contains(run.err.String(), "--adopt") {
		t.Errorf("another set: %v\n%s", err, run.err)
	}
	var events *corev1.EventList
	events, err = s.client.CoreV1().Events("jarvis").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=FailedCreate"})
	must(t, err)
	for _, e := range events.Items {
		t.Errorf("a pod was refused: %s", e.Message)
	}
}
