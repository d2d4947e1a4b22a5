package preflight_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/preflight"
)

const (
	safeContainer = `image: "` + pinned + `", securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}`
	safePod       = `securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}, `
	enforce       = "pod-security.kubernetes.io/enforce"
)

// workloadIn is workloadYAML in another namespace than jarvis.
func workloadIn(namespace, kind, name, spec, podSpec string) string {
	return strings.ReplaceAll(workloadYAML(kind, name, spec, podSpec), "namespace: jarvis", "namespace: "+namespace)
}

func namespaceYAML(name, labels string) string {
	return fmt.Sprintf("---\n{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s}}}\n", name, labels)
}

// TestA09PodSecurity asks a real API server about the pods that workloads will make.
func TestA09PodSecurity(t *testing.T) {
	t.Parallel()
	cluster := sharedCluster(t)
	client := clientFor(t, cluster.Config())
	check := admissionChecker{client}
	makeNamespace(t, client, "restricted", map[string]string{enforce: "restricted", enforce + "-version": "v1.34"})
	t.Run("F06", func(t *testing.T) { testF06(t, check) })
	t.Run("every kind", func(t *testing.T) { testEveryKind(t, check) })
	t.Run("a level that arrives", func(t *testing.T) { testLevelArrives(t, check) })
	t.Run("what is missing", func(t *testing.T) { testMissing(t, check) })
	t.Run("quota", func(t *testing.T) { testQuota(t, check) })
	t.Run("limits", func(t *testing.T) { testLimits(t, check) })
	t.Run("a policy", func(t *testing.T) { testPolicy(t, check) })
	t.Run("nobody may ask", func(t *testing.T) {
		config, err := cluster.ConfigFor("ana")
		must(t, err)
		few := admissionChecker{clientFor(t, config)}
		two := workloadIn("few-rights", "Deployment", "a", "", "{containers: [{name: a, image: a}]}") + workloadIn("few-rights", "Deployment", "b", "", "{containers: [{name: a, image: a}]}")
		says(t, few.findings(t, two, preflight.SetFacts{}), "note not-looked-at Namespace few-rights: cannot create resource \"pods\"")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		says(t, preflight.Admission(ctx, manifests(t, two), preflight.SetFacts{DryRun: check.pods}), "note not-looked-at Namespace few-rights: context canceled")
	})
	for _, name := range []string{"restricted", "missing", "quota", "limits", "policy"} {
		pods, err := client.CoreV1().Pods(name).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		if len(pods.Items) > 0 {
			t.Errorf("the checks left %d pods in %s", len(pods.Items), name)
		}
	}
}

type admissionChecker struct{ client kubernetes.Interface }

func (c admissionChecker) pods(namespace string) preflight.PodCreator {
	return c.client.CoreV1().Pods(namespace)
}

// findings checks a set with what the cluster holds, but for what the facts already say.
func (c admissionChecker) findings(t *testing.T, text string, facts preflight.SetFacts) []preflight.Finding {
	t.Helper()
	facts.DryRun = c.pods
	return preflight.Admission(t.Context(), manifests(t, text), facts)
}

