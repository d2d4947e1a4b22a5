package jr2_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

// configOf is a jr2.config.ts with these fields.
func configOf(fields string) string {
	return "import { defineConfig } from \"@jr2/orchestrator\";\nexport default defineConfig({ " + fields + " });\n"
}

// TestPlatformsSample is the output of "Choose the platforms": one amd64 node and one s390x node.
func TestPlatformsSample(t *testing.T) {
	t.Parallel()
	w := loneWorld(t, node("a"), node("z", arch("s390x")))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	told := w.up(t, dir, into("platforms-sample"))
	must(t, told.err)
	told.tells(t, sample(t, "platforms: linux/amd64 (from 2", "  skipping node arch s390x"))
}

// TestSandboxNodesSamples are the outputs of "Choose the Sandbox nodes".
func TestSandboxNodesSamples(t *testing.T) {
	t.Parallel()
	sources := map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1500m")}
	t.Run("found", func(t *testing.T) {
		w := loneWorld(t, node("jr2-control-plane"), node("gone", cordoned), node("gpu", tainted("gpu", "", corev1.TaintEffectNoSchedule)))
		told := w.up(t, folder(t, sources), into("nodes-found"))
		must(t, told.err)
		told.tells(t, []string{"…", "sandbox nodes: jr2-control-plane"})
	})
	t.Run("none", func(t *testing.T) {
		w := loneWorld(t, node("jr2-control-plane"))
		sources := map[string]string{"jr2.config.ts": configOf(`sandbox: { nodeSelector: { pool: "agents" } }`), "workflows/hold.ts": hold("3Gi", "1500m")}
		told := w.up(t, folder(t, sources), into("nodes-none"))
		must(t, told.err)
		told.tells(t, append(append([]string{"…"}, sample(t, "warning: no Sandbox node right now — a", "  a Sandbox lands where")...),
			"…", "repo cache: WARNING — rollout succeeded but no pod matched app=jr2-repo-cache (nothing verified)",
			"…", "converged — `jr2 run <workflow>` when ready"))
		if !strings.Contains(document(t), "repo cache: WARNING — rollout succeeded but no pod matched app=jr2-repo-cache (nothing verified)") {
			t.Error("the document has another repo cache warning")
		}
	})
	t.Run("too large", func(t *testing.T) {
		w := loneWorld(t, node("small"), node("smaller", func(n *devcluster.Node) {
			n.Allocatable = corev1.ResourceList{corev1.ResourceMemory: quantity("128Gi"), corev1.ResourceCPU: quantity("32")}
		}))
		sources := map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("512Gi", "64")}
		told := w.up(t, folder(t, sources), into("nodes-small"))
		must(t, told.err)
		told.tells(t, append([]string{"…", "sandbox nodes: small, smaller"}, sample(t, "warning: no Sandbox node right now has", "warning")...))
	})
	t.Run("platforms named", func(t *testing.T) {
		w := loneWorld(t, node("a"))
		sources := map[string]string{"jr2.config.ts": configOf(`platforms: ["linux/arm64", "linux/arm64/v8"]`), "workflows/hold.ts": hold("512Gi", "64")}
		told := w.up(t, folder(t, sources), into("nodes-unread"), func(o *jr2.Options) {
			o.Config = w.refusing(t, "GET", "/api/v1/nodes")
		})
		if told.err != nil && strings.Contains(told.err.Error(), "/api/v1/nodes") {
			t.Fatalf("the nodes were read: %v", told.err)
		}
		told.tells(t, []string{"…", "platforms: linux/arm64 (named by `platforms` in jr2.config.ts; the nodes were not read)"})
		if strings.Contains(told.lines, "sandbox nodes:") || strings.Contains(told.lines, "no Sandbox node") {
			t.Errorf("the Sandbox nodes were told:\n%s", told.lines)
		}
	})
}

