package preflight_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/preflight"
)

func nodes(n int) []corev1.Node {
	all := []corev1.Node{}
	for i := range n {
		all = append(all, node(fmt.Sprintf("n%d", i+1)))
	}
	return all
}

// apartYAML is a workload whose pods must run on different nodes.
func apartYAML(kind, name, spec, term string) string {
	if term == "" {
		term = "topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: " + name + "}}"
	}
	return workloadYAML(kind, name, spec, `{affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{`+term+`}]}}, containers: [{name: a, image: "`+pinned+`"}]}`)
}

func budgetYAML(name, app, rule string) string {
	return fmt.Sprintf("---\n{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: jarvis, name: %s}, spec: {selector: {matchLabels: {app: %s}}, %s}}\n", name, app, rule)
}

// jarvis is the stack of the source document on three nodes: Redis and its sentinels must be apart, three of each.
var jarvis = apartYAML("StatefulSet", "redis", "replicas: 3", "") + apartYAML("StatefulSet", "sentinel", "replicas: 3", "") +
	workloadYAML("Deployment", "api", "replicas: 3", `{containers: [{name: api, image: "git.example.com/api:stable"}]}`) +
	budgetYAML("redis", "redis", "minAvailable: 2") + budgetYAML("sentinel", "sentinel", "maxUnavailable: 1") + budgetYAML("api", "api", "minAvailable: 1")

// TestA10ThreeNodes is the arithmetic of the source document: each of three has its node, a drain leaves one Redis and one sentinel
// Pending, and the budgets let the drain go on.
func TestA10ThreeNodes(t *testing.T) {
	run := func(nodes []corev1.Node) []preflight.Finding {
		return preflight.Drains(manifests(t, jarvis), preflight.SetFacts{Nodes: nodes})
	}
	const pending = "3 replicas must run on different nodes (required anti-affinity) and 3 nodes take them: during a drain one pod stays Pending until its node is back"
	says(t, run(nodes(3)), "note anti-affinity-drain StatefulSet jarvis/redis: "+pending, "note anti-affinity-drain StatefulSet jarvis/sentinel: "+pending)
	says(t, run(nodes(4)))
	says(t, run(nodes(2)),
		"warn anti-affinity StatefulSet jarvis/redis: 3 replicas must run on different nodes (required anti-affinity) and 2 nodes take them, so 1 will stay Pending — add 1 node, or set replicas: 2",
		"warn anti-affinity StatefulSet jarvis/sentinel: so 1 will stay Pending")
	three := nodes(3)
	three[0] = node("cp", controlPlane)
	says(t, run(three), "warn anti-affinity StatefulSet jarvis/redis: 2 nodes take them", "warn anti-affinity StatefulSet jarvis/sentinel")
	three[0] = node("fresh", "node.kubernetes.io/not-ready:NoSchedule") // it will be back
	says(t, run(three), "note anti-affinity-drain StatefulSet jarvis/redis", "note anti-affinity-drain StatefulSet jarvis/sentinel")
}

func TestA10AntiAffinity(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		// 25 % of 3 rounds down to 0 unavailable and up to a surge of 1, for which there is no node.
		"a rollout that cannot begin": {apartYAML("Deployment", "api", "replicas: 3", ""), []string{
			"note anti-affinity-drain Deployment jarvis/api", "warn anti-affinity-rollout Deployment jarvis/api: set maxUnavailable: 1 in its rollingUpdate"}},
		"a rollout that stops one first": {apartYAML("Deployment", "api", "replicas: 3, strategy: {rollingUpdate: {maxUnavailable: 1}}", ""), []string{"note anti-affinity-drain Deployment jarvis/api"}},
		"both zero means one":            {apartYAML("Deployment", "api", "replicas: 3, strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 0}}", ""), []string{"note anti-affinity-drain Deployment jarvis/api"}},
		"recreate":                       {apartYAML("Deployment", "api", "replicas: 3, strategy: {type: Recreate}", ""), []string{"note anti-affinity-drain Deployment jarvis/api"}},
		"apart from its own release alone": {apartYAML("Deployment", "api", "replicas: 3", "topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: api}}, matchLabelKeys: [pod-template-hash]"),
			[]string{"note anti-affinity-drain Deployment jarvis/api"}},
		"by an autoscaler": {apartYAML("StatefulSet", "api", "replicas: 1", "") +
			"---\n{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: jarvis, name: api}, spec: {minReplicas: 4, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: api}}}",
			[]string{"warn anti-affinity StatefulSet jarvis/api: 4 replicas must run on different nodes"}},
		"everywhere":           {apartYAML("StatefulSet", "api", "replicas: 4", "topologyKey: kubernetes.io/hostname, namespaceSelector: {}, labelSelector: {matchLabels: {app: api}}"), []string{"warn anti-affinity StatefulSet jarvis/api"}},
		"from another":         {apartYAML("StatefulSet", "api", "replicas: 4", "topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: other}}"), nil},
		"in another namespace": {apartYAML("StatefulSet", "api", "replicas: 4", "topologyKey: kubernetes.io/hostname, namespaces: [other], labelSelector: {matchLabels: {app: api}}"), nil},
		"by zone":              {apartYAML("StatefulSet", "api", "replicas: 4", "topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: api}}"), nil},
		"no selector":          {apartYAML("StatefulSet", "api", "replicas: 4", "topologyKey: kubernetes.io/hostname"), nil},
		"one":                  {apartYAML("StatefulSet", "api", "", ""), nil},
		"preferred":            {workloadYAML("StatefulSet", "api", "replicas: 9", `{affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname}}]}}, containers: [{name: a, image: a}]}`), nil},
		"a DaemonSet":          {apartYAML("DaemonSet", "api", "", ""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			says(t, preflight.Drains(manifests(t, test.text), preflight.SetFacts{Nodes: nodes(3)}), test.want...)
		})
	}
}

