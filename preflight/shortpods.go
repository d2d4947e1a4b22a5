package preflight

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"jr2.dev/jr2/internal/holder"
	"jr2.dev/jr2/internal/names"
)

const (
	// cleanTimeout bounds the removal after a check.
	cleanTimeout = 15 * time.Second
	// leftoverAge is when what another machine's check made counts as left behind: far longer than any check takes.
	leftoverAge = time.Hour
	// podSlack is what a pod's own deadline has beyond the check's.
	podSlack = 10 * time.Second
	// holderSuffix is what the annotation that says whose a pod is has after the key of its label.
	holderSuffix = "-holder"
)

// shortPods are the pods of one check: each runs one thing and ends, and none is left when the check returns. One that is, because the check
// was killed, does nothing after its deadline and is removed by the next check of its kind.
type shortPods struct {
	// what makes them, in errors: "a node check".
	what string
	// label is the key whose value is id; the holder's annotation is named after it.
	label, id string
	namespace string
	pods      corev1client.PodInterface
	// timeout bounds each pod, with the pull of its images.
	timeout time.Duration
}

func (r *shortPods) labels() map[string]string {
	return map[string]string{r.label: r.id, names.LabelManagedBy: names.ManagedBy}
}

func (r *shortPods) held() map[string]string {
	return map[string]string{r.label + holderSuffix: holder.Self()}
}

// An ending is how a pod of a check ended.
type ending struct {
	// message is what the script printed.
	message string
	// why says in the cluster's words why it did not get there; "" when it did.
	why string
}

// run makes the pod, waits for its end and removes it. An error is a server that could not be asked; what the server or the node has against the
// pod is the ending's why. with, unless nil, brings what the pod waits for once it is there.
func (r *shortPods) run(ctx context.Context, pod *corev1.Pod, with func(context.Context, *corev1.Pod) error) (end ending, err error) {
	limited, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	r.mark(pod)
	made, err := createPatiently(limited, func(ctx context.Context) (*corev1.Pod, error) { return r.create(ctx, pod) })
	if refused, ok := refusalOf(err); ok && refused.class != refusedNamespaceMissing && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return ending{why: refused.words}, nil
	}
	if err != nil {
		return ending{}, fmt.Errorf("make a pod for %s: %w", r.what, err)
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
		defer cancel()
		if failed := r.remove(clean, made); err == nil {
			err = failed
		}
	}()
	if with != nil {
		if err := with(limited, made); err != nil {
			return ending{}, err
		}
	}
	last := "nobody has said anything about its pod"
	end, err = r.await(limited, made.Name, &last)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return ending{why: fmt.Sprintf("its pod did not end within %s: %s", r.timeout, last)}, nil
	}
	return end, err
}

// mark says whose the pod is, and that it ends by itself.
func (r *shortPods) mark(pod *corev1.Pod) {
	deadline := int64((r.timeout + podSlack).Seconds())
	pod.Namespace = r.namespace
	pod.Labels, pod.Annotations = added(pod.Labels, r.labels()), added(pod.Annotations, r.held())
	pod.Spec.RestartPolicy, pod.Spec.ActiveDeadlineSeconds = corev1.RestartPolicyNever, &deadline
}

func added(to, more map[string]string) map[string]string {
	if to == nil {
		to = map[string]string{}
	}
	maps.Copy(to, more)
	return to
}

// create does without a priority class that is not there yet: it says nothing about what the pod is to find out.
func (r *shortPods) create(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	made, err := r.pods.Create(ctx, pod, metav1.CreateOptions{FieldManager: names.ManagedBy})
	if refused, ok := refusalOf(err); ok && refused.class == refusedPriorityClass && refused.without(pod) {
		return r.pods.Create(ctx, pod, metav1.CreateOptions{FieldManager: names.ManagedBy})
	}
	return made, err
}