// TestRules checks each Rule of the document against its own text.
func TestRules(t *testing.T) {
	t.Parallel()
	image := map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1500m"), "images/default/Dockerfile": "FROM scratch\n"}
	t.Run("no registry", func(t *testing.T) {
		w := loneWorld(t, node("a"))
		told := w.up(t, folder(t, image), into("rule-registry"))
		told.isRule(t, "error: context <context> is not a kind", "<context>", contextName)
	})
	t.Run("floor", func(t *testing.T) {
		w := loneWorld(t, node("a"))
		told := w.up(t, folder(t, image), into("rule-floor"), w.served(t, devcluster.ServerVersion("v1.34.6")))
		told.isRule(t, "refusing: <context> runs", "<context>", contextName, "<kubernetes version>", "v1.34.6")
		w.isAbsent(t, "rule-floor")
	})
	t.Run("pod-level resources", func(t *testing.T) {
		w := gateOff(t)
		told := w.up(t, folder(t, image), into("rule-gate"))
		told.isRule(t, "refusing: <context> (Kubernetes", "<context>", contextName, "<kubernetes version>", told.result.Kubernetes)
		w.isEmpty(t, "rule-gate")
	})
	t.Run("another owner", func(t *testing.T) {
		w := loneWorld(t, node("a"))
		w.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "rule-owner", Labels: map[string]string{"jr2.dev/instance": "elder"}}})
		told := w.up(t, folder(t, image), into("rule-owner"))
		told.isRule(t, "refusing: namespace", "<namespace>", "rule-owner", "<context>", contextName, "<instance>", "elder")
		w.isEmpty(t, "rule-owner")
		var refusal *jr2.Refusal
		if !errors.As(told.err, &refusal) || refusal.Findings[0].Code != preflight.CodeNamespaceOwner {
			t.Errorf("the error holds no finding: %#v", told.err)
		}
	})
	t.Run("no terminal", func(t *testing.T) {
		w := loneWorld(t, node("a"))
		told := w.up(t, folder(t, image), into("rule-tty"), func(o *jr2.Options) { o.Yes = false })
		told.isRule(t, "first contact: deploy", "<name>", "my-instance", "<context>", contextName, "<what>", `create namespace "rule-tty"`)
		w.isAbsent(t, "rule-tty")
	})
	t.Run("platforms", func(t *testing.T) {
		w := loneWorld(t, node("a"))
		files := map[string]string{"jr2.config.ts": configOf(`platforms: ["linux/amd64", "linux/s390x", "windows/amd64"]`), "workflows/ping.ts": ping}
		told := w.up(t, folder(t, files), into("rule-platforms"))
		told.isRule(t, "error: `platforms` names", "<platforms>", "linux/s390x, windows/amd64")
	})
	t.Run("no released platform", func(t *testing.T) {
		w := loneWorld(t, node("z", arch("s390x")), node("p", arch("ppc64le")))
		told := w.up(t, folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping}), into("rule-none"))
		told.isRule(t, "error: this cluster's", "<architectures>", "ppc64le, s390x")
	})
	t.Run("secrets", func(t *testing.T) {
		w := loneWorld(t, node("a"))
		files := map[string]string{"workflows/ping.ts": ping, "jr2.config.ts": configOf(`secrets: [
			{ name: "A_KEY", value: "x", hosts: ["a.example.test"] },
			{ name: "B_KEY", valueFrom: { secretKeyRef: { name: "vault", key: "token" } }, hosts: ["b.example.test"] }]`)}
		told := w.up(t, folder(t, files), into("rule-secrets"))
		told.isRule(t, "error: secrets[<i>]", "[<i>]", "[1]", "<name>", "vault", "<key>", "token")
	})
	t.Run("envFrom", func(t *testing.T) {
		w := loneWorld(t, node("a"))
		files := map[string]string{"workflows/ping.ts": ping, "jr2.config.ts": configOf(`harness: { envFrom: [{ secretRef: { name: "extra" } }] }`)}
		told := w.up(t, folder(t, files), into("rule-envfrom"))
		told.isRule(t, "error: harness.envFrom", "<name>", "extra", "<namespace>", "rule-envfrom")
	})
	t.Run("priority classes", func(t *testing.T) {
		w := loneWorld(t, node("a"))
		for field, path := range map[string]string{`{ control: "" }`: ".control", `{ sandbox: 7 }`: ".sandbox", `{ batch: "x" }`: "", `"x"`: ""} {
			dir := folder(t, map[string]string{"workflows/ping.ts": ping, "jr2.config.ts": configOf("priorityClasses: " + field)})
			told := w.up(t, dir, into("rule-priority"))
			want := strings.NewReplacer("<file>", dir+"/jr2.config.ts", "<path>", path).Replace(rule(t, "error: <file> at priorityClasses"))
			before, after, _ := strings.Cut(want, "<problem>")
			if line := told.lastLine(); !strings.HasPrefix(line, before) || !strings.HasSuffix(line, after) {
				t.Errorf("%s: %q", field, line)
			}
		}
		w.isAbsent(t, "rule-priority")
	})
}

