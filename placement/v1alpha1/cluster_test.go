package v1alpha1_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement/v1alpha1"
)

// TestKindsOnARealAPIServer gives both CRDs to an API server and asks what it takes.
func TestKindsOnARealAPIServer(t *testing.T) {
	cluster := devcluster.ForTest(t, devcluster.Options{Nodes: []devcluster.Node{}})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(cluster.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	establish(t, c)
	// A client that asked before the kinds were served may remember that they are not.
	if c, err = client.New(cluster.Config(), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	t.Run("Sandbox", func(t *testing.T) { testSandbox(t, c) })
	t.Run("Sandbox refused", func(t *testing.T) { testSandboxRefused(t, c) })
	t.Run("Repo", func(t *testing.T) { testRepo(t, c) })
	t.Run("Repo refused", func(t *testing.T) { testRepoRefused(t, c) })
}

func establish(t *testing.T, c client.Client) {
	t.Helper()
	crds, err := v1alpha1.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		if err := c.Create(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		var last []apiextensionsv1.CustomResourceDefinitionCondition
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
				return false, err
			}
			last = crd.Status.Conditions
			established := false
			for _, condition := range last {
				if condition.Type == apiextensionsv1.NonStructuralSchema {
					t.Fatalf("%s: %s", crd.Name, condition.Message)
				}
				established = established || condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
			}
			return established, nil
		})
		if err != nil {
			t.Fatalf("%s: %v: %+v", crd.Name, err, last)
		}
	}
}

func sandbox(name string) *v1alpha1.Sandbox {
	size := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi"), corev1.ResourceCPU: resource.MustParse("1")}
	shm := resource.MustParse("496Mi")
	return &v1alpha1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: v1alpha1.SandboxSpec{
			Image:        "registry.example.com/team/jr2-sandbox-my-instance-default:6389bdf72d50-amd64",
			PodResources: &corev1.ResourceRequirements{Limits: size, Requests: size},
			SHMSize:      &shm,
			IdleTimeout:  &metav1.Duration{Duration: 30 * time.Minute},
			Sidecars: []corev1.Container{{
				Name: "custodian", Image: "docker.io/envoyproxy/envoy:distroless", Ports: []corev1.ContainerPort{{ContainerPort: 15021}},
			}},
			Volumes:      []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			VolumeMounts: []corev1.VolumeMount{{Name: "work", MountPath: "/work"}},
			Env:          []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}}},
			NodeSelector: map[string]string{"pool": "agents"},
			Tolerations:  []corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpExists}},
			Repos:        []v1alpha1.SandboxRepo{{Key: "app", URL: "https://git.example.com/app"}, {Key: "lib", URL: "git@git.example.com:lib"}},
		},
	}
}

func testSandbox(t *testing.T, c client.Client) {
	box := sandbox("works")
	box.Status.Phase = v1alpha1.SandboxReady // of no effect: the status is a subresource
	if err := c.Create(t.Context(), box); err != nil {
		t.Fatal(err)
	}
	if box.Spec.Port != 8080 || box.Status.Phase != "" {
		t.Errorf("port %d, phase %q", box.Spec.Port, box.Status.Phase)
	}
	if box.Spec.IdleTimeout.Duration != 30*time.Minute || box.Spec.SHMSize.String() != "496Mi" || len(box.Spec.Repos) != 2 {
		t.Errorf("it came back as %+v", box.Spec)
	}
	box.Spec.Image = "changed/with:status"
	box.Status = v1alpha1.SandboxStatus{
		Phase: v1alpha1.SandboxPending, Endpoint: "http://works.default.svc:8080", PodRef: &v1alpha1.Reference{Name: "works"}, PodUID: "u",
		Repos:   []v1alpha1.SandboxRepoStatus{{Key: "app", Asked: metav1.Now()}},
		Harness: &v1alpha1.HarnessStatus{RestartCount: 1, LastTerminated: &v1alpha1.Termination{Reason: "OOMKilled", ExitCode: 137}},
		Waiting: []v1alpha1.WaitingContainer{{Container: "harness", Reason: "ImagePullBackOff"}},
	}
	meta.SetStatusCondition(&box.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionScheduled, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonQuotaExceeded, Message: "exceeded quota",
	})
	if err := c.Status().Update(t.Context(), box); err != nil {
		t.Fatal(err)
	}
	if box.Spec.Image == "changed/with:status" || box.Status.Phase != v1alpha1.SandboxPending || len(box.Status.Conditions) != 1 {
		t.Errorf("the status write gave %+v", box)
	}
	box.Status.Phase = "Unheard"
	refused(t, "an unknown phase", c.Status().Update(t.Context(), box), "status.phase")
}

