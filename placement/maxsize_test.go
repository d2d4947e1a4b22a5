package placement_test

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/placement"
)

// K02's worked example, with the numbers of the document. It does not say what its default sidecars ask for; 3.9 − 0.5 − 2.5 cpu and about
// 14 − 1 − 12.6 Gi are left for them, which is 900m and 400Mi.
func documentsPool() ([]corev1.Node, placement.PoolOptions) {
	return []corev1.Node{machine("sandbox", "cpu=3900m memory=14Gi ephemeral-storage=20Gi")}, placement.PoolOptions{
		DaemonSets: []appsv1.DaemonSet{daemonSet("agents", "cpu=300m memory=512Mi"), daemonSet("logs", "cpu=200m memory=512Mi")},
		Sidecars:   []corev1.Container{container("proxy", "cpu=500m memory=256Mi"), container("mount", "cpu=400m memory=144Mi")},
	}
}

func TestK02WorkedExample(t *testing.T) {
	pool, opts := documentsPool()
	most, ok := placement.MaxSize(pool, opts)
	// 13Gi less 400Mi is 12912Mi, which is 12.609…Gi: it is printed as 12.6 because a number that is rounded up would not fit.
	if want := (placement.Share{CPU: 2500, Memory: 12912 << 20, Disk: 19 << 30}); !ok || most.Share != want {
		t.Errorf("got %+v", most)
	}
	if most.String() != "2.5 CPU, 12.6Gi memory and 19Gi disk" {
		t.Errorf("got %s", most)
	}
	// What the document then offers is within it.
	if _, err := (placement.SizeRange{Max: most.Share}).Resolve(placement.Share{CPU: 2500, Memory: 12 << 30, Disk: 18 << 30}); err != nil {
		t.Error(err)
	}
}

func TestMaxSize(t *testing.T) {
	tolerant := daemonSet("everywhere", "cpu=1", func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{{Operator: "Exists"}} })
	overhead := daemonSet("limits", "")
	overhead.Spec.Template.Spec.Containers[0].Resources.Limits = list("cpu=1 ephemeral-storage=2Gi")
	full := "cpu=8 memory=32Gi ephemeral-storage=100Gi"
	for name, test := range map[string]struct {
		pool []corev1.Node
		opts placement.PoolOptions
		want string
		by   string
	}{
		"alone":                       {pool: []corev1.Node{machine("a", full)}, want: "8 CPU, 32Gi memory and 99Gi disk", by: "a a a"},
		"the smallest node decides":   {pool: []corev1.Node{machine("a", full), machine("b", "cpu=4 memory=8Gi ephemeral-storage=50Gi")}, want: "4 CPU, 8Gi memory and 49Gi disk", by: "b b b"},
		"no node is smallest":         {pool: []corev1.Node{machine("a", "cpu=2 memory=32Gi ephemeral-storage=100Gi"), machine("b", "cpu=4 memory=8Gi ephemeral-storage=50Gi")}, want: "2 CPU, 8Gi memory and 49Gi disk", by: "a b b"},
		"a daemon of the larger node": {pool: []corev1.Node{labeled(machine("a", full), map[string]string{"gpu": "yes"}), machine("b", "cpu=6 memory=32Gi ephemeral-storage=100Gi")}, opts: placement.PoolOptions{DaemonSets: []appsv1.DaemonSet{daemonSet("gpu", "cpu=3", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"gpu": "yes"} })}}, want: "5 CPU, 32Gi memory and 99Gi disk", by: "a a a"},
		"a taint keeps a daemon off":  {pool: []corev1.Node{machine("a", full, "pool=x:NoSchedule")}, opts: placement.PoolOptions{DaemonSets: []appsv1.DaemonSet{daemonSet("off", "cpu=3"), tolerant}}, want: "7 CPU, 32Gi memory and 99Gi disk", by: "a a a"},
		"limits alone are requests":   {pool: []corev1.Node{machine("a", full)}, opts: placement.PoolOptions{DaemonSets: []appsv1.DaemonSet{overhead}}, want: "7 CPU, 32Gi memory and 97Gi disk", by: "a a a"},
		"not below nothing":           {pool: []corev1.Node{machine("a", "cpu=1 memory=1Gi")}, opts: placement.PoolOptions{Sidecars: []corev1.Container{container("s", "cpu=2")}}, want: "0 CPU, 1Gi memory and 0Mi disk", by: "a a a"},
		"one that has not reported":   {pool: []corev1.Node{node("fresh"), machine("a", full)}, want: "8 CPU, 32Gi memory and 99Gi disk", by: "a a a"},
		"cut and never rounded up":    {pool: []corev1.Node{machine("a", "cpu=1999m memory=2047Mi ephemeral-storage=1600Mi")}, want: "1.9 CPU, 1.9Gi memory and 576Mi disk", by: "a a a"},
	} {
		most, ok := placement.MaxSize(test.pool, test.opts)
		if by := fmt.Sprint(most.CPUNode, " ", most.MemoryNode, " ", most.DiskNode); !ok || most.String() != test.want || by != test.by {
			t.Errorf("%s: got %s by %s", name, most, by)
		}
	}
	if _, ok := placement.MaxSize([]corev1.Node{node("fresh")}, placement.PoolOptions{}); ok {
		t.Error("of a node that has not reported nothing is known")
	}
}

