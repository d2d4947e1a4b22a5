package apply

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Diagnosis is a named cause, drawn only from evidence that is shown too.
type Diagnosis struct {
	// Name is one of the Diagnosed constants.
	Name string
	Text string
}

// Names of diagnoses.
const (
	DiagnosedPlatform      = "exec format error"
	DiagnosedImagePull     = "image pull"
	DiagnosedCrashLoop     = "crash loop"
	DiagnosedConfig        = "container config"
	DiagnosedQuota         = "quota"
	DiagnosedDeadlock      = "quota deadlock"
	DiagnosedPriorityClass = "priority class"
	DiagnosedLimitRange    = "limit range"
	DiagnosedPodSecurity   = "pod security"
	DiagnosedAccount       = "service account"
	DiagnosedWebhook       = "webhook"
	DiagnosedUnschedulable = "unschedulable"
)

// diagnose names the causes that the evidence shows, each once.
func diagnose(e Evidence) []Diagnosis {
	var all []Diagnosis
	add := func(d Diagnosis, ok bool) {
		if ok && !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	for _, p := range e.Pods {
		add(diagnosePlatform(p))
		for _, c := range p.Containers {
			add(diagnosePull(c))
			if !p.says("exec format error") {
				add(diagnoseCrash(p, c))
			}
			add(diagnoseConfig(c))
		}
		add(diagnoseScheduling(p))
	}
	for _, text := range e.refusals() {
		add(diagnoseRefusal(text))
	}
	return all
}

// refusals are the texts about pods that were not made: events, and conditions of ReplicaSets among the notes.
func (e Evidence) refusals() []string {
	var all []string
	for _, x := range e.Owners {
		all = append(all, x.Message)
	}
	return append(all, e.Notes...)
}

// says looks for a text in the reasons, messages, events and the log of a pod.
func (p PodEvidence) says(text string) bool {
	for _, c := range p.Containers {
		if strings.Contains(c.State, text) || strings.Contains(c.Message, text) || strings.Contains(c.Last, text) {
			return true
		}
	}
	for _, x := range p.Events {
		if strings.Contains(x.Reason, text) || strings.Contains(x.Message, text) {
			return true
		}
	}
	return slices.ContainsFunc(p.Log, func(line string) bool { return strings.Contains(line, text) })
}

// tagPlatform finds the platform that a tag ends in: "…:0a1b2c-linux-arm64" or "…-arm64".
var tagPlatform = regexp.MustCompile(`:[^/]*?-((?:linux-)?(?:amd64|arm64|arm|386|s390x|ppc64le|riscv64))$`)

func diagnosePlatform(p PodEvidence) (Diagnosis, bool) {
	if !p.says("exec format error") {
		return Diagnosis{}, false
	}
	image := ""
	for _, c := range p.Containers {
		if image == "" || !c.Ready && !c.finished && c.State != "" {
			image = c.Image
			if !c.Ready && !c.finished && c.State != "" {
				break
			}
		}
	}
	built := "its tag names no platform"
	if m := tagPlatform.FindStringSubmatch(image); m != nil {
		built = "its tag names " + strings.Replace(m[1], "-", "/", 1)
	}
	node := "its node"
	if p.Node != "" {
		node = "node " + p.Node
		if p.Arch != "" {
			node += " is " + p.Arch
		}
	}
	return Diagnosis{DiagnosedPlatform, fmt.Sprintf("exec format error: the image was built for another platform than the node's: %s (%s), and %s. Re-run with --force, or set `platforms` in jr2.config.ts.", image, built, node)}, true
}

func diagnosePull(c ContainerEvidence) (Diagnosis, bool) {
	if c.State != "ImagePullBackOff" && c.State != "ErrImagePull" {
		return Diagnosis{}, false
	}
	where, advice := "Docker Hub, because its first path segment is no registry host", "it was not delivered to the nodes: re-run with --force"
	if host, ok := registryHost(c.Image); ok {
		where, advice = host, "check that it was pushed, the pull credentials, the network and any mirror"
	} else if strings.Contains(c.Image, "/") {
		advice = "check that it was pushed, the pull credentials, the network and any mirror; or, when it was to be delivered to the nodes, re-run with --force"
	}
	return Diagnosis{DiagnosedImagePull, fmt.Sprintf("image pull: %s can't be pulled; it resolves to %s. %s.", c.Image, where, strings.ToUpper(advice[:1])+advice[1:])}, true
}

// registryHost returns the registry of a ref. The first path segment is one when it has a dot or a colon or is "localhost", and only
// when the ref has a slash.
func registryHost(ref string) (string, bool) {
	first, _, slash := strings.Cut(ref, "/")
	if slash && (strings.ContainsAny(first, ".:") || first == "localhost") {
		return first, true
	}
	return "", false
}

func diagnoseCrash(p PodEvidence, c ContainerEvidence) (Diagnosis, bool) {
	if c.State != "CrashLoopBackOff" {
		return Diagnosis{}, false
	}
	text := fmt.Sprintf("crash loop: container %s of pod %s starts and exits", c.Name, p.Name)
	if len(p.Log) > 0 && p.LogOf == c.Name {
		return Diagnosis{DiagnosedCrashLoop, text + "; the end of its log, above, is the reason."}, true
	}
	return Diagnosis{DiagnosedCrashLoop, text + fmt.Sprintf(" without a log here; read that of its last run: kubectl logs %s -c %s --previous", p.Name, c.Name)}, true
}

var missingObject = regexp.MustCompile(`(?i)(secret|configmap) "([^"]+)" not found`)

func diagnoseConfig(c ContainerEvidence) (Diagnosis, bool) {
	if c.State != "CreateContainerConfigError" {
		return Diagnosis{}, false
	}
	if m := missingObject.FindStringSubmatch(c.Message); m != nil {
		kind := map[string]string{"secret": "Secret", "configmap": "ConfigMap"}[strings.ToLower(m[1])]
		return Diagnosis{DiagnosedConfig, fmt.Sprintf("container config: %s %q does not exist, and container %s needs it.", kind, m[2], c.Name)}, true
	}
	return Diagnosis{DiagnosedConfig, fmt.Sprintf("container config: what container %s refers to does not exist.", c.Name)}, true
}

func diagnoseScheduling(p PodEvidence) (Diagnosis, bool) {
	if p.Node != "" || !strings.HasPrefix(p.Scheduling, "Unschedulable") {
		return Diagnosis{}, false
	}
	return Diagnosis{DiagnosedUnschedulable, fmt.Sprintf("unschedulable: no node takes pod %s now; the scheduler's words are above.", p.Name)}, true
}

var (
	priorityClassName = regexp.MustCompile(`no PriorityClass with name (\S+) was found`)
	limitRange        = regexp.MustCompile(`must be less than or equal to \S+ limit|(maximum|minimum) \S+ usage per (Container|Pod)|max limit to request ratio`)
	webhookName       = regexp.MustCompile(`failed calling webhook "?([^":]+)`)
)

// diagnoseRefusal names why no pod was made, by the table that classifies refusals everywhere.
func diagnoseRefusal(text string) (Diagnosis, bool) {
	if limitRange.MatchString(text) {
		return Diagnosis{DiagnosedLimitRange, "limit range: a default or a maximum of a LimitRange in the namespace contradicts what the pods state (kubectl get limitrange -o yaml shows it); raise it, or take it away."}, true
	}
	switch classifyRefusal(text) {
	case ClassQuotaWait, ClassQuotaNever:
		if q, ok := parseQuota(text); ok && classifyQuota(text) == ClassQuotaWait {
			return Diagnosis{DiagnosedQuota, fmt.Sprintf("quota: %s is full now; the pods come when others leave, or when it is raised.", q.Quota)}, true
		} else if ok {
			return Diagnosis{DiagnosedQuota, fmt.Sprintf("quota: one pod needs more than %s allows in total; raise it.", q.Quota)}, true
		}
		return Diagnosis{DiagnosedQuota, "quota: the namespace's quota refuses the pods."}, true
	case ClassQuotaUnspecified:
		return Diagnosis{DiagnosedQuota, "quota: it wants requests or limits that the containers do not state; a LimitRange with defaults, or a quota without those resources, lets them in."}, true
	case ClassPriorityClass:
		if m := priorityClassName.FindStringSubmatch(text); m != nil {
			return Diagnosis{DiagnosedPriorityClass, fmt.Sprintf("priority class: the cluster has no PriorityClass %q; create it, or name another in `priorityClasses`.", strings.Trim(m[1], `",`))}, true
		}
	case ClassPodSecurity:
		return Diagnosis{DiagnosedPodSecurity, "pod security: the level that the namespace enforces refuses the pods; the fields are named above. Pods that mount a hostPath need the level privileged: label the namespace pod-security.kubernetes.io/enforce=privileged, or give another namespace."}, true
	case ClassServiceAccount:
		return Diagnosis{DiagnosedAccount, "service account: the account that the pods name does not exist."}, true
	case ClassWebhookUnready:
		if m := webhookName.FindStringSubmatch(text); m != nil {
			return Diagnosis{DiagnosedWebhook, fmt.Sprintf("webhook: %s must answer before any pod is made, and can't be reached.", strings.TrimSpace(m[1]))}, true
		}
	}
	return Diagnosis{}, false
}