// gateOff is a cluster whose API server does not keep pod-level resources.
func gateOff(t *testing.T) *world {
	t.Helper()
	cluster := devcluster.ForTest(t, devcluster.Options{FeatureGates: map[string]bool{"PodLevelResources": false}})
	client, err := kubernetes.NewForConfig(unlimited(cluster.Config()))
	must(t, err)
	return &world{Cluster: cluster, client: client}
}

// TestFirstContactIsAsked walks the three answers to the question of the sample output.
func TestFirstContactIsAsked(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": configOf(`name: "first-contact"`), "workflows/ping.ts": ping})
	question := ""
	answer := func(answer string) func(*jr2.Options) {
		return func(o *jr2.Options) {
			o.Yes = false
			o.Confirm = func(_ context.Context, first jr2.FirstContact) (bool, error) {
				question = first.Question()
				return jr2.Accepts(answer), nil
			}
		}
	}
	if told := w.up(t, dir, answer("\n")); !errors.Is(told.err, jr2.ErrDeclined) {
		t.Fatalf("an empty answer gave %v", told.err)
	}
	w.isAbsent(t, "first-contact")
	must(t, w.up(t, dir, answer("y\n")).err)
	want := sample(t, "first contact: deploy", "first contact")[0]
	if got := question + "y"; got != strings.NewReplacer("<context>", contextName, "my-instance", "first-contact").Replace(want) {
		t.Errorf("the question is %q", got)
	}
	question = ""
	must(t, w.up(t, dir, answer("n")).err)
	if question != "" {
		t.Errorf("asked again at home: %q", question)
	}
}

// isRule compares the last line with the Rule's text, its placeholders filled in. The document ends some sentences with a dot that is not
// the message's, and joins what a terminal shows on two lines.
func (told told) isRule(t *testing.T, marker string, fill ...string) {
	t.Helper()
	said, _, _ := strings.Cut(rule(t, marker), ". For harness.envFrom: ") // one Rule holds two messages
	want := strings.NewReplacer(fill...).Replace(said)
	if got := told.lastLine(); got != want && got != strings.TrimSuffix(want, ".") {
		t.Errorf("told\n  %s\nthe Rule says\n  %s", got, want)
	}
	if told.err == nil {
		t.Error("the converge went on")
	}
}

func (w *world) isAbsent(t *testing.T, namespace string) {
	t.Helper()
	if _, err := w.client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("namespace %s: %v, want none", namespace, err)
	}
}

// isEmpty checks that a namespace holds nothing but what the cluster itself puts there.
func (w *world) isEmpty(t *testing.T, namespace string) {
	t.Helper()
	maps, err := w.client.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, found := range maps.Items {
		if found.Name != "kube-root-ca.crt" {
			t.Errorf("ConfigMap %s was applied", found.Name)
		}
	}
	secrets, err := w.client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	deployments, err := w.client.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	leases, err := w.client.CoordinationV1().Leases(namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if n := len(secrets.Items) + len(deployments.Items) + len(leases.Items); n > 0 {
		t.Errorf("%d objects were applied", n)
	}
}

func (w *world) make(t *testing.T, namespace *corev1.Namespace) {
	t.Helper()
	_, err := w.client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	must(t, err)
}
