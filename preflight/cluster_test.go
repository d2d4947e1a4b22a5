package preflight_test

import (
	"context"
	"errors"
	"fmt"
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
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

// TestRealAPIServer asks one real API server everything that a pure test cannot know.
func TestRealAPIServer(t *testing.T) {
	cluster := devcluster.ForTest(t, devcluster.Options{Nodes: []devcluster.Node{}, Users: []devcluster.User{{
		Name:  "ana",
		Rules: map[string][]rbacv1.PolicyRule{"few-rights": {{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}},
	}}})
	client := clientFor(t, cluster.Config())
	t.Run("floor", func(t *testing.T) {
		server, err := client.Discovery().ServerVersion()
		must(t, err)
		if findings, err := preflight.Floor("dev", server); err != nil || findings != nil {
			t.Errorf("got %v, %v", findings, err)
		}
	})
	t.Run("terminating namespace", func(t *testing.T) { testTerminating(t, client) })
	t.Run("pod-level resources", func(t *testing.T) { testPodLevel(t, cluster, client) })
	t.Run("named Secrets", func(t *testing.T) { testNamedSecrets(t, cluster, client) })
	t.Run("deploy keys", func(t *testing.T) { testDeployKeys(t, client) })
}

// testTerminating reads a namespace that a finalizer holds.
func testTerminating(t *testing.T, client kubernetes.Interface) {
	makeNamespace(t, client, "leaving", nil)
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}}}
	_, err := client.CoreV1().ConfigMaps("leaving").Create(t.Context(), held, metav1.CreateOptions{})
	must(t, err)
	must(t, client.CoreV1().Namespaces().Delete(t.Context(), "leaving", metav1.DeleteOptions{}))
	var findings []preflight.Finding
	eventually(t, "the namespace tells what holds it", func() bool {
		namespace, err := client.CoreV1().Namespaces().Get(t.Context(), "leaving", metav1.GetOptions{})
		must(t, err)
		_, findings = preflight.Ownership("dev", "leaving", "app", namespace)
		return len(findings) == 1 && strings.Contains(findings[0].Message, "example.com/hold")
	})
	if findings[0].Code != preflight.CodeNamespaceTerminating || strings.Contains(findings[0].Message, "successfully") {
		t.Errorf("got %+v", findings[0])
	}
	release := []byte(`{"metadata":{"finalizers":null}}`)
	_, err = client.CoreV1().ConfigMaps("leaving").Patch(t.Context(), "held", "application/merge-patch+json", release, metav1.PatchOptions{})
	must(t, err)
}

