package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"

	"jr2.dev/jr2/internal/holder"
)

// checkContainer is the one container of a pod of a check.
const checkContainer = "check"

// toMessage is how a script begins: what it prints becomes the message with which its container ended, in the pod's status, so that nobody needs
// the right to read logs. A kubelet keeps 4096 bytes.
const toMessage = "exec >/dev/termination-log 2>&1\n"

// pod is one that runs a script on a node and ends. The node is chosen by affinity and not by name, so that the scheduler says why it can't be;
// it tolerates what is set on the node on purpose, as kubectl debug does, and not that the node is away.
func (r *nodeChecking) pod(node *corev1.Node, script string, args ...string) *corev1.Pod {
	deadline := int64((r.Timeout + podSlack).Seconds())
	var now int64
	no := false
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: nodeCheckName, Namespace: r.namespace, Labels: r.labels(), Annotations: map[string]string{nodeCheckHolder: holder.Self()},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         &deadline,
			TerminationGracePeriodSeconds: &now,
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			HostNetwork:                   true,
			DNSPolicy:                     corev1.DNSDefault,
			Tolerations:                   tolerationsOf(node),
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
					{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node.Name}}}}}}}},
			Containers: []corev1.Container{{
				Name:            checkContainer,
				Image:           r.Image,
				ImagePullPolicy: corev1.PullIfNotPresent,
				Command:         []string{"sh", "-c", toMessage + script, checkContainer},
				Args:            args,
			}},
		},
	}
	for _, name := range r.PullSecrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return pod
}

func tolerationsOf(node *corev1.Node) []corev1.Toleration {
	away := []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeNetworkUnavailable, corev1.TaintNodeOutOfService}
	var tolerations []corev1.Toleration
	for _, taint := range node.Spec.Taints {
		if !slices.Contains(away, taint.Key) {
			tolerations = append(tolerations, corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect})
		}
	}
	return tolerations
}

// An ending is how a pod of a check ended.
type ending struct {
	// message is what the script printed.
	message string
	// why says in the cluster's words why it did not get there; "" when it did.
	why string
}

// run makes the pod, waits for its end and removes it. An error is a server that could not be asked; what the server or the node has against the
// pod is the ending's why.
func (r *nodeChecking) run(ctx context.Context, pod *corev1.Pod) (end ending, err error) {
	limited, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	made, err := createPatiently(limited, func(ctx context.Context) (*corev1.Pod, error) {
		return r.pods.Create(ctx, pod, metav1.CreateOptions{FieldManager: "jr2"})
	})
	if refused, ok := refusalOf(err); ok && refused.class != refusedNamespaceMissing && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return ending{why: refused.words}, nil
	}
	if err != nil {
		return ending{}, fmt.Errorf("make a pod for a node check: %w", err)
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
		defer cancel()
		if failed := r.remove(clean, made.Name); err == nil {
			err = failed
		}
	}()
	last := "nobody has said anything about its pod"
	end, err = r.await(limited, made.Name, &last)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return ending{why: fmt.Sprintf("its pod did not end within %s: %s", r.Timeout, last)}, nil
	}
	return end, err
}

// await watches the pod until it has ended, or will not. A watch that ends begins again.
func (r *nodeChecking) await(ctx context.Context, name string, last *string) (ending, error) {
	this := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	for {
		list, err := r.pods.List(ctx, this)
		if err != nil {
			return ending{}, fmt.Errorf("look at pod %s/%s of a node check: %w", r.namespace, name, err)
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
func (r *nodeChecking) watch(ctx context.Context, from metav1.ListOptions, last *string) (ending, bool, error) {
	events, err := r.pods.Watch(ctx, from)
	if err != nil {
		return ending{}, false, fmt.Errorf("watch a pod of a node check in namespace %s: %w", r.namespace, err)
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
				message = strings.TrimSpace(fmt.Sprintf("exit code %d (%s) %s", ended.ExitCode, ended.Reason, ended.Message))
			}
		}
		if waits := status.State.Waiting; waits != nil {
			*last = strings.TrimSuffix(waits.Reason+": "+waits.Message, ": ")
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
