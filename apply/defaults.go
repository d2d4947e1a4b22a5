package apply

import (
	"context"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// A defaulter is a kind of which one object gives others a value when they are created.
type defaulter struct {
	group, kind string
	// is says that an object of the kind is the default.
	is func(o order) bool
	// asks is what an object of the set has the API server default by it; nil when it names a class, or is none of
	// those that have one.
	asks func(o order) *unstructured.Unstructured
	// field is where the server writes the name of the default.
	field []string
}

// defaulters lists those of Kubernetes itself whose value an object lacks for ever when it is created too early, or for
// some time (a claim).
func defaulters() []defaulter {
	return []defaulter{{
		group: "storage.k8s.io", kind: "StorageClass",
		is:    annotated("storageclass.kubernetes.io/is-default-class"),
		asks:  claimWithoutClass,
		field: []string{"spec", "storageClassName"},
	}, {
		group: "networking.k8s.io", kind: "IngressClass",
		is:    annotated("ingressclass.kubernetes.io/is-default-class"),
		asks:  ingressWithoutClass,
		field: []string{"spec", "ingressClassName"},
	}, {
		group: "scheduling.k8s.io", kind: "PriorityClass",
		is:    func(o order) bool { return o.body.Object["globalDefault"] == true },
		asks:  podWithoutPriority,
		field: []string{"spec", "priorityClassName"},
	}}
}

func annotated(annotation string) func(order) bool {
	return func(o order) bool { return o.body.GetAnnotations()[annotation] == "true" }
}

func claimWithoutClass(o order) *unstructured.Unstructured {
	isClaim := o.ref.Group == "" && o.ref.Kind == "PersistentVolumeClaim"
	if !isClaim || dig(o.body.Object, "spec", "storageClassName") != nil {
		return nil
	}
	return o.body
}

func ingressWithoutClass(o order) *unstructured.Unstructured {
	isIngress := o.ref.Group == "networking.k8s.io" && o.ref.Kind == "Ingress"
	if !isIngress || dig(o.body.Object, "spec", "ingressClassName") != nil ||
		o.body.GetAnnotations()["kubernetes.io/ingress.class"] != "" {
		return nil
	}
	return o.body
}

// podWithoutPriority is the pod of a workload under a name that the server makes up.
func podWithoutPriority(o order) *unstructured.Unstructured {
	path := podSpecPath(o.body)
	spec, _ := dig(o.body.Object, path...).(map[string]any)
	if path == nil || spec == nil || spec["priorityClassName"] != nil {
		return nil
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": spec,
		"metadata": map[string]any{"generateName": "jr2-", "namespace": o.ref.Namespace, "labels": podLabels(o.body)}}}
}

// defaultWait bounds the wait for the API server to default by a class that was just written: it learns of it by a
// watch, within milliseconds, and where it is told not to default it never does.
const defaultWait = 5 * time.Second

// awaitDefaults holds back what is to be written next until the API server gives it the defaults that this run wrote:
// it has classes from its own watch, a moment after the write. Whether it does is asked by a dry run of one such
// object. Where nobody can ask, the write itself tells.
func (r *run) awaitDefaults(ctx context.Context, indexes []int) {
	if r.opts.DryRun {
		return
	}
	r.awaitDefaultAccounts(ctx, indexes)
	for _, d := range defaulters() {
		var probe *unstructured.Unstructured
		for _, i := range indexes {
			if o := r.orders[i]; probe == nil && r.live.get(o.ref) == nil {
				probe = d.asks(o)
			}
		}
		if probe == nil {
			continue
		}
		for i, o := range r.orders {
			if o.ref.Group == d.group && o.ref.Kind == d.kind && d.is(o) && r.justWrote(i) {
				r.awaitDefault(ctx, d, o.ref, probe)
			}
		}
	}
}

// justWrote says that the object was written, and not long ago.
func (r *run) justWrote(i int) bool {
	action := r.results[i].Action
	return action != "" && action != Unchanged && time.Since(r.started[tierOf(r.orders[i].ref)]) < defaultWait
}

func (r *run) awaitDefault(ctx context.Context, d defaulter, class Ref, probe *unstructured.Unstructured) {
	bounded, cancel := context.WithTimeout(ctx, defaultWait)
	defer cancel()
	at, err := r.cluster.full(bounded, RefOf(probe))
	if err != nil {
		return
	}
	options := metav1.CreateOptions{FieldManager: r.opts.FieldManager, DryRun: []string{metav1.DryRunAll}}
	for delay := firstDelay / 10; ; delay = min(2*delay, lastDelay) {
		got, err := at.Create(bounded, probe, options)
		if err != nil || text(dig(got.Object, d.field...)) == class.Name || sleep(bounded, delay) != nil {
			return
		}
	}
}

// awaitDefaultAccounts waits for the accounts "default" of token Secrets in namespaces that this run made: a controller
// makes them.
func (r *run) awaitDefaultAccounts(ctx context.Context, indexes []int) {
	accounts := map[Ref]bool{}
	for _, i := range indexes {
		o := r.orders[i]
		account := o.account()
		home := Ref{Kind: "Namespace", Name: account.Namespace}
		arrives := r.wanted[home] && r.live.get(home) == nil
		if o.isToken() && account.Name == "default" && arrives && !r.wanted[account.key()] {
			accounts[account] = true
		}
	}
	for _, account := range slices.SortedFunc(maps.Keys(accounts), compareRefs) {
		bounded, cancel := context.WithTimeout(ctx, defaultWait)
		if at, err := r.cluster.at(bounded, account); err == nil {
			_ = watchUntil(bounded, metaSource(at, account.Name), func(objs []runtime.Object) (look, error) {
				return look{done: len(objs) > 0}, nil
			})
		}
		cancel()
	}
}