func testPodLevel(t *testing.T, cluster *devcluster.Cluster, client kubernetes.Interface) {
	probe := func(t *testing.T, namespace string) ([]preflight.Finding, error) {
		t.Helper()
		findings, err := preflight.PodLevelResources(t.Context(), client.CoreV1().Pods(namespace), "dev", "v1.36.1")
		pods, listErr := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		must(t, listErr)
		if len(pods.Items) > 0 {
			t.Errorf("the probe left %d pods", len(pods.Items))
		}
		return findings, err
	}
	passes := func(t *testing.T, namespace string) {
		t.Helper()
		if findings, err := probe(t, namespace); err != nil || findings != nil {
			t.Errorf("got %v, %v", findings, err)
		}
	}
	// provesNothing: an error, and never a refusal.
	provesNothing := func(t *testing.T, namespace, because string) {
		t.Helper()
		findings, err := probe(t, namespace)
		var refusal *preflight.Refusal
		if err == nil || findings != nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), because) {
			t.Errorf("got %v, %v; want an error with %q", findings, err, because)
		}
	}
	t.Run("kept", func(t *testing.T) {
		makeNamespace(t, client, "kept", nil)
		passes(t, "kept")
	})
	t.Run("kept in a restricted namespace", func(t *testing.T) {
		makeNamespace(t, client, "restricted", map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
		passes(t, "restricted")
	})
	t.Run("kept where a LimitRange fills in", func(t *testing.T) {
		makeNamespace(t, client, "limits", nil)
		limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "defaults"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Default: sizes("500m", "512Mi"), DefaultRequest: sizes("100m", "128Mi"),
		}}}}
		_, err := client.CoreV1().LimitRanges("limits").Create(t.Context(), limits, metav1.CreateOptions{})
		must(t, err)
		passes(t, "limits")
	})
	t.Run("kept where a quota wants every size", func(t *testing.T) {
		makeNamespace(t, client, "sized", nil)
		makeQuota(t, client, "sized", corev1.ResourceList{"requests.cpu": resource.MustParse("1"), "limits.memory": resource.MustParse("1Gi")})
		passes(t, "sized")
	})
	t.Run("dropped", func(t *testing.T) {
		makeNamespace(t, client, "dropped", nil)
		proxy, err := devcluster.StartProxy(t.Context(), cluster.Config(), devcluster.DropPodResources())
		must(t, err)
		defer proxy.Close() //nolint:errcheck // the test is over
		pods := clientFor(t, proxy.Config()).CoreV1().Pods("dropped")
		findings, err := preflight.PodLevelResources(t.Context(), pods, "dev", "v1.36.1")
		if err != nil || len(findings) != 1 || findings[0].Severity != preflight.Refuse || findings[0].Code != preflight.CodePodLevelResources ||
			!strings.HasPrefix(findings[0].Message, "refusing: dev (Kubernetes v1.36.1) drops pod-level resources — ") {
			t.Errorf("got %+v, %v", findings, err)
		}
	})
	t.Run("a full quota", func(t *testing.T) {
		makeNamespace(t, client, "full", nil)
		makeQuota(t, client, "full", corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")})
		provesNothing(t, "full", "exceeded quota: full")
	})
	t.Run("no namespace", func(t *testing.T) { provesNothing(t, "nowhere", `namespaces "nowhere" not found`) })
	t.Run("no right", func(t *testing.T) {
		config, err := cluster.ConfigFor("ana")
		must(t, err)
		findings, err := preflight.PodLevelResources(t.Context(), clientFor(t, config).CoreV1().Pods("few-rights"), "dev", "v1.36.1")
		if !apierrors.IsForbidden(err) || findings != nil {
			t.Errorf("got %v, %v", findings, err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		findings, err := preflight.PodLevelResources(ctx, client.CoreV1().Pods("kept"), "dev", "v1.36.1")
		if !errors.Is(err, context.Canceled) || findings != nil {
			t.Errorf("got %v, %v", findings, err)
		}
	})
}

// counting counts the reads of each Secret.
type counting struct {
	preflight.SecretGetter
	reads []string
}

func (c *counting) Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.Secret, error) {
	c.reads = append(c.reads, name)
	return c.SecretGetter.Get(ctx, name, opts)
}

func testNamedSecrets(t *testing.T, cluster *devcluster.Cluster, client kubernetes.Interface) {
	makeNamespace(t, client, "team-a", nil)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"token": "t", "empty": ""}}
	_, err := client.CoreV1().Secrets("team-a").Create(t.Context(), secret, metav1.CreateOptions{})
	must(t, err)
	for name, test := range map[string]struct {
		instance config.Instance
		want     []string // code, then the words of the message
		reads    []string
	}{
		"nothing named": {},
		"all there": {
			instance: config.Instance{
				Secrets: []config.HeldSecret{held("keys", "token"), {Name: "FROM_SHELL"}, held("keys", "empty")},
				Harness: config.Harness{EnvFrom: []corev1.EnvFromSource{fromSecret("keys", nil)}, Env: []config.HarnessEnv{env("keys", "token", nil), {Name: "PLAIN"}}},
			},
			reads: []string{"keys"},
		},
		"a held Secret is missing": {
			instance: config.Instance{Secrets: []config.HeldSecret{{Name: "FROM_SHELL"}, held("none", "token")}},
			want: []string{`secret-missing: secrets[1].valueFrom names Secret "none", which does not exist in the instance's namespace — create it first: ` +
				`kubectl create secret generic none --from-literal=token=... (ADR-0019, ADR-0059)`},
			reads: []string{"none"},
		},
		"a held key is missing": {
			instance: config.Instance{Secrets: []config.HeldSecret{held("keys", "tokem")}},
			want: []string{`secret-key-missing: secrets[0].valueFrom names key "tokem" of Secret "keys", and that Secret has no such key — add it: ` +
				`kubectl -n team-a patch secret keys --type merge -p '{"stringData":{"tokem":"..."}}'`},
			reads: []string{"keys"},
		},
		"one missing Secret, named four times": {
			instance: config.Instance{
				Secrets: []config.HeldSecret{held("none", "a")},
				Harness: config.Harness{EnvFrom: []corev1.EnvFromSource{fromSecret("none", nil)}, Env: []config.HarnessEnv{env("none", "b", nil), env("none", "c", nil)}},
			},
			want: []string{
				`secret-missing: secrets[0].valueFrom names Secret "none", `,
				`secret-missing: harness.envFrom references Secret "none", which does not exist in namespace "team-a" — create it first: kubectl -n team-a create secret generic none --from-literal=KEY=...`,
				`secret-missing: harness.env[0].valueFrom names Secret "none", which does not exist in namespace "team-a" — create it first: kubectl -n team-a create secret generic none --from-literal=b=...`,
				`secret-missing: harness.env[1].valueFrom names Secret "none", `,
			},
			reads: []string{"none"},
		},
		"optional": {
			instance: config.Instance{Harness: config.Harness{
				EnvFrom: []corev1.EnvFromSource{fromSecret("none", yes()), {ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "map"}}}},
				Env:     []config.HarnessEnv{env("none", "a", yes()), env("keys", "tokem", yes())},
			}},
		},
		"not optional": {
			instance: config.Instance{Harness: config.Harness{Env: []config.HarnessEnv{env("keys", "tokem", new(bool))}}},
			want:     []string{`secret-key-missing: harness.env[0].valueFrom names key "tokem" of Secret "keys"`},
			reads:    []string{"keys"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			secrets := &counting{SecretGetter: client.CoreV1().Secrets("team-a")}
			findings, err := preflight.NamedSecrets(t.Context(), secrets, &test.instance, "team-a")
			must(t, err)
			if len(findings) != len(test.want) {
				t.Fatalf("got %+v", findings)
			}
			for i, finding := range findings {
				if got := finding.Code + ": " + finding.Message; !strings.HasPrefix(got, test.want[i]) || finding.Severity != preflight.Refuse || finding.Fix == "" {
					t.Errorf("got  %s\nwant %s", got, test.want[i])
				}
			}
			if !slices.Equal(secrets.reads, test.reads) {
				t.Errorf("read %q, want %q", secrets.reads, test.reads)
			}
		})
	}
	t.Run("no right to read", func(t *testing.T) {
		config, err := cluster.ConfigFor("ana")
		must(t, err)
		testUnreadable(t, clientFor(t, config))
	})
}

