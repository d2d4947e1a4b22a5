package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/placement/quota"
)

func createDryRun(ctx context.Context, pods PodCreator, pod *corev1.Pod) (*corev1.Pod, error) {
	return pods.Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "jr2"})
}

// refusedFor sorts the reasons for which a pod is not let in.
type refusedFor int

const (
	refusedOther refusedFor = iota
	refusedPodSecurity
	refusedQuotaNever
	refusedQuotaFull
	refusedServiceAccount
	refusedPriorityClass
	refusedRuntimeClass
	refusedNamespaceMissing
	refusedNamespaceLeaves
	// refusedByPolicy is a webhook or an admission policy: it may look at who asks, so the controller may get another answer.
	refusedByPolicy
)

// A refusal is the server's word that it would not let a pod in.
type refusal struct {
	class refusedFor
	// words are the server's, without the pod that it names first.
	words string
	// names is what is missing.
	names string
}

var (
	podForbidden      = regexp.MustCompile(`^(?:pods "[^"]*" is forbidden|Pod "[^"]*" is invalid): `)
	noServiceAccount  = regexp.MustCompile(`error looking up service account [^/]*/([^:]+): `)
	noPriorityClass   = regexp.MustCompile(`no PriorityClass with name (\S+) was found`)
	noRuntimeClass    = regexp.MustCompile(`RuntimeClass "([^"]+)" not found`)
	noRightToMake     = regexp.MustCompile(`User "[^"]*" cannot create resource "pods"`)
	byPolicy          = regexp.MustCompile(`^admission webhook "|ValidatingAdmissionPolicy '|MutatingAdmissionPolicy '`)
	podQuotaIncomplet = regexp.MustCompile(`failed quota: `)
)

// refusalOf reads the error of a dry run; false when it says nothing about the pod: no right to ask, no answer, a server in trouble.
func refusalOf(err error) (refusal, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return refusal{}, false
	}
	message, code := status.Status().Message, status.Status().Code
	r := refusal{words: podForbidden.ReplaceAllString(message, "")}
	if code == http.StatusNotFound && status.Status().Details != nil && status.Status().Details.Kind == "namespaces" {
		r.class, r.names = refusedNamespaceMissing, status.Status().Details.Name
		return r, true
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || code == http.StatusForbidden && strings.Contains(message, "because it is being terminated") {
		r.class = refusedNamespaceLeaves
		return r, true
	}
	if noRightToMake.MatchString(message) || code < 400 || code >= 500 || code == http.StatusNotFound ||
		code == http.StatusUnauthorized || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout {
		return refusal{}, false
	}
	for pattern, class := range map[*regexp.Regexp]refusedFor{noServiceAccount: refusedServiceAccount, noPriorityClass: refusedPriorityClass, noRuntimeClass: refusedRuntimeClass} {
		if m := pattern.FindStringSubmatch(message); m != nil {
			r.class, r.names = class, m[1]
			return r, true
		}
	}
	switch {
	case byPolicy.MatchString(r.words):
		r.class = refusedByPolicy
	case strings.Contains(message, "violates PodSecurity"):
		r.class = refusedPodSecurity
	case podQuotaIncomplet.MatchString(message):
		r.class = refusedQuotaNever
	case strings.Contains(message, "exceeded quota: "):
		r.class = quotaClass(message)
	case code != http.StatusForbidden && code != http.StatusUnprocessableEntity: // only webhooks answer with their own codes
		r.class = refusedByPolicy
	}
	return r, true
}

// quotaClass tells "not yet" from "never": a pod that asks for more than the quota allows in total fits at no time, and a message that
// can't be read is not waited on.
func quotaClass(message string) refusedFor {
	if q, ok := quota.ParseRefusal(message); !ok || q.Never() {
		return refusedQuotaNever
	}
	return refusedQuotaFull
}

// without takes what is missing out of the pod, and says whether another try may find more.
func (r refusal) without(pod *corev1.Pod) bool {
	switch {
	case r.class == refusedServiceAccount && pod.Spec.ServiceAccountName != "":
		pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "", ""
	case r.class == refusedPriorityClass && pod.Spec.PriorityClassName != "":
		pod.Spec.PriorityClassName = ""
	case r.class == refusedRuntimeClass && pod.Spec.RuntimeClassName != nil:
		pod.Spec.RuntimeClassName = nil
	default:
		return false
	}
	return true
}

