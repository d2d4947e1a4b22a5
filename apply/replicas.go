package apply

import (
	"context"
	"encoding/json"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// leaveReplicas takes the number of replicas out of what is asked for where an autoscaler, of the set or of the cluster, sets it. It is
// sent when the object is made; later it is the autoscaler's. Autoscalers of the cluster are looked for only when the object is to be
// written; a caller who may not list them has the conflict told instead.
func (r *run) leaveReplicas(ctx context.Context) error {
	scaled := r.scaledBySet()
	known := map[string]bool{} // namespaces
	for i, o := range r.orders {
		if _, ok := dig(o.body.Object, "spec", "replicas").(int64); !ok {
			continue
		}
		now := r.live.get(o.ref)
		if now != nil && !scaled[o.ref.key()] && !known[o.ref.Namespace] && !r.proven(o, now, r.inv.records[o.ref.key()]) {
			known[o.ref.Namespace] = true
			if err := r.scaledByCluster(ctx, o.ref, scaled); err != nil {
				return err
			}
		}
		if scaled[o.ref.key()] {
			var err error
			if r.orders[i], err = r.withoutReplicas(ctx, o, now); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) scaledBySet() map[Ref]bool {
	scaled := map[Ref]bool{}
	for _, o := range r.orders {
		if o.ref.Group != autoscalingv2.GroupName || o.ref.Kind != "HorizontalPodAutoscaler" {
			continue
		}
		target, _ := dig(o.body.Object, "spec", "scaleTargetRef").(map[string]any)
		scaled[targetRef(text(target["apiVersion"]), text(target["kind"]), o.ref.Namespace, text(target["name"]))] = true
	}
	return scaled
}

func (r *run) scaledByCluster(ctx context.Context, ref Ref, scaled map[Ref]bool) error {
	return r.retry.do(ctx, ref, func(ctx context.Context) error {
		list, err := r.cluster.typed.AutoscalingV2().HorizontalPodAutoscalers(ref.Namespace).List(ctx, metav1.ListOptions{})
		if c := Classify(err); c == ClassForbidden || c == ClassNoMatch || c == ClassNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		for _, h := range list.Items {
			t := h.Spec.ScaleTargetRef
			scaled[targetRef(t.APIVersion, t.Kind, h.Namespace, t.Name)] = true
		}
		return nil
	})
}

func targetRef(apiVersion, kind, namespace, name string) Ref {
	return Ref{Group: schema.FromAPIVersionAndKind(apiVersion, kind).Group, Kind: kind, Namespace: namespace, Name: name}
}

// withoutReplicas asks for the object without its number of replicas. While no autoscaler has set the number, this engine owns it, and
// leaving it out would have the server put its default there; then the number that is there is sent once more.
func (r *run) withoutReplicas(ctx context.Context, o order, now *metav1.PartialObjectMetadata) (order, error) {
	asked := o.body
	o.body = asked.DeepCopy()
	unstructured.RemoveNestedField(o.body.Object, "spec", "replicas")
	var err error
	if o.want, err = wantOf(o.body.Object); err != nil {
		return o, err
	}
	switch {
	case now == nil || now.DeletionTimestamp != nil:
		o.body = asked
		return o, nil
	case r.proven(o, now, r.inv.records[o.ref.key()]) || !owns(now, r.opts.FieldManager, "f:spec", "f:replicas"):
		return o, nil
	}
	at, err := r.cluster.full(ctx, o.ref)
	if err != nil {
		return o, err
	}
	var live *unstructured.Unstructured
	err = r.retry.do(ctx, o.ref, func(ctx context.Context) (err error) {
		live, err = at.Get(ctx, o.ref.Name, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return o, err
	}
	if n, ok := dig(live.Object, "spec", "replicas").(int64); ok {
		err = unstructured.SetNestedField(o.body.Object, n, "spec", "replicas")
	}
	return o, err
}

// owns says that the manager's entry holds a field.
func owns(m *metav1.PartialObjectMetadata, manager string, path ...string) bool {
	for e := range appliedBy(m, manager) {
		var fields any
		return json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) == nil && dig(fields, path...) != nil
	}
	return false
}