// await watches the pod until it has ended, or will not. A watch that ends begins again.
func (r *shortPods) await(ctx context.Context, name string, last *string) (ending, error) {
	this := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	for {
		list, err := r.pods.List(ctx, this)
		if err != nil {
			return ending{}, fmt.Errorf("look at pod %s/%s of %s: %w", r.namespace, name, r.what, err)
		}
		if len(list.Items) == 0 {
			return ending{why: "somebody removed its pod"}, nil
		}
		if end, done := judge(&list.Items[0], last); done {
			return end, nil
		}
		from := this
		from.ResourceVersion = list.ResourceVersion
		end, done, err := r.watch(ctx, from, last)
		if err != nil || done {
			return end, err
		}
	}
}

// watch is done when the pod is; else the watch ended.
func (r *shortPods) watch(ctx context.Context, from metav1.ListOptions, last *string) (ending, bool, error) {
	events, err := r.pods.Watch(ctx, from)
	if err != nil {
		return ending{}, false, fmt.Errorf("watch a pod of %s in namespace %s: %w", r.what, r.namespace, err)
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return ending{}, false, context.Cause(ctx)
		case event, open := <-events.ResultChan():
			pod, ok := event.Object.(*corev1.Pod)
			if !open || !ok { // the server has forgotten that point, or went away: the list says how things stand
				return ending{}, false, pause(ctx, 200*time.Millisecond)
			}
			if end, done := judge(pod, last); done {
				return end, true, nil
			}
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// judge says whether the pod has ended or can't run; last keeps the newest words about one that may yet.
func judge(pod *corev1.Pod, last *string) (ending, bool) {
	message := pod.Status.Message
	for _, status := range pod.Status.ContainerStatuses {
		if ended := status.State.Terminated; ended != nil {
			message = ended.Message
			if ended.ExitCode != 0 || message == "" {
				message = exited(ended)
			}
		}
		if waits := status.State.Waiting; waits != nil {
			*last = words(waits)
			if hopeless(waits.Reason) {
				return ending{why: *last}, true
			}
		}
	}
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		return ending{message: message}, true
	case pod.Status.Phase == corev1.PodFailed:
		return ending{why: "its pod failed: " + strings.TrimSpace(pod.Status.Reason+" "+message)}, true
	case pod.DeletionTimestamp != nil:
		return ending{why: "somebody removed its pod"}, true
	}
	if why, stuck := sidecars(pod, last); stuck {
		return ending{why: why}, true
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			*last = condition.Message
			if condition.Reason == corev1.PodReasonUnschedulable {
				return ending{why: condition.Message}, true
			}
		}
	}
	return ending{}, false
}

// sidecars says why those of a pod, which start before its container, will not.
func sidecars(pod *corev1.Pod, last *string) (why string, stuck bool) {
	for _, status := range pod.Status.InitContainerStatuses {
		said := "its container " + status.Name + " has not started"
		if waits := status.State.Waiting; waits != nil {
			said += ": " + words(waits)
			if ended := status.LastTerminationState.Terminated; ended != nil {
				said += " (" + exited(ended) + ")"
			}
			if hopeless(waits.Reason) || waits.Reason == "CrashLoopBackOff" {
				return said, true
			}
		}
		if status.Started == nil || !*status.Started {
			*last = said
		}
	}
	return "", false
}

func words(waits *corev1.ContainerStateWaiting) string {
	return strings.TrimSuffix(waits.Reason+": "+waits.Message, ": ")
}

func exited(ended *corev1.ContainerStateTerminated) string {
	return strings.TrimSpace(fmt.Sprintf("exit code %d (%s) %s", ended.ExitCode, ended.Reason, ended.Message))
}

// hopeless are reasons for which a container waits and that end by themselves seldom enough.
func hopeless(reason string) bool {
	return slices.Contains([]string{"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"}, reason)
}

// createPatiently waits some seconds for the service account that a new namespace does not have yet, without which no pod is let in.
func createPatiently(ctx context.Context, create func(context.Context) (*corev1.Pod, error)) (pod *corev1.Pod, err error) {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Steps: 9}
	waited := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		pod, err = create(ctx)
		refused, ok := refusalOf(err)
		return !ok || refused.class != refusedServiceAccount, nil
	})
	if err == nil && pod == nil {
		err = waited // ctx had ended before the first try
	}
	return pod, err
}