func testSandboxRefused(t *testing.T, c client.Client) {
	for name, test := range map[string]struct {
		edit  func(*v1alpha1.SandboxSpec)
		field string
	}{
		"no image":          {func(s *v1alpha1.SandboxSpec) { s.Image = "" }, "spec.image"},
		"port too large":    {func(s *v1alpha1.SandboxSpec) { s.Port = 65536 }, "spec.port"},
		"negative port":     {func(s *v1alpha1.SandboxSpec) { s.Port = -1 }, "spec.port"},
		"a key twice":       {func(s *v1alpha1.SandboxSpec) { s.Repos[1].Key = "app" }, "spec.repos[1]"},
		"no key":            {func(s *v1alpha1.SandboxSpec) { s.Repos[0].Key = "" }, "spec.repos[0].key"},
		"a key too long":    {func(s *v1alpha1.SandboxSpec) { s.Repos[0].Key = strings.Repeat("a", 50) }, "spec.repos[0].key"},
		"no label in a key": {func(s *v1alpha1.SandboxSpec) { s.Repos[0].Key = "App_1" }, "spec.repos[0].key"},
		"no url":            {func(s *v1alpha1.SandboxSpec) { s.Repos[0].URL = "" }, "spec.repos[0].url"},
		"a sidecar twice":   {func(s *v1alpha1.SandboxSpec) { s.Sidecars = append(s.Sidecars, s.Sidecars[0]) }, "spec.sidecars[1]"},
	} {
		box := sandbox("refused")
		test.edit(&box.Spec)
		refused(t, name, c.Create(t.Context(), box, client.DryRunAll), test.field)
	}
	longest := sandbox("longest")
	longest.Spec.Repos[0].Key, longest.Spec.Port = strings.Repeat("a", 49), 65535
	if err := c.Create(t.Context(), longest, client.DryRunAll); err != nil {
		t.Error(err)
	}
}

func testRepo(t *testing.T, c client.Client) {
	repo := &v1alpha1.Repo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"},
		Spec:       v1alpha1.RepoSpec{URL: "git@git.example.com:app", SecretRef: &v1alpha1.Reference{Name: "jr2-git-ssh"}},
	}
	if err := c.Create(t.Context(), repo); err != nil {
		t.Fatal(err)
	}
	if repo.Spec.RefreshInterval == nil || repo.Spec.RefreshInterval.Duration != 5*time.Minute {
		t.Errorf("refreshInterval: %v, want 5m", repo.Spec.RefreshInterval)
	}
	repo.Status.Nodes = []v1alpha1.RepoNode{
		{Node: "a", Present: true, Synced: true, Attempted: v1alpha1.AttemptFetch, ObservedGeneration: 1},
		{Node: "b", Attempted: v1alpha1.AttemptClone, LastError: "no"}, // false is said, not left out
	}
	if err := c.Status().Update(t.Context(), repo); err != nil {
		t.Fatal(err)
	}
	repo.Status.Nodes[1].Node = "a"
	refused(t, "a node twice", c.Status().Update(t.Context(), repo), "status.nodes[1]")
}

func testRepoRefused(t *testing.T, c client.Client) {
	for name, test := range map[string]struct {
		spec  map[string]any
		field string
	}{
		"no url":         {map[string]any{}, "spec.url"},
		"empty url":      {map[string]any{"url": ""}, "spec.url"},
		"no duration":    {map[string]any{"url": "u", "refreshInterval": "soon"}, "spec.refreshInterval"},
		"a bare number":  {map[string]any{"url": "u", "refreshInterval": "300"}, "spec.refreshInterval"},
		"unnamed Secret": {map[string]any{"url": "u", "secretRef": map[string]any{}}, "spec.secretRef.name"},
	} {
		repo := &unstructured.Unstructured{Object: map[string]any{"spec": test.spec}}
		repo.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("Repo"))
		repo.SetNamespace("default")
		repo.SetName("refused")
		refused(t, name, c.Create(t.Context(), repo, client.DryRunAll), test.field)
	}
}

func refused(t *testing.T, what string, err error, field string) {
	t.Helper()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), field) {
		t.Errorf("%s: got %v, want a refusal of %s", what, err, field)
	}
}