func TestSizeRange(t *testing.T) {
	gib := int64(1 << 30)
	ordinary := placement.Share{CPU: 1000, Memory: 2 * gib, Disk: 10 * gib}
	for name, test := range map[string]struct {
		sizes       placement.SizeRange
		asked, want placement.Share
		refused     string
	}{
		"nothing asked":              {sizes: placement.SizeRange{Default: ordinary}, want: ordinary},
		"the maximum is the default": {sizes: placement.SizeRange{Default: ordinary}, asked: placement.Share{CPU: 1001}, want: placement.Share{CPU: 1001, Memory: 2 * gib, Disk: 10 * gib}, refused: "refusing: the Sandbox asks for cpu 1001m, and at most 1 is allowed"},
		"up to the maximum":          {sizes: placement.SizeRange{Default: ordinary, Max: placement.Share{CPU: 2500, Memory: 12 * gib}}, asked: placement.Share{CPU: 2500, Memory: 12 * gib}, want: placement.Share{CPU: 2500, Memory: 12 * gib, Disk: 10 * gib}},
		"over in two":                {sizes: placement.SizeRange{Default: ordinary, Max: placement.Share{CPU: 2500, Memory: 12 * gib}}, asked: placement.Share{CPU: 4000, Memory: 13 * gib}, want: placement.Share{CPU: 4000, Memory: 13 * gib, Disk: 10 * gib}, refused: "refusing: the Sandbox asks for cpu 4, and at most 2500m is allowed; memory 13Gi, and at most 12Gi is allowed"},
		"smaller than the default":   {sizes: placement.SizeRange{Default: ordinary}, asked: placement.Share{CPU: 100}, want: placement.Share{CPU: 100, Memory: 2 * gib, Disk: 10 * gib}},
		"a default over the maximum": {sizes: placement.SizeRange{Default: ordinary, Max: placement.Share{CPU: 500}}, want: ordinary, refused: "refusing: the Sandbox asks for cpu 1, and at most 500m is allowed"},
		"nobody caps":                {asked: placement.Share{CPU: 64000}, want: placement.Share{CPU: 64000}},
	} {
		got, err := test.sizes.Resolve(test.asked)
		text := ""
		if err != nil {
			text = err.Error()
			if over := (*placement.SizeCapError)(nil); !errors.As(err, &over) || over.Asked != got {
				t.Errorf("%s: %#v", name, err)
			}
		}
		if got != test.want || text != test.refused {
			t.Errorf("%s: got %+v %s", name, got, text)
		}
	}
}

func ExampleMaxSize() {
	pool, opts := documentsPool()
	most, _ := placement.MaxSize(pool, opts)
	fmt.Println(most)
	// Output: 2.5 CPU, 12.6Gi memory and 19Gi disk
}

func ExampleSizeRange_Resolve() {
	sizes := placement.SizeRange{Default: placement.Share{CPU: 1000, Memory: 2 << 30}, Max: placement.Share{CPU: 2500, Memory: 12 << 30}}
	_, err := sizes.Resolve(placement.Share{CPU: 4000})
	fmt.Println(err)
	// Output: refusing: the Sandbox asks for cpu 4, and at most 2500m is allowed
}

func TestParseShare(t *testing.T) {
	got, err := placement.ParseShare("2500m", "12.6Gi", "")
	if want := (placement.Share{CPU: 2500, Memory: 13529146983}); err != nil || got != want { // bytes are rounded up
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range [][3]string{{"0", "", ""}, {"", "-1Gi", ""}, {"", "", "much"}} {
		if _, err := placement.ParseShare(bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func ExampleParseShare() {
	share, err := placement.ParseShare("2500m", "12Gi", "18Gi")
	fmt.Println(share, err)
	// Output: 2.5 CPU, 12Gi memory and 18Gi disk <nil>
}

func ExampleKitShare() {
	fmt.Println(placement.KitShare())
	// Output: 1 CPU, 2Gi memory and 10Gi disk
}