// finding says the refusal; nothing for what is expected to arrive.
func (r refusal) finding(l *setLook, w *workload) []Finding {
	f := Finding{Severity: Refuse, Code: CodePodRefused, Object: w.object}
	switch r.class {
	case refusedPodSecurity:
		return []Finding{securityFinding(w, r.words)}
	case refusedQuotaNever:
		f.Code, f.Fix = CodePodQuotaNever, "lower or state the resources in the pod template, or raise the quota"
	case refusedQuotaFull:
		return []Finding{l.fullQuota(w, r)}
	case refusedServiceAccount:
		if l.expectsAccount(w, r) {
			return nil
		}
		return []Finding{missing(w, "service account", r)}
	case refusedPriorityClass:
		return []Finding{missing(w, "priority class", r)}
	case refusedRuntimeClass:
		return []Finding{missing(w, "RuntimeClass", r)}
	case refusedNamespaceMissing:
		if l.namespace(w.namespace) != nil {
			return nil
		}
		return []Finding{missing(w, "namespace", r)}
	case refusedNamespaceLeaves:
		return []Finding{leaving(w.namespace, "")}
	case refusedByPolicy:
		f.Severity, f.Fix = Warn, "change the pod template, or ask who keeps that policy"
		f.Message = fmt.Sprintf("%s: the cluster would not let its pods in: %s — %s", w.object, r.words, f.Fix)
		return []Finding{f}
	default:
		f.Fix = "correct the pod template"
	}
	f.Message = fmt.Sprintf("refusing: %s would be accepted and its pods would not: %s — %s. Nothing was applied.", w.object, strings.TrimSuffix(r.words, "."), f.Fix)
	if r.class == refusedQuotaNever {
		f.Fix = cmp.Or(RaiseQuota(w.namespace, r.words), f.Fix)
	}
	return []Finding{f}
}

func missing(w *workload, what string, r refusal) Finding {
	fix := fmt.Sprintf("create the %s %s, or correct its name", what, r.names)
	return Finding{
		Severity: Warn, Code: CodePodNeedsMissing, Object: w.object,
		Message: fmt.Sprintf("%s: its pods need the %s %s, which neither the set nor the cluster has: %s — %s", w.object, what, r.names, r.words, fix),
		Fix:     cmp.Or(created(w.namespace, what, r.names), fix),
	}
}

// created is the command that makes what pods need; empty where kubectl has none.
func created(namespace, what, name string) string {
	switch {
	case strings.ContainsAny(name, ", ") || name == "":
	case what == "service account":
		return fmt.Sprintf("kubectl -n %s create serviceaccount %s", namespace, name)
	case what == "priority class":
		return fmt.Sprintf("kubectl create priorityclass %s --value=1000", name)
	case what == "namespace":
		return "kubectl create namespace " + name
	}
	return ""
}

// fullQuota tells a pod that waits for room from a rollout that waits for itself: its new pod needs the room that its old pods hold, and they
// hold it until the new one is there. Where the old ones stop first, or nothing changes, that they hold the room is worth a Note.
func (l *setLook) fullQuota(w *workload, r refusal) Finding {
	f := Finding{Severity: Warn, Code: CodePodQuotaFull, Object: w.object, Fix: "free room, or raise the quota"}
	f.Message = fmt.Sprintf("%s: its pods will wait for room: %s — %s", w.object, r.words, f.Fix)
	switch runs := slices.ContainsFunc(l.facts.Pods, func(pod corev1.Pod) bool { return w.owns(&pod) && !ended(&pod) }); {
	case runs && w.kind == "Deployment" && w.unavailable() == 0:
		f.Fix = "set maxSurge: 0 and maxUnavailable: 1, or raise the quota"
		f.Message = fmt.Sprintf("%s: a rollout cannot end: it makes a new pod before it stops an old one (%s, none may be unavailable), and the old ones hold the room: %s — %s",
			w.object, plural(w.replicas, "replica"), r.words, f.Fix)
	case runs:
		f.Severity = Note
		f.Message = fmt.Sprintf("%s: there is no room for one more of its pods beside those that run: %s", w.object, r.words)
	}
	return f
}
