package controller_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/v1alpha1"
)

var update = flag.Bool("update", false, "write testdata anew")

func amounts(memory, cpu string) corev1.ResourceRequirements {
	list := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourceCPU: resource.MustParse(cpu)}
	return corev1.ResourceRequirements{Requests: list, Limits: list.DeepCopy()}
}

// whole is a Sandbox with each part that the Orchestrator composes: two repositories, a Custodian, the user's own container, a preflight.
func whole() *v1alpha1.Sandbox {
	pod, shm := amounts("2Gi", "1"), resource.MustParse("496Mi")
	work := corev1.VolumeMount{Name: "work", MountPath: "/work"}
	runtimeMount := corev1.VolumeMount{Name: "runtime", MountPath: "/opt/jr2", SubPath: "opt/jr2", ReadOnly: true}
	return &v1alpha1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "ws-5e817334-x-0-61ru0u", UID: "5e817334", Labels: map[string]string{"jr2.dev/run": "5e817334"}},
		Spec: v1alpha1.SandboxSpec{
			Image: "registry.example.com/jr2-sandbox-my-instance-default:6389bdf72d50-amd64",
			Args:  []string{"/opt/jr2/bin/node", "/opt/jr2/main.js"}, Command: []string{"/opt/jr2/bin/tini", "--"},
			Port: 8080, PodResources: &pod, Resources: amounts("1984Mi", "950m"), SHMSize: &shm,
			InitContainers: []corev1.Container{{Name: "preflight", Image: "registry.example.com/preflight:1", VolumeMounts: []corev1.VolumeMount{runtimeMount}}},
			Sidecars: []corev1.Container{
				{Name: "custodian", Image: "docker.io/envoyproxy/envoy:distroless-v1.39.1", Resources: amounts("64Mi", "50m"),
					ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(15021)}}, InitialDelaySeconds: 1}},
				{Name: "user", Image: "docker.io/library/postgres:18", VolumeMounts: []corev1.VolumeMount{work}},
			},
			Volumes: []corev1.Volume{
				{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "runtime", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "ghcr.io/snapwich/jr2-harness:0.2.0"}}},
			},
			VolumeMounts:      []corev1.VolumeMount{work, runtimeMount},
			Env:               []corev1.EnvVar{{Name: "JR2_CPUS", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}}},
			EnvFrom:           []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "jr2-harness-env"}}}},
			PriorityClassName: "whole-sandbox", FSGroup: new(int64(1200)),
			NodeSelector: map[string]string{"pool": "agents"}, Tolerations: []corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpEqual, Value: "agents", Effect: corev1.TaintEffectNoSchedule}},
			Repos: []v1alpha1.SandboxRepo{{Key: "app", URL: "https://git.example.com/app"}, {Key: "lib", URL: "git@git.example.com:lib"}},
		},
	}
}

func holders() map[string][]string {
	return map[string][]string{"app": {"node-b", "node-a"}, "lib": {"node-b"}}
}

func TestGolden(t *testing.T) {
	least := &v1alpha1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "least", UID: "1"}, Spec: v1alpha1.SandboxSpec{Image: "example.com/image:1"}}
	for name, objects := range map[string][]runtime.Object{
		"whole": {controller.Pod(whole(), holders()), controller.Service(whole())},
		"least": {controller.Pod(least, nil), controller.Service(least)},
	} {
		var got bytes.Buffer
		for _, object := range objects {
			text, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&got, "---\n%s", text)
		}
		file := filepath.Join("testdata", name+".yaml")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s differs from what is made; look at git diff after: go test ./placement/controller -run TestGolden -update", file)
		}
	}
}

// TestPodIsTaken gives the pod of a whole Sandbox to an API server: it takes it, in the class Guaranteed.
func TestPodIsTaken(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: whole().Spec.PriorityClassName}, Value: 5}
	if err := s.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	box := whole()
	box.Namespace = s.namespace
	before := box.DeepCopy()
	pod := controller.Pod(box, holders())
	if err := s.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if pod.Status.QOSClass != corev1.PodQOSGuaranteed {
		t.Errorf("the pod is %s", pod.Status.QOSClass)
	}
	if err := s.Create(t.Context(), controller.Service(box), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(before, box) {
		t.Error("the Sandbox was changed")
	}
}

// TestPodIsRestricted: without repositories, which are on a hostPath, and without the user's container the pod is one of the Pod Security
// level "restricted".
func TestPodIsRestricted(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	box := whole()
	box.Namespace = s.namespace
	box.Spec.Repos, box.Spec.InitContainers, box.Spec.PriorityClassName = nil, nil, ""
	box.Spec.Sidecars = box.Spec.Sidecars[:1]
	if err := s.Create(t.Context(), controller.Pod(box, nil), client.DryRunAll); err != nil {
		t.Error(err)
	}
	box.Spec.SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(1000))} // verbatim, so no longer hardened
	if err := s.Create(t.Context(), controller.Pod(box, nil), client.DryRunAll); err == nil {
		t.Error("a securityContext of the spec was not taken verbatim")
	}
}

// TestReposOfAPod: where the Repo cache keeps them, and what the spec already mounts is not mounted twice.
func TestReposOfAPod(t *testing.T) {
	box := whole()
	box.Spec.Volumes = append(box.Spec.Volumes, corev1.Volume{Name: "repo-lib", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	box.Spec.VolumeMounts = append(box.Spec.VolumeMounts, corev1.VolumeMount{Name: "work", MountPath: "/repos/lib"})
	pod := controller.Pod(box, nil)
	sources := map[string]corev1.VolumeSource{}
	for _, volume := range pod.Spec.Volumes {
		if _, twice := sources[volume.Name]; twice {
			t.Errorf("volume %s twice", volume.Name)
		}
		sources[volume.Name] = volume.VolumeSource
	}
	if got, want := sources["repo-app"].HostPath.Path, render.RepoCachePath("team")+"/app"; got != want {
		t.Errorf("app is at %s, the Repo cache keeps it at %s", got, want)
	}
	if sources["repo-lib"].EmptyDir == nil {
		t.Error("the spec's own volume was replaced")
	}
	for container, want := range map[int]map[string]string{0: {"/repos/app": "repo-app", "/repos/lib": "work"}, 1: {}, 2: {"/repos/app": "repo-app", "/repos/lib": "repo-lib"}} {
		got := map[string]string{}
		for _, mount := range pod.Spec.Containers[container].VolumeMounts {
			if filepath.Dir(mount.MountPath) == "/repos" {
				got[mount.MountPath] = mount.Name
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s mounts %v, want %v", pod.Spec.Containers[container].Name, got, want)
		}
	}
	if pod.Spec.Affinity != nil {
		t.Error("a preference for no node")
	}
}

// TestManyHolders: in a large cluster the preference stays small, and names the nodes that have the most.
func TestManyHolders(t *testing.T) {
	all := map[string][]string{"lib": {"node-9999"}}
	for i := range 10_000 {
		all["app"] = append(all["app"], fmt.Sprintf("node-%04d", i))
	}
	pod := controller.Pod(whole(), all)
	terms := pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if len(terms) != 500 || pod.Size() > 64<<10 {
		t.Fatalf("%d terms, the pod has %d bytes", len(terms), pod.Size())
	}
	for i, want := range []string{"node-9999", "node-9999", "node-0000", "node-0001"} {
		if got := terms[i].Preference.MatchFields[0].Values; terms[i].Weight != 1 || len(got) != 1 || got[0] != want {
			t.Errorf("term %d: %+v", i, terms[i])
		}
	}
}
