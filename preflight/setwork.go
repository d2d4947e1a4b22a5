package preflight

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/placement"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A workload is an object of the set that makes pods, or is one.
type workload struct {
	object          string // "Deployment jarvis/jarvis-api"
	kind            string
	namespace, name string
	source          *unstructured.Unstructured
	// pod is made from the template, as its controller would make it.
	pod *corev1.Pod
	// admitted is what the API server makes of pod, by dry run; nil when it was not asked or did not let it in.
	admitted *corev1.Pod
	// explained is where the pod can land; nil until somebody asks.
	explained *placement.Explanation
	// selector of the pods that it made earlier; it selects nothing where the kind has none.
	selector labels.Selector
	// replicas that it asks for: one for a pod and for a Job, since all its pods are alike.
	replicas int
}

// runs is the pod that will run: what the API server made of it when it was asked, with what webhooks changed.
func (w *workload) runs() *corev1.Pod {
	if w.admitted != nil {
		return w.admitted
	}
	return w.pod
}

// account is the service account of its pods.
func (w *workload) account() string {
	return cmp.Or(w.pod.Spec.ServiceAccountName, w.pod.Spec.DeprecatedServiceAccount, "default")
}

// scaled says whether the workload has a number of replicas, which drains and budgets count.
func (w *workload) scaled() bool {
	switch w.kind {
	case "Deployment", "StatefulSet", "ReplicaSet", "ReplicationController":
		return true
	}
	return false
}

// owns says whether a pod of the cluster is one that this workload made earlier, as far as labels and names tell.
func (w *workload) owns(pod *corev1.Pod) bool {
	if pod.Namespace != w.namespace {
		return false
	}
	switch w.kind {
	case "Pod":
		return pod.Name == w.name
	case "Job":
		return pod.Labels["batch.kubernetes.io/job-name"] == w.name
	}
	return w.selector.Matches(labels.Set(pod.Labels))
}

// selectorOf reads the selector of a workload. One that is empty or cannot be read selects nothing.
func selectorOf(o *unstructured.Unstructured) labels.Selector {
	found, ok, err := unstructured.NestedMap(o.Object, "spec", "selector")
	if !ok || err != nil {
		return labels.Nothing()
	}
	if o.GetKind() == "ReplicationController" {
		found = map[string]any{"matchLabels": found}
	}
	stated := &metav1.LabelSelector{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(found, stated) != nil {
		return labels.Nothing()
	}
	selector, err := metav1.LabelSelectorAsSelector(stated)
	if err != nil || selector.Empty() {
		return labels.Nothing()
	}
	return selector
}

// podTemplate is where an object holds the pod that it makes; nil for kinds that make none. A pod is its own template.
func podTemplate(o *unstructured.Unstructured) []string {
	gvk := o.GroupVersionKind()
	switch {
	case gvk.Group == "" && gvk.Kind == "Pod":
		return []string{}
	case gvk.Group == "batch" && gvk.Kind == "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template"}
	case gvk.Group == "batch" && gvk.Kind == "Job", gvk.Group == "" && gvk.Kind == "ReplicationController":
		return []string{"spec", "template"}
	case gvk.Group == "apps":
		switch gvk.Kind {
		case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet":
			return []string{"spec", "template"}
		}
	}
	return nil
}

// workloadOf reads the workload that an object is; nil and no error for other kinds.
func workloadOf(o *unstructured.Unstructured) (*workload, error) {
	path := podTemplate(o)
	if path == nil {
		return nil, nil
	}
	held := o.Object
	if len(path) > 0 {
		var err error
		if held, _, err = unstructured.NestedMap(o.Object, path...); err != nil {
			return nil, err
		}
	}
	template := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(held, template); err != nil {
		return nil, err
	}
	w := &workload{object: objectOf(o), kind: o.GetKind(), namespace: cmp.Or(o.GetNamespace(), corev1.NamespaceDefault), name: o.GetName(), source: o, selector: selectorOf(o), replicas: 1}
	w.pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: w.name + "-", Namespace: w.namespace, Labels: template.Labels, Annotations: template.Annotations},
		Spec:       template.Spec,
	}
	if w.kind == "StatefulSet" {
		claimVolumes(w)
	}
	if w.scaled() {
		if n, ok, err := unstructured.NestedInt64(o.Object, "spec", "replicas"); ok && err == nil {
			w.replicas = int(n)
		}
	}
	return w, nil
}

// claimVolumes adds the volumes that the StatefulSet controller adds for claim templates: without them the containers would mount
// volumes that do not exist.
func claimVolumes(w *workload) {
	templates, _, _ := unstructured.NestedSlice(w.source.Object, "spec", "volumeClaimTemplates") //nolint:errcheck // the server refuses it in its own words
	for _, t := range templates {
		claim, ok := t.(map[string]any)
		if !ok {
			continue
		}
		name, _, _ := unstructured.NestedString(claim, "metadata", "name") //nolint:errcheck // as above
		volume := corev1.Volume{Name: name}
		volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprintf("%s-%s-0", name, w.name)}
		at := -1
		for i := range w.pod.Spec.Volumes {
			if w.pod.Spec.Volumes[i].Name == name {
				at = i
			}
		}
		if at < 0 {
			w.pod.Spec.Volumes = append(w.pod.Spec.Volumes, volume)
		} else {
			w.pod.Spec.Volumes[at] = volume
		}
	}
}

// objectOf is an object as findings name it: "Deployment jarvis/jarvis-api".
func objectOf(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + " " + o.GetName()
	}
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// An imageUse is one place of a pod that names an image.
type imageUse struct {
	where string // `container "api"`, `image volume "data"`
	image string
	// policy says when a kubelet pulls it.
	policy corev1.PullPolicy
}

// imagesOf are the images of a pod, in the order in which the kubelet needs them.
func imagesOf(pod *corev1.Pod) []imageUse {
	var uses []imageUse
	add := func(kind, name, image string, policy corev1.PullPolicy) {
		if policy == "" {
			policy = defaultPolicy(image)
		}
		uses = append(uses, imageUse{fmt.Sprintf("%s %q", kind, name), image, policy})
	}
	for _, v := range pod.Spec.Volumes {
		if v.Image != nil && v.Image.Reference != "" { // an empty one is the author's way to say "later"
			add("image volume", v.Name, v.Image.Reference, v.Image.PullPolicy)
		}
	}
	for _, c := range pod.Spec.InitContainers {
		add("init container", c.Name, c.Image, c.ImagePullPolicy)
	}
	for _, c := range pod.Spec.Containers {
		add("container", c.Name, c.Image, c.ImagePullPolicy)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		add("ephemeral container", c.Name, c.Image, c.ImagePullPolicy)
	}
	return uses
}
