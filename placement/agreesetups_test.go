package placement_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement"
)

// A setup is a place of its own in a cluster: nodes of one pool, and a namespace. Setups don't see each other.
type setup struct {
	namespace string
	nodes     []devcluster.Node
	// running are there before; daemons come to all the nodes after the room was counted.
	running []*corev1.Pod
	daemons *appsv1.DaemonSet
	quotas  []*corev1.ResourceQuota
	ranged  *corev1.LimitRange
	pod     *corev1.Pod
	// objects says that a Service and a Secret are made beside each pod.
	objects bool
	// even says that where a pod lands decides where the next may.
	even bool
}

func madeUpSetup(c chooser, number int) *setup {
	s := &setup{namespace: fmt.Sprintf("setup-%d", number), objects: c.sometimes(0.3)}
	pool := map[string]string{"pool": s.namespace}
	taint := corev1.Taint{Key: "pool", Value: s.namespace, Effect: corev1.TaintEffectNoSchedule}
	for i := range 1 + c.IntN(3) {
		node := devcluster.Node{Name: fmt.Sprintf("%s-%d", s.namespace, i), Labels: map[string]string{"pool": s.namespace, "zone": c.pick("a", "b")},
			Unschedulable: c.sometimes(0.08),
			Allocatable:   list(c.pick("cpu=2 memory=4Gi", "cpu=4 memory=6Gi", "cpu=8 memory=16Gi", "cpu=3999m memory=8589934591") + " ephemeral-storage=" + c.pick("5Gi", "40Gi") + " pods=" + c.pick("3", "5", "8"))}
		if c.sometimes(0.25) {
			node.Taints = []corev1.Taint{taint}
		}
		s.nodes = append(s.nodes, node)
	}
	s.pod = madeUpRoom(c, s, pool, taint)
	if c.sometimes(0.4) {
		s.ranged = &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "lr"}, Spec: corev1.LimitRangeSpec{Limits: madeUpBounds(c)}}
	}
	for i := range c.IntN(4) {
		other := asks(fmt.Sprintf("%s-runs-%d", s.namespace, i), c.pick("cpu=300m memory=512Mi", "cpu=1 memory=1Gi"), as("app"), selecting(pool), tolerating(corev1.Toleration{Operator: "Exists"}))
		other.Spec.Containers[0].Resources.Limits = list("cpu=1 memory=1Gi")
		if other.Namespace = s.namespace; s.ranged != nil {
			other.Namespace = "team"
		}
		s.running = append(s.running, other)
	}
	if c.sometimes(0.3) {
		labels := map[string]string{"daemons": s.namespace}
		s.daemons = &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: s.namespace, Namespace: "team"}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: asks("", c.pick("cpu=300m memory=600Mi", "cpu=1500m", "memory=3Gi")).Spec}}}
		s.daemons.Spec.Template.Spec.NodeSelector = pool
		s.daemons.Spec.Template.Spec.Containers[0].Image = "example.com/app:1"
	}
	if number%3 > 0 {
		for i := range 1 + c.IntN(2) {
			s.quotas = append(s.quotas, madeUpQuota(c, fmt.Sprintf("q%d", i), s.objects))
		}
	}
	return s
}

// madeUpRoom is the pod of which so many are made.
func madeUpRoom(c chooser, s *setup, pool map[string]string, taint corev1.Taint) *corev1.Pod {
	rules := placement.Rules{NodeSelector: pool}
	if c.sometimes(0.6) {
		rules.Tolerations = []corev1.Toleration{{Key: taint.Key, Value: taint.Value}}
	}
	if c.sometimes(0.5) {
		rules.PriorityClassName = "jr2-sandbox"
	}
	var pod *corev1.Pod
	if c.sometimes(0.6) {
		shares := []placement.Share{{Memory: 1 << 30, CPU: 500}, {Memory: 1 << 30, CPU: 1000, Disk: 1 << 30}, {Memory: 2 << 30, CPU: 1000, Disk: 10 << 30}, {Memory: 1536 << 20, CPU: 700}}
		pod = placement.SandboxPod(s.namespace, shares[c.IntN(len(shares))], rules)
	} else {
		pod = asking(c.pick("", "cpu=500m", "cpu=700m memory=1Gi", "memory=900M"))
		pod.Namespace = s.namespace
		if c.sometimes(0.4) {
			pod.Spec.Containers[0].Resources.Limits = list("cpu=1 memory=1Gi")
		}
		if c.sometimes(0.3) {
			inits(container("x", "cpu=1"), sidecar("y", "cpu=200m memory=100Mi"))(pod)
		}
		rules.Write(&pod.Spec)
	}
	pod.Labels = map[string]string{"app": "app"}
	if c.sometimes(0.2) {
		class := "kata"
		pod.Spec.RuntimeClassName = &class
	}
	if c.sometimes(0.2) {
		deadline := int64(3600)
		pod.Spec.ActiveDeadlineSeconds = &deadline
	}
	switch {
	case c.sometimes(0.1):
		spreadBy("zone")(pod)
		s.even = true
	case c.sometimes(0.07):
		affinityTo("app", corev1.LabelHostname, true)(pod)
		s.even = true
	case c.sometimes(0.05):
		hostPort(9100)(pod)
	}
	return pod
}