// live are the namespaces of the cluster.
func (c admissionChecker) live(t *testing.T) map[string]*corev1.Namespace {
	t.Helper()
	list, err := c.client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	all := map[string]*corev1.Namespace{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all
}

// testF06: the init container alone is at fault, and the server names it and the fields.
func testF06(t *testing.T, c admissionChecker) {
	pod := "{" + safePod + "initContainers: [{name: dist, image: a}], containers: [{name: api, " + safeContainer + "}]}"
	says(t, c.findings(t, workloadIn("restricted", "Deployment", "api", "", pod), preflight.SetFacts{}),
		`refuse pod-security Deployment restricted/api: its pod template violates PodSecurity "restricted:v1.34": allowPrivilegeEscalation != false (container "dist" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "dist"`)
	good := strings.Replace(pod, "image: a", safeContainer, 1)
	says(t, c.findings(t, workloadIn("restricted", "Deployment", "api", "", good), preflight.SetFacts{}))
	says(t, c.findings(t, workloadIn("restricted", "Deployment", "api", "", "{containers: [{name: api, image: a, ports: [{containerPort: 99999999}]}]}"), preflight.SetFacts{}),
		"refuse pod-refused Deployment restricted/api: spec.containers[0].ports[0].containerPort: Invalid value")
}

// testEveryKind: each is checked by a pod as its controller makes it; a StatefulSet's has the volumes of its claim templates.
func testEveryKind(t *testing.T, c admissionChecker) {
	bad, good := "{containers: [{name: a, image: a}]}", "{"+safePod+"containers: [{name: a, "+safeContainer+", volumeMounts: [{name: data, mountPath: /data}]}]}"
	claims := "serviceName: s, volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}]"
	says(t, c.findings(t, workloadIn("restricted", "StatefulSet", "s", claims, good), preflight.SetFacts{}))
	cron := "---\n{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: restricted, name: c}, spec: {jobTemplate: {spec: {template: {spec: " + bad + "}}}}}\n"
	pod := "---\n{apiVersion: v1, kind: Pod, metadata: {namespace: restricted, name: p}, spec: " + bad + "}\n"
	text := workloadIn("restricted", "DaemonSet", "d", "", bad) + workloadIn("restricted", "Job", "j", "", strings.Replace(bad, "{", "{restartPolicy: Never, ", 1)) + cron + pod
	says(t, c.findings(t, text, preflight.SetFacts{}), "refuse pod-security DaemonSet restricted/d", "refuse pod-security Job restricted/j",
		"refuse pod-security CronJob restricted/c", "refuse pod-security Pod restricted/p")
}

// testLevelArrives: the living namespace cannot answer for a level that the set brings.
func testLevelArrives(t *testing.T, c admissionChecker) {
	makeNamespace(t, c.client, "open", nil)
	live := c.live(t)
	bad, good := "{containers: [{name: a, image: a}]}", "{"+safePod+"containers: [{name: a, "+safeContainer+"}]}"
	label := enforce + ": restricted, " + enforce + "-version: v1.34"

	says(t, c.findings(t, namespaceYAML("new", label)+workloadIn("new", "Deployment", "api", "", bad), preflight.SetFacts{Namespaces: live}),
		`refuse pod-security Deployment new/api: violates PodSecurity "restricted:v1.34": allowPrivilegeEscalation != false (container "a" must set`)
	says(t, c.findings(t, namespaceYAML("new", "")+workloadIn("new", "Deployment", "api", "", bad), preflight.SetFacts{Namespaces: live}))
	says(t, c.findings(t, namespaceYAML("new", label)+workloadIn("new", "Deployment", "api", "", good), preflight.SetFacts{Namespaces: live}))
	// Nobody read the namespaces: the label will hold either way, and that the server knows no such namespace is no news.
	says(t, c.findings(t, namespaceYAML("new", label)+workloadIn("new", "Deployment", "api", "", bad), preflight.SetFacts{}),
		"refuse pod-security Deployment new/api", "note not-looked-at Namespace new: the running pods were not read")
	says(t, c.findings(t, workloadIn("nowhere", "Deployment", "api", "", good), preflight.SetFacts{Namespaces: live}),
		`warn pod-needs-missing Deployment nowhere/api: the namespace nowhere, which neither the set nor the cluster has`)
	says(t, c.findings(t, namespaceYAML("new", enforce+": restrictd"), preflight.SetFacts{Namespaces: live}), "refuse pod-security-label Namespace new: must be one of privileged, baseline, restricted")

	says(t, preflight.Admission(t.Context(), manifests(t, namespaceYAML("new", enforce+": restrictd")), preflight.SetFacts{Pods: []corev1.Pod{}}), "refuse pod-security-label Namespace new")

	// On a living namespace.
	own, other, done := running("open", "api-1", "a"), running("open", "other-1", "a"), running("open", "done-1", "a")
	own.Labels, done.Status.Phase = map[string]string{"app": "api"}, corev1.PodSucceeded
	facts := preflight.SetFacts{Namespaces: live, Pods: []corev1.Pod{own, other, done, running("elsewhere", "x", "a")}}
	says(t, c.findings(t, namespaceYAML("open", label)+workloadIn("open", "Deployment", "api", "", good), facts),
		`warn pod-security-running Namespace open: the level restricted:v1.34 that the set brings is violated by 1 running pod (other-1): what runs survives, and what replaces it will be refused`)
	says(t, c.findings(t, namespaceYAML("open", label)+workloadIn("open", "Deployment", "api", "", bad), facts),
		"refuse pod-security Deployment open/api", "warn pod-security-running Namespace open: is violated by 2 running pods (api-1, other-1)")
	facts.Pods = nil
	says(t, c.findings(t, namespaceYAML("open", label)+workloadIn("open", "Deployment", "api", "", good), facts), "note not-looked-at Namespace open: the running pods were not read")
	// A level that the set takes back is asked of nobody.
	says(t, c.findings(t, namespaceYAML("restricted", enforce+": privileged")+workloadIn("restricted", "Deployment", "api", "", bad), facts))
	// And one that stays is the server's to judge.
	says(t, c.findings(t, namespaceYAML("restricted", "team: core")+workloadIn("restricted", "Deployment", "api", "", bad), facts), "refuse pod-security Deployment restricted/api")
	if err := preflight.Refused(c.findings(t, workloadIn("restricted", "Deployment", "api", "", bad), facts)); err == nil {
		t.Error("nothing refuses")
	}
}

// testMissing: what a pod needs and nobody has is told in the server's words; what the set brings is not.
func testMissing(t *testing.T, c admissionChecker) {
	makeNamespace(t, c.client, "missing", map[string]string{enforce: "baseline"})
	pod := `{serviceAccountName: robot, priorityClassName: high, runtimeClassName: kata, hostNetwork: true, containers: [{name: a, image: a}]}`
	says(t, c.findings(t, workloadIn("missing", "Deployment", "api", "", pod), preflight.SetFacts{Namespaces: c.live(t)}),
		`warn pod-needs-missing Deployment missing/api: need the service account robot, which neither the set nor the cluster has: error looking up service account missing/robot`,
		`warn pod-needs-missing Deployment missing/api: need the priority class high`,
		`warn pod-needs-missing Deployment missing/api: need the RuntimeClass kata`,
		`refuse pod-security Deployment missing/api: host namespaces (hostNetwork=true)`)
	brought := "---\n{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: missing, name: robot}}\n---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 5}\n" +
		"---\n{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: kata}, handler: kata}\n"
	says(t, c.findings(t, brought+workloadIn("missing", "Deployment", "api", "", strings.Replace(pod, "hostNetwork: true, ", "", 1)), preflight.SetFacts{}))
	_, err := c.client.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "there"}, Value: 5}, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "the priority class counts", func() bool {
		return len(c.findings(t, workloadIn("missing", "Job", "j", "", "{restartPolicy: Never, priorityClassName: there, containers: [{name: a, image: a}]}"), preflight.SetFacts{})) == 0
	})
}

