package warm_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/warm"
)

const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func daemonSet(t *testing.T, images warm.Images, home warm.Home, sandboxes warm.Sandboxes) *appsv1.DaemonSet {
	t.Helper()
	objects, err := images.Objects(home, sandboxes)
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	return objects[0].(*appsv1.DaemonSet)
}

// TestWarmImages: each image once, in a container of its own that runs nothing of it, for next to nothing.
func TestWarmImages(t *testing.T) {
	images := warm.Images{"r.test/b:1", "busybox:1.37", "r.test/a@" + digest, "docker.io/library/busybox:1.37"}
	set := daemonSet(t, images, warm.Home{Namespace: "team-a", Prefix: "kora", Labels: map[string]string{"x": "y"}, PullSecrets: []string{"pull"}}, warm.Sandboxes{})
	pod := podOf(set.Spec.Template)
	restricted(t, pod)
	var mounted []string
	for n, container := range pod.Spec.Containers {
		mount, volume := container.VolumeMounts[0], pod.Spec.Volumes[n]
		if mount.Name != volume.Name || !mount.ReadOnly || container.Image != warm.DefaultSleeper || container.Command != nil || container.Name != volume.Name {
			t.Errorf("container %+v, volume %+v", container, volume)
		}
		mounted = append(mounted, volume.Image.Reference)
	}
	if want := []string{"busybox:1.37", "r.test/a@" + digest, "r.test/b:1"}; len(mounted) != 3 || !slices.Contains(mounted, "r.test/b:1") || !slices.Contains(mounted, want[1]) {
		t.Errorf("mounted %v", mounted)
	}
	asks := placement.Requests(pod)
	if asks.Cpu().MilliValue() > 10 || asks.Memory().Cmp(resource.MustParse("10Mi")) > 0 {
		t.Errorf("it asks for %v", asks)
	}
	if set.Name != "kora-warm-images" || set.Labels["x"] != "y" || pod.Labels["x"] != "y" || pod.Labels[warm.Label] != warm.LabelImages || pod.Spec.ImagePullSecrets[0].Name != "pull" {
		t.Errorf("set %+v", set.ObjectMeta)
	}
	slices.Reverse(images)
	if again := daemonSet(t, images, warm.Home{Namespace: "team-a", Prefix: "kora", Labels: map[string]string{"x": "y"}, PullSecrets: []string{"pull"}}, warm.Sandboxes{}); !reflect.DeepEqual(set, again) {
		t.Error("the order in which images are named changes the pods")
	}
}

// TestWarmImagesWhereSandboxesLand: on all of their nodes, whatever other pods are there.
func TestWarmImagesWhereSandboxesLand(t *testing.T) {
	affinity := (placement.Rules{}).On("n1").Affinity
	affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 1}}
	spec := daemonSet(t, warm.Images{"a:1"}, home(), warm.Sandboxes{Rules: placement.Rules{
		NodeSelector: map[string]string{"pool": "agents"}, Tolerations: []corev1.Toleration{{Key: "pool"}}, Affinity: affinity,
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1}}, PriorityClassName: "jr2-sandbox",
	}}).Spec.Template.Spec
	if spec.NodeSelector["pool"] != "agents" || len(spec.Tolerations) != 1 || spec.Affinity.PodAntiAffinity != nil || spec.TopologySpreadConstraints != nil ||
		spec.PriorityClassName != "" || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil || spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution != nil {
		t.Errorf("got %+v", spec)
	}
	if affinity.PodAntiAffinity == nil {
		t.Error("the rules that were given changed")
	}
}

func TestNoImagesAndBadImages(t *testing.T) {
	if objects, err := (warm.Images{}).Objects(warm.Home{}, warm.Sandboxes{}); objects != nil || err != nil {
		t.Errorf("got %v, %v", objects, err)
	}
	var bad *warm.ImageError
	if _, err := (warm.Images{"ok:1", "reg.example.com/App:v1"}).Objects(home(), warm.Sandboxes{}); !errors.As(err, &bad) || bad.Ref != "reg.example.com/App:v1" {
		t.Errorf("got %v", err)
	}
	warnings, err := warm.Images{"a", "b:latest", "c:1", "localhost:5000/d", "e:latest@" + digest}.Check()
	var about []string
	for _, warning := range warnings {
		about = append(about, warning.Object)
	}
	if want := []string{"image a", "image b:latest", "image localhost:5000/d"}; err != nil || !slices.Equal(about, want) {
		t.Errorf("got %v, %v", about, err)
	}
}

// listing is a node that lists images by these names.
func listing(name string, images ...[]string) corev1.Node {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, names := range images {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{Names: names})
	}
	return node
}

func TestPulled(t *testing.T) {
	full := listing("full")
	for n := range warm.ListedImages {
		full.Status.Images = append(full.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("r.test/other:%d", n)}})
	}
	nodes := []corev1.Node{
		listing("lists", []string{"docker.io/library/a@" + digest, "docker.io/library/a:1"}, []string{"r.test/b:1"}),
		listing("silent"), full, listing("mounts", []string{"r.test/x:1"}), listing("fails", []string{"docker.io/library/a:1"}), listing("waits", []string{"docker.io/library/a:1"}),
	}
	pods := []corev1.Pod{warmPod(t, "mounts", nil), warmPod(t, "fails", map[string]string{"r.test/b:1": `Back-off pulling image "r.test/b:1": not found`}),
		warmPod(t, "waits", map[string]string{"r.test/b:1": "Back-off pulling image of the sleeper"})}
	got, err := warm.Pulled(warm.Images{"a:1", "r.test/b:1", "a@" + digest}, nodes, pods)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"lists: present present present", "silent: unknown unknown unknown", "full: unknown unknown unknown",
		"mounts: present present absent", "fails: present absent absent", "waits: present absent absent",
	} {
		line := got[i].Node + ":"
		for _, image := range got[i].Images {
			line += " " + string(image.Presence)
			if image.Why == "" {
				t.Errorf("%s of %s without a reason", image.Image, got[i].Node)
			}
		}
		if line != want {
			t.Errorf("got %q, want %q", line, want)
		}
	}
	if !got[0].All() || got[3].All() {
		t.Error("All is wrong")
	}
	if why := got[4].Images[1].Why; !strings.Contains(why, "not found") || !strings.HasPrefix(why, "ImagePullBackOff: ") {
		t.Errorf("the kubelet's words are lost: %q", why)
	}
	if _, err := warm.Pulled(warm.Images{"A"}, nodes, nil); err == nil {
		t.Error("an image that can't be read is no error")
	}
}

// warmPod is the pod of a:1 and r.test/b:1 on a node, as its kubelet reports it; failing images wait with these words.
func warmPod(t *testing.T, node string, failing map[string]string) corev1.Pod {
	pod := podOf(daemonSet(t, warm.Images{"a:1", "r.test/b:1"}, home(), warm.Sandboxes{}).Spec.Template)
	pod.Name, pod.Spec.NodeName = "warm-"+node, node
	for _, volume := range pod.Spec.Volumes {
		status := corev1.ContainerStatus{Name: volume.Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
		if message := failing[volume.Image.Reference]; message != "" {
			status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: message}}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	return *pod
}
