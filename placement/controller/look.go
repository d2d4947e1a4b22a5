package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"jr2.dev/jr2/placement/v1alpha1"
)

// reposOf reads the Repos of the spec, by key. One that does not exist is absent.
func (r *sandboxes) reposOf(ctx context.Context, box *v1alpha1.Sandbox) (map[string]*v1alpha1.Repo, error) {
	repos := map[string]*v1alpha1.Repo{}
	for _, want := range box.Spec.Repos {
		repo := new(v1alpha1.Repo)
		err := r.client.Get(ctx, client.ObjectKey{Namespace: box.Namespace, Name: want.Key}, repo)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err == nil {
			repos[want.Key] = repo
		}
	}
	return repos, nil
}

// podOf finds the one pod of the Sandbox; nil when there is none. The cache may be behind on both sides: a pod that it lacks, though the
// status names it, is asked for again, because the answer makes the Sandbox Lost.
func (r *sandboxes) podOf(ctx context.Context, box *v1alpha1.Sandbox) (*corev1.Pod, error) {
	key := client.ObjectKeyFromObject(box)
	pod := new(corev1.Pod)
	err := r.client.Get(ctx, key, pod)
	if err == nil && isPodOf(box, pod) {
		return pod, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if box.Status.PodUID == "" {
		return nil, nil
	}
	pod = new(corev1.Pod)
	if err := r.live.Get(ctx, key, pod); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if isPodOf(box, pod) {
		return pod, nil
	}
	return nil, nil
}

// isPodOf says that a pod is the one of the Sandbox: it has the UID that was written down, or, before one was, the Sandbox as its owner.
func isPodOf(box *v1alpha1.Sandbox, pod *corev1.Pod) bool {
	return metav1.IsControlledBy(pod, box) && (box.Status.PodUID == "" || box.Status.PodUID == pod.UID)
}

// endSecond ends a second pod of a Sandbox that is Lost: a controller made it after another had made one that came, was written down, and
// went, all between the first one's last look and its create.
func (r *sandboxes) endSecond(ctx context.Context, box *v1alpha1.Sandbox) error {
	pod := new(corev1.Pod)
	err := r.client.Get(ctx, client.ObjectKeyFromObject(box), pod)
	if err != nil || box.Status.PodUID == "" || isPodOf(box, pod) || !metav1.IsControlledBy(pod, box) || pod.DeletionTimestamp != nil {
		return client.IgnoreNotFound(err)
	}
	log.FromContext(ctx).Info("delete a second pod of a Sandbox", "pod", pod.UID, "first", box.Status.PodUID)
	return client.IgnoreNotFound(r.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}))
}

// nodeAway says that a node is gone, or that its kubelet has not been heard of. It is false where nodes may not be read.
func (r *sandboxes) nodeAway(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	node := new(corev1.Node)
	switch err := r.live.Get(ctx, client.ObjectKey{Name: name}, node); {
	case apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsForbidden(err):
		return false, nil
	case err != nil:
		return false, err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionUnknown, nil
		}
	}
	return false, nil
}