// testQuota: never, not yet, and a rollout that waits for its own pods.
func testQuota(t *testing.T, c admissionChecker) {
	makeNamespace(t, c.client, "quota", nil)
	makeQuota(t, c.client, "quota", corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("750m")})
	pod := func(first, second string) string {
		return workloadIn("quota", "Deployment", "api", "", "{initContainers: ["+first+", "+second+"], containers: [{name: app, image: a, resources: {requests: {cpu: 400m}}}]}")
	}
	proxy, migrate := "{name: proxy, image: a, restartPolicy: Always, resources: {requests: {cpu: 300m}}}", "{name: migrate, image: a, resources: {requests: {cpu: 500m}}}"
	says(t, c.findings(t, pod(proxy, migrate), preflight.SetFacts{}), "refuse pod-quota-never Deployment quota/api: exceeded quota: quota, requested: requests.cpu=800m, used: requests.cpu=0, limited: requests.cpu=750m — lower or state the resources")
	says(t, c.findings(t, pod(migrate, proxy), preflight.SetFacts{}))
	says(t, c.findings(t, workloadIn("quota", "Deployment", "api", "", "{containers: [{name: app, image: a}]}"), preflight.SetFacts{}),
		"refuse pod-quota-never Deployment quota/api: failed quota: quota: must specify requests.cpu for: app")

	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "api-old", Labels: map[string]string{"app": "api"}}, Spec: running("", "", "", "cpu=600m").Spec}
	_, err := c.client.CoreV1().Pods("quota").Create(t.Context(), old, metav1.CreateOptions{})
	must(t, err)
	pods, err := c.client.CoreV1().Pods("quota").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	again := func(strategy string) string {
		return workloadIn("quota", "Deployment", "api", strategy, "{containers: [{name: app, image: a, resources: {requests: {cpu: 600m}}}]}")
	}
	says(t, c.findings(t, again(""), preflight.SetFacts{Pods: pods.Items}), "warn pod-quota-full Deployment quota/api: a rollout cannot end: it makes a new pod before it stops an old one")
	says(t, c.findings(t, again("strategy: {type: Recreate}"), preflight.SetFacts{Pods: pods.Items}), "note pod-quota-full Deployment quota/api: no room for one more of its pods beside those that run: exceeded quota: quota")
	says(t, c.findings(t, again(""), preflight.SetFacts{}), "warn pod-quota-full Deployment quota/api: its pods will wait for room")
	must(t, c.client.CoreV1().Pods("quota").Delete(t.Context(), "api-old", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
}

// testLimits: a LimitRange refuses, or fills in what the nodes are then asked for.
func testLimits(t *testing.T, c admissionChecker) {
	makeNamespace(t, c.client, "limits", nil)
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "limits"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Max: amountsOf("cpu=2"), Default: amountsOf("cpu=1500m"), DefaultRequest: amountsOf("cpu=1500m"),
	}}}}
	_, err := c.client.CoreV1().LimitRanges("limits").Create(t.Context(), limits, metav1.CreateOptions{})
	must(t, err)
	large := workloadIn("limits", "Deployment", "api", "", "{containers: [{name: a, image: a, resources: {limits: {cpu: 3}}}]}")
	eventually(t, "the LimitRange counts", func() bool { return len(c.findings(t, large, preflight.SetFacts{})) > 0 })
	says(t, c.findings(t, large, preflight.SetFacts{}), "refuse pod-refused Deployment limits/api: maximum cpu usage per Container is 2, but limit is 3 — correct the pod template")
	// F21: what a LimitRange fills in is in no manifest.
	unstated := workloadIn("limits", "Deployment", "api", "", "{containers: [{name: a, image: \""+pinned+"\"}]}")
	facts := preflight.SetFacts{Nodes: []corev1.Node{with(node("a"), "cpu=1")}, Pods: []corev1.Pod{}, DryRun: c.pods, Images: registry, Webhooks: webhooksOf(c.client)}
	says(t, preflight.Set(t.Context(), manifests(t, unstated), facts), "warn unschedulable Deployment limits/api: a: is too small: cpu 1 allocatable of 1500m wanted")
	// The seconds that every pod may stay on a lost node are no permission to be placed there.
	facts.Nodes = []corev1.Node{node("lost", "node.kubernetes.io/not-ready:NoExecute")}
	says(t, preflight.Set(t.Context(), manifests(t, unstated), facts), "note not-schedulable-yet Deployment limits/api: lost")
}

// testPolicy: what may answer to who asks only warns.
func testPolicy(t *testing.T, c admissionChecker) {
	makeNamespace(t, c.client, "policy", map[string]string{"policed": "yes"})
	fail, policed := admissionv1.Fail, &metav1.LabelSelector{MatchLabels: map[string]string{"policed": "yes"}}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "teams"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fail,
		MatchConstraints: &admissionv1.MatchResources{NamespaceSelector: policed, ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: "has(object.metadata.labels) && 'team' in object.metadata.labels", Message: "every pod names its team"}},
	}}
	_, err := c.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{})
	must(t, err)
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "teams"}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: "teams", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	_, err = c.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	must(t, err)
	text := workloadIn("policy", "Deployment", "api", "", "{containers: [{name: a, image: a}]}")
	eventually(t, "the policy counts", func() bool { return len(c.findings(t, text, preflight.SetFacts{})) > 0 })
	says(t, c.findings(t, text, preflight.SetFacts{}), "warn pod-refused Deployment policy/api: the cluster would not let its pods in: ValidatingAdmissionPolicy 'teams' with binding 'teams' denied request: every pod names its team")
}