// TestA10DisruptionBudgets: percentages are rounded up, for what must stay and for what may go, as the disruption controller does.
func TestA10DisruptionBudgets(t *testing.T) {
	api := func(replicas int) string {
		return workloadYAML("Deployment", "api", fmt.Sprintf("replicas: %d", replicas), `{containers: [{name: a, image: a}]}`)
	}
	never := func(words string) []string {
		return []string{"warn disruption-never PodDisruptionBudget jarvis/api: " + words}
	}
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"minAvailable 2 of 3":      {api(3) + budgetYAML("api", "api", "minAvailable: 2"), nil},
		"minAvailable 3 of 3":      {api(3) + budgetYAML("api", "api", "minAvailable: 3"), never("minAvailable: 3 of 3 replicas leaves none that may go, so a drain of their nodes never ends — set maxUnavailable: 1 in place of minAvailable: 3")},
		"minAvailable 4 of 3":      {api(3) + budgetYAML("api", "api", "minAvailable: 4"), never("minAvailable: 4 of 3 replicas")},
		"minAvailable 50% of 3":    {api(3) + budgetYAML("api", "api", `minAvailable: "50%"`), nil},
		"minAvailable 67% of 3":    {api(3) + budgetYAML("api", "api", `minAvailable: "67%"`), never("minAvailable: 67% of 3 replicas")},
		"minAvailable 100%":        {api(3) + budgetYAML("api", "api", `minAvailable: "100%"`), never("")},
		"minAvailable 0":           {api(1) + budgetYAML("api", "api", "minAvailable: 0"), nil},
		"maxUnavailable 0":         {api(3) + budgetYAML("api", "api", "maxUnavailable: 0"), never("maxUnavailable: 0 of 3 replicas")},
		"maxUnavailable 0%":        {api(3) + budgetYAML("api", "api", `maxUnavailable: "0%"`), never("")},
		"maxUnavailable 1% of 3":   {api(3) + budgetYAML("api", "api", `maxUnavailable: "1%"`), nil},
		"one replica":              {api(1) + budgetYAML("api", "api", "minAvailable: 1"), never("1 replica leaves none that may go, so a drain of their nodes never ends — set maxUnavailable: 1 in place of minAvailable: 1, and 2 replicas if the service must go on")},
		"one replica that may go":  {api(1) + budgetYAML("api", "api", "maxUnavailable: 1"), nil},
		"no replicas":              {api(0) + budgetYAML("api", "api", "minAvailable: 1"), nil},
		"nothing said":             {api(3) + budgetYAML("api", "api", "unhealthyPodEvictionPolicy: AlwaysAllow"), nil},
		"two workloads together":   {api(1) + workloadYAML("StatefulSet", "api", "replicas: 1", `{containers: [{name: a, image: a}]}`) + budgetYAML("api", "api", "minAvailable: 1"), nil},
		"selects nothing":          {api(3) + budgetYAML("old", "gone", "minAvailable: 3"), []string{"note disruption-matches-nothing PodDisruptionBudget jarvis/old: selects the pods of no workload of this set"}},
		"two budgets for one":      {api(3) + budgetYAML("a", "api", "minAvailable: 1") + budgetYAML("b", "api", "minAvailable: 1"), []string{"warn disruption-overlap PodDisruptionBudget jarvis/b: PodDisruptionBudget jarvis/a and PodDisruptionBudget jarvis/b both select the pods of Deployment jarvis/api"}},
		"a DaemonSet is no matter": {workloadYAML("DaemonSet", "api", "", `{containers: [{name: a, image: a}]}`) + budgetYAML("api", "api", "minAvailable: 1"), nil},
		"every pod of the namespace": {api(3) + "---\n{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: jarvis, name: api}, spec: {selector: {}, maxUnavailable: 0}}",
			never("maxUnavailable: 0 of 3 replicas")},
		"another namespace": {api(3) + "---\n{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: other, name: api}, spec: {selector: {}, maxUnavailable: 0}}",
			[]string{"note disruption-matches-nothing PodDisruptionBudget other/api"}},
	} {
		t.Run(name, func(t *testing.T) {
			says(t, preflight.Drains(manifests(t, test.text), preflight.SetFacts{Nodes: nodes(9)}), test.want...)
		})
	}
}

// TestA10OfASet: the whole set says each thing once.
func TestA10OfASet(t *testing.T) {
	facts := preflight.SetFacts{Nodes: nodes(3), Pods: []corev1.Pod{}, Images: registry, DryRun: func(string) preflight.PodCreator { return admits{} }, Webhooks: (&webhookCluster{}).reader()}
	says(t, preflight.Set(context.Background(), manifests(t, jarvis), facts), "warn image-unpinned Deployment jarvis/api",
		"note anti-affinity-drain StatefulSet jarvis/redis", "note anti-affinity-drain StatefulSet jarvis/sentinel")
}
