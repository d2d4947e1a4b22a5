package apply_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"jr2.dev/jr2/apply"
)

// demo is a Set with a namespace of its own and one ConfigMap.
func demo(name string) (*apply.Set, error) {
	return apply.NewSet("demo", name,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "conf", Namespace: name}, Data: map[string]string{"a": "1"}})
}

func ExampleApply() {
	ctx := context.Background()
	set, err := demo("example-apply")
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		out, err := apply.Apply(ctx, shared.Config(), set, apply.Options{Prune: true})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out.Count(apply.Created), "created,", out.Count(apply.Unchanged), "unchanged")
	}
	// Output:
	// 2 created, 0 unchanged
	// 0 created, 2 unchanged
}

func ExampleMakePlan() {
	set, err := demo("example-plan")
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := apply.MakePlan(context.Background(), shared.Config(), set, apply.Options{Prune: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan)
	// Output:
	// arrives     ConfigMap example-plan/conf: its kind or its namespace arrives with this set
	// create      Namespace example-plan
	// 1 to create, 1 to create on what arrives with the set
}

func ExamplePlan_Apply() {
	ctx := context.Background()
	set, err := demo("example-plan-apply")
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := apply.MakePlan(ctx, shared.Config(), set, apply.Options{Prune: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		out, err := plan.Apply(ctx, shared.Config())
		var moved *apply.MovedError
		fmt.Println(out.Changed(), "changed; moved:", errors.As(err, &moved))
	}
	// Output:
	// 2 changed; moved: false
	// 0 changed; moved: true
}

func ExamplePlan_WriteJSON() {
	set, err := demo("example-plan-json")
	if err != nil {
		fmt.Println(err)
		return
	}
	set.Objects = set.Objects[1:]
	plan, err := apply.MakePlan(context.Background(), shared.Config(), set, apply.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := plan.WriteJSON(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output: {"version":1,"set":"example-plan-json/demo","steps":[{"ref":{"version":"v1","kind":"Namespace","name":"example-plan-json"},"intent":"create"}]}
}

func ExamplePlan_WriteText() {
	plan := &apply.Plan{Steps: []apply.Step{{Ref: apply.Ref{Version: "v1", Kind: "ConfigMap", Name: "a"}, Intent: apply.WillPrune}}}
	if err := plan.WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// DELETES 1 object:
	// prune       ConfigMap a
	// 1 to prune
}

func ExampleNewSet() {
	_, err := apply.NewSet("demo", "demo",
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "dns"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "a", Port: 53}, {Name: "b", Port: 53}}}})
	fmt.Println(err)
	// Output: Service dns: spec.ports[1]: duplicate entries for key [port=53,protocol="TCP"]
}

func ExampleRead() {
	manifests := strings.NewReader("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: conf\n  name: config\n")
	_, err := apply.Read("demo", "demo", apply.Stream("stdin", manifests))
	fmt.Println(err)
	// Output: stdin:5: mapping key "name" already defined at line 4
}

func ExampleStream() {
	set, err := apply.Read("demo", "demo", apply.Stream("stdin", strings.NewReader("{apiVersion: v1, kind: ConfigMap, metadata: {name: conf}}")))
	fmt.Println(len(set.Objects), err)
	// Output: 1 <nil>
}

func ExampleObjects() {
	conf := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "conf"}}
	_, err := apply.Read("demo", "demo", apply.Objects("ours", conf), apply.Objects("theirs", conf))
	fmt.Println(err)
	// Output: theirs[0]: ConfigMap conf: it is in the set already, from ours[0]
}

func ExampleDirectory() {
	_, err := apply.Read("demo", "demo", apply.Directory("testdata/none"))
	fmt.Println(err)
	// Output: testdata/none: no such file or directory
}

func ExampleKustomization() {
	set, err := apply.Read("demo", "demo", apply.Kustomization("testdata/layers", "overlays/prod"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range set.Objects {
		fmt.Println(apply.RefOf(o))
	}
	// Output: ConfigMap prod/conf
}

func ExampleRemove() {
	ctx := context.Background()
	done, err := apply.Remove(ctx, shared.Config(), apply.RemoveOptions{}, apply.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "never-there"})
	fmt.Println(done[0].Ref, done[0].Action, err)
	// Output: ConfigMap default/never-there absent <nil>
}

func ExampleEnsureSecret() {
	ctx := context.Background()
	client := kubernetes.NewForConfigOrDie(shared.Config())
	keys := map[string]func() ([]byte, error){"TOKEN": func() ([]byte, error) { return []byte("from a random source"), nil }}
	for range 2 {
		minted, err := apply.EnsureSecret(ctx, client, "default", "example", keys, apply.SecretOptions{})
		fmt.Println(minted, err)
	}
	// Output:
	// [TOKEN] <nil>
	// [] <nil>
}

func ExampleLock() {
	ctx := context.Background()
	client := kubernetes.NewForConfigOrDie(shared.Config())
	_, release, err := apply.Lock(ctx, client, "default", "example", "ana@laptop", apply.LockOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer release()
	_, _, err = apply.Lock(ctx, client, "default", "example", "bo@desk", apply.LockOptions{Fail: true})
	var locked *apply.LockedError
	fmt.Println(errors.As(err, &locked), locked.Holder)
	// Output: true ana@laptop
}

func ExampleWaitRollout() {
	ctx := context.Background()
	client := kubernetes.NewForConfigOrDie(shared.Config())
	_, err := apply.WaitRollout(ctx, client, apply.Workload{Kind: "Deployment", Namespace: "default", Name: "absent"}, apply.RolloutOptions{Timeout: time.Minute})
	fmt.Println(err)
	// Output: waiting for Deployment default/absent: Deployment default/absent does not exist
}

func ExampleVerify() {
	ctx := context.Background()
	client := kubernetes.NewForConfigOrDie(shared.Config())
	got, err := apply.Verify(ctx, client, apply.Layer{Name: "repo cache", Namespace: "default", Selector: "app=jr2-repo-cache", Image: "registry.example/cache:1"})
	fmt.Println(got.Pods, err)
	// Output: 0 <nil>
}

func ExampleClassify() {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-1", errors.New("exceeded quota: q, requested: pods=1, used: pods=4, limited: pods=4"))
	class := apply.Classify(err)
	fmt.Println(class, class.Retryable())
	// Output: quota-wait true
}

func ExampleReady() {
	fmt.Println(apply.Ready(&corev1.ConfigMap{}).Done)
	// Output: true
}