func madeUpBounds(c chooser) []corev1.LimitRangeItem {
	item := func(kind corev1.LimitType, change func(*corev1.LimitRangeItem)) corev1.LimitRangeItem {
		return limitRange(kind, change).Spec.Limits[0]
	}
	all := [][]corev1.LimitRangeItem{
		{item(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) {
			i.DefaultRequest, i.Default = list("cpu=250m memory=256Mi"), list("cpu=500m memory=512Mi")
		})},
		{item(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) { i.Max = list("cpu=1 memory=1Gi") })}, // which is the default then
		{item(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) { i.Min = list("cpu=100m") })},
		{item(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) {
			i.Max, i.Min = list("cpu=4 memory=8Gi"), list("cpu=10m memory=16Mi")
		})},
		{item(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) {
			i.MaxLimitRequestRatio, i.Default, i.DefaultRequest = list("cpu=2"), list("cpu=1"), list("cpu=500m")
		})},
		{item(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) { i.Default = list("ephemeral-storage=2Gi") })},
		{item(corev1.LimitTypePod, func(i *corev1.LimitRangeItem) { i.Max = list("memory=1200Mi") })},
		{item(corev1.LimitTypePod, func(i *corev1.LimitRangeItem) { i.Max, i.Min = list("cpu=1500m"), list("memory=64Mi") }),
			item(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) {
				i.DefaultRequest, i.Default = list("memory=128Mi cpu=100m"), list("memory=256Mi cpu=700m")
			})},
	}
	return all[c.IntN(len(all))]
}

func madeUpQuota(c chooser, name string, objects bool) *corev1.ResourceQuota {
	// Of a quota with a scope, these are the resources that the API server takes.
	scoped := func() string {
		return c.pick("pods="+c.pick("0", "2", "4"), "requests.cpu="+c.pick("1999m", "2", "4"), "limits.cpu="+c.pick("2500m", "5"), "requests.memory="+c.pick("3Gi", "5Gi"),
			"limits.memory="+c.pick("512Mi", "4Gi", "6000M"), "cpu=3", "memory=4Gi")
	}
	hard := func() string {
		return c.pick(scoped(), scoped(), "count/pods="+c.pick("3", "6"), "requests.ephemeral-storage=3Gi", "limits.ephemeral-storage=1Gi")
	}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: list(scoped() + " " + scoped())}}
	scope := corev1.ResourceQuotaScope(c.pick("", "", "", "Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "PriorityClass", "PriorityClass", "PriorityClass", "CrossNamespacePodAffinity"))
	switch scope {
	case "":
		q.Spec.Hard = list(hard() + " " + hard())
		if objects && c.sometimes(0.5) {
			q.Spec.Hard = list(c.pick("services=3", "count/services=2", "secrets=2", "count/secrets=4") + " " + hard())
		}
	case corev1.ResourceQuotaScopePriorityClass:
		operator := corev1.ScopeSelectorOperator(c.pick("In", "NotIn", "Exists", "DoesNotExist"))
		need := corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: operator}
		if operator == corev1.ScopeSelectorOpIn || operator == corev1.ScopeSelectorOpNotIn {
			need.Values = []string{c.pick("jr2-sandbox", "high")}
		}
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{need}}
	case corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		q.Spec.Scopes, q.Spec.Hard = []corev1.ResourceQuotaScope{scope}, list("pods="+c.pick("1", "3"))
	default:
		q.Spec.Scopes = []corev1.ResourceQuotaScope{scope}
	}
	return q
}
