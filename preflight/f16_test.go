package preflight_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/preflight"
)

// asking is the spec of a pod that asks for these: "{requests: {cpu: 600m}}".
func asking(resources string) string {
	return "{containers: [{name: app, image: a, resources: " + resources + "}]}"
}

// TestF16QuotaOfASet is case F16 before the first write, by a real server: what never fits refuses, what only does not fit now warns, and a rollout that
// waits for its own old pod is named as that.
func TestF16QuotaOfASet(t *testing.T) {
	t.Parallel()
	client := clientFor(t, sharedCluster(t).Config())
	check := admissionChecker{client}
	makeNamespace(t, client, "f16", nil)
	makeQuota(t, client, "f16", corev1.ResourceList{"requests.cpu": resource.MustParse("1")})
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "api-old", Labels: map[string]string{"app": "api"}}, Spec: running("", "", "", "cpu=600m").Spec}
	_, err := client.CoreV1().Pods("f16").Create(t.Context(), old, metav1.CreateOptions{})
	must(t, err)
	pods, err := client.CoreV1().Pods("f16").List(t.Context(), metav1.ListOptions{})
	must(t, err)

	makeNamespace(t, client, "f16-memory", nil)
	makeQuota(t, client, "f16-memory", corev1.ResourceList{"limits.memory": resource.MustParse("1Gi"), corev1.ResourcePods: resource.MustParse("5")})
	makeNamespace(t, client, "f16-limits", nil)
	filled := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "filled"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, DefaultRequest: amountsOf("cpu=600m"),
	}}}}
	_, err = client.CoreV1().LimitRanges("f16-limits").Create(t.Context(), filled, metav1.CreateOptions{})
	must(t, err)
	unstated := workloadIn("f16-limits", "Deployment", "api", "", "{containers: [{name: app, image: a}]}")
	makeQuota(t, client, "f16-limits", corev1.ResourceList{"requests.cpu": resource.MustParse("1")})
	eventually(t, "the LimitRange counts", func() bool { return len(check.findings(t, unstated, preflight.SetFacts{})) == 0 })

	const never, full = "refuse pod-quota-never Deployment f16/", "pod-quota-full Deployment f16/"
	used := "exceeded quota: f16, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"a: unstated":   {workloadIn("f16", "Deployment", "web", "", "{containers: [{name: app, image: a}]}"), []string{never + "web: failed quota: f16: must specify requests.cpu for: app — lower or state the resources"}},
		"b: a new pod":  {workloadIn("f16", "Deployment", "web", "", asking("{requests: {cpu: 600m}}")), []string{"warn " + full + "web: its pods will wait for room: " + used}},
		"b: its own":    {workloadIn("f16", "Deployment", "api", "replicas: 1", asking("{requests: {cpu: 600m}}")), []string{"warn " + full + "api: a rollout cannot end: it makes a new pod before it stops an old one (1 replica, none may be unavailable), and the old ones hold the room: " + used + " — set maxSurge: 0 and maxUnavailable: 1, or raise the quota"}},
		"c: too large":  {workloadIn("f16", "Deployment", "web", "", asking("{requests: {cpu: 2}}")), []string{never + "web: exceeded quota: f16, requested: requests.cpu=2, used: requests.cpu=600m, limited: requests.cpu=1"}},
		"e: filled in":  {unstated, nil},
		"room is left":  {workloadIn("f16", "Deployment", "web", "", asking("{requests: {cpu: 400m}}")), nil},
		"another kind":  {workloadIn("f16", "Job", "j", "", "{restartPolicy: Never, "+asking("{requests: {cpu: 2}}")[1:]), []string{"refuse pod-quota-never Job f16/j: limited: requests.cpu=1"}},
		"by a CronJob":  {"---\n{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: f16, name: c}, spec: {jobTemplate: {spec: {template: {spec: " + asking("{requests: {cpu: 600m}}") + "}}}}}\n", []string{"warn pod-quota-full CronJob f16/c: " + used}},
		"other words":   {workloadIn("f16-memory", "Deployment", "web", "", asking("{requests: {cpu: 1}}")), []string{"refuse pod-quota-never Deployment f16-memory/web: failed quota: f16-memory: must specify limits.memory for: app"}},
		"another sum":   {workloadIn("f16-memory", "Deployment", "web", "", asking("{limits: {memory: 1025Mi}}")), []string{"refuse pod-quota-never Deployment f16-memory/web: requested: limits.memory=1025Mi, used: limits.memory=0, limited: limits.memory=1Gi"}},
		"none may stop": {workloadIn("f16", "Deployment", "api", "replicas: 1, strategy: {rollingUpdate: {maxUnavailable: 0}}", asking("{requests: {cpu: 600m}}")), []string{"warn " + full + "api: a rollout cannot end"}},
		"one may stop":  {workloadIn("f16", "Deployment", "api", "replicas: 1, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}", asking("{requests: {cpu: 600m}}")), []string{"note " + full + "api: there is no room for one more of its pods beside those that run"}},
		"all may stop":  {workloadIn("f16", "Deployment", "api", "strategy: {type: Recreate}", asking("{requests: {cpu: 600m}}")), []string{"note " + full + "api: there is no room"}},
	} {
		t.Run(name, func(t *testing.T) {
			says(t, check.findings(t, test.text, preflight.SetFacts{Pods: pods.Items}), test.want...)
		})
	}
	must(t, client.CoreV1().Pods("f16").Delete(t.Context(), "api-old", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
}

// TestF02F03QuotaOfASet: a quota counts a sidecar beside what comes after it, and the overhead of a RuntimeClass, which no manifest shows.
func TestF02F03QuotaOfASet(t *testing.T) {
	t.Parallel()
	client := clientFor(t, sharedCluster(t).Config())
	check := admissionChecker{client}
	for name, amount := range map[string]string{"f02": "750m", "f03": "2", "f03-roomy": "4"} {
		makeNamespace(t, client, name, nil)
		makeQuota(t, client, name, corev1.ResourceList{"requests.cpu": resource.MustParse(amount)})
	}
	kata := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "f03-kata"}, Handler: "kata", Overhead: &nodev1.Overhead{PodFixed: amountsOf("cpu=250m", "memory=160Mi")}}
	_, err := client.NodeV1().RuntimeClasses().Create(t.Context(), kata, metav1.CreateOptions{})
	must(t, err)
	sandbox := "{runtimeClassName: f03-kata, containers: [{name: a, image: a, resources: {limits: {cpu: 2, memory: 2Gi}}}]}"
	eventually(t, "the RuntimeClass counts", func() bool {
		return len(check.findings(t, workloadIn("f03-roomy", "Deployment", "sandbox", "", sandbox), preflight.SetFacts{})) == 0
	})
	c := func(name, cpu, more string) string {
		return "{name: " + name + ", image: a, resources: {requests: {cpu: " + cpu + "}}" + more + "}"
	}
	const always = ", restartPolicy: Always"
	pod := func(more string, inits ...string) string {
		text := "{" + more + "initContainers: ["
		for _, init := range inits {
			text += init + ", "
		}
		return text + "], containers: [" + c("app", "400m", "") + "]}"
	}
	for name, test := range map[string]struct {
		namespace, pod string
		want           []string
	}{
		"F02: the sidecar first":           {"f02", pod("", c("proxy", "300m", always), c("migrate", "500m", "")), []string{"refuse pod-quota-never Deployment f02/sandbox: requested: requests.cpu=800m, used: requests.cpu=0, limited: requests.cpu=750m"}},
		"F02: the sidecar last":            {"f02", pod("", c("migrate", "500m", ""), c("proxy", "300m", always)), nil},
		"F02: two sidecars":                {"f02", pod("", c("proxy", "200m", always), c("log", "200m", always)), []string{"refuse pod-quota-never Deployment f02/sandbox: requested: requests.cpu=800m"}},
		"F02: one between two":             {"f02", pod("", c("migrate", "500m", ""), c("proxy", "100m", always), c("check", "700m", "")), []string{"refuse pod-quota-never Deployment f02/sandbox: requested: requests.cpu=800m"}},
		"F02: requests of the whole pod":   {"f02", pod("resources: {requests: {cpu: 700m}}, ", c("proxy", "300m", always)), nil},
		"F03: the overhead is over":        {"f03", sandbox, []string{"refuse pod-quota-never Deployment f03/sandbox: requested: requests.cpu=2250m, used: requests.cpu=0, limited: requests.cpu=2"}},
		"F03: the case":                    {"f03-roomy", sandbox, nil},
		"F03: with a sidecar":              {"f03", pod("runtimeClassName: f03-kata, ", c("proxy", "1400m", always)), []string{"refuse pod-quota-never Deployment f03/sandbox: requested: requests.cpu=2050m"}},
		"F02, F03: overhead and a sidecar": {"f03", pod("runtimeClassName: f03-kata, ", c("proxy", "300m", always), c("migrate", "1500m", "")), []string{"refuse pod-quota-never Deployment f03/sandbox: requested: requests.cpu=2050m"}},
	} {
		t.Run(name, func(t *testing.T) {
			says(t, check.findings(t, workloadIn(test.namespace, "Deployment", "sandbox", "", test.pod), preflight.SetFacts{}), test.want...)
		})
	}
}