// testUnreadable: who may not read a Secret does not know whether it is missing, and is neither refused nor told that it is fine.
func testUnreadable(t *testing.T, client kubernetes.Interface) {
	instance := &config.Instance{Secrets: []config.HeldSecret{held("none", "a"), held("other", "a")}}
	secrets := &counting{SecretGetter: client.CoreV1().Secrets("few-rights")}
	findings, err := preflight.NamedSecrets(t.Context(), secrets, instance, "few-rights")
	must(t, err)
	if len(findings) != 2 || !slices.Equal(secrets.reads, []string{"none", "other"}) {
		t.Fatalf("got %+v of %q", findings, secrets.reads)
	}
	for i, f := range findings {
		says := fmt.Sprintf("nobody could say whether Secret %q, which secrets[%d].valueFrom names, is there: ", secrets.reads[i], i)
		if f.Severity != preflight.Note || f.Code != preflight.CodeNotLookedAt || !strings.HasPrefix(f.Message, says) || !strings.Contains(f.Message, "forbidden") || strings.Contains(f.Message, "not exist") {
			t.Errorf("got %+v", f)
		}
	}
}

func held(name, key string) config.HeldSecret {
	return config.HeldSecret{Name: "HELD", ValueFrom: &config.SecretKeyRef{Name: name, Key: key}}
}

func fromSecret(name string, optional *bool) corev1.EnvFromSource {
	return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: optional}}
}

func env(name, key string, optional *bool) config.HarnessEnv {
	ref := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: optional}
	return config.HarnessEnv{Name: "ENV", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: ref}}
}

func yes() *bool {
	b := true
	return &b
}

func sizes(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// makeNamespace returns when pods may be created there.
func makeNamespace(t *testing.T, client kubernetes.Interface, name string, labels map[string]string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	_, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "service account of "+name, func() bool {
		_, err := client.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
}

// makeQuota makes a quota of its namespace's name, and returns when it counts.
func makeQuota(t *testing.T, client kubernetes.Interface, namespace string, hard corev1.ResourceList) {
	t.Helper()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	_, err := client.CoreV1().ResourceQuotas(namespace).Create(t.Context(), quota, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "quota of "+namespace, func() bool {
		quota, err := client.CoreV1().ResourceQuotas(namespace).Get(t.Context(), namespace, metav1.GetOptions{})
		return err == nil && len(quota.Status.Hard) == len(hard)
	})
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
