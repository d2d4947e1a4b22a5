package apply

import (
	"context"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// A scene is what is watched of a namespace while pods of it are waited for: why a workload has none, or none that runs, is said in no
// status of its own. A caller who may not list something sees less, and no more is concluded.
type scene struct {
	pods     []*corev1.Pod
	sets     []*appsv1.ReplicaSet
	refusals []*corev1.Event // FailedCreate of whoever makes pods
	missing  int             // lists that have not come yet
}

// scene returns the scene of a namespace and begins to watch it.
func (w *waiter) scene(namespace string) *scene {
	if s := w.scenes[namespace]; s != nil {
		return s
	}
	s := &scene{}
	w.scenes[namespace] = s
	core, apps := w.cluster.typed.CoreV1(), w.cluster.typed.AppsV1()
	w.watchScene(namespace, source{
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.Pods(namespace).List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return core.Pods(namespace).Watch(ctx, o)
		},
	}, func(objs []runtime.Object) { s.pods = as[*corev1.Pod](objs) })
	w.watchScene(namespace, source{
		options: metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("reason", failedCreate).String()},
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.Events(namespace).List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return core.Events(namespace).Watch(ctx, o)
		},
	}, func(objs []runtime.Object) { s.refusals = as[*corev1.Event](objs) })
	w.watchScene(namespace, source{
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return apps.ReplicaSets(namespace).List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return apps.ReplicaSets(namespace).Watch(ctx, o)
		},
	}, func(objs []runtime.Object) { s.sets = as[*appsv1.ReplicaSet](objs) })
	return s
}

// failedCreate is the reason of the events of all controllers about pods that they could not make.
const failedCreate = "FailedCreate"

func as[T runtime.Object](objs []runtime.Object) []T {
	all := make([]T, 0, len(objs))
	for _, o := range objs {
		if t, ok := o.(T); ok {
			all = append(all, t)
		}
	}
	return all
}

func (w *waiter) watchScene(namespace string, src source, take func([]runtime.Object)) {
	s := w.scenes[namespace]
	s.missing++
	first := true
	arrive := func() {
		if first {
			first = false
			s.missing--
		}
		for _, it := range w.items {
			if it.ref.Namespace == namespace && makesPods(it.ref) {
				it.news = true
			}
		}
	}
	w.running.Go(func() {
		err := w.follow(w.ctx, src, func(objs []runtime.Object) error {
			return w.tell(w.ctx, func() {
				take(objs)
				arrive()
			})
		})
		if err != nil && w.ctx.Err() == nil {
			_ = w.tell(w.ctx, arrive) // what can't be listed is not known
		}
	})
}

// A holdup is why the pods of a workload do not run, where that is not their own doing.
type holdup struct {
	on      WaitsOn
	words   string
	since   time.Time
	refused *refusal
}

// holdup looks for what holds up the pods of an object. Pods that have a node and are not ready are under way, and time counts for them.
func (s *scene) holdup(o *unstructured.Unstructured) holdup {
	if status, _ := dig(o.Object, "status", "observedGeneration").(int64); status < o.GetGeneration() && o.GetKind() != "Job" {
		return holdup{}
	}
	maker := s.maker(o)
	var h holdup
	busy := false
	for _, p := range s.podsOf(maker) {
		on, words, since := podHeld(p)
		switch {
		case p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || isReadyPod(p):
		case on == "":
			busy = true
		case h.on == "":
			h.on, h.words, h.since = on, words, since
		}
	}
	h.refused = s.refusal(o, maker)
	if r := h.refused; r != nil && r.class == ClassQuotaWait && h.on == "" {
		h.on, h.words, h.since = OnQuota, r.text, r.since
	}
	if busy {
		h.on = ""
	}
	return h
}

func isReadyPod(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// maker is the UID of what makes the object's new pods: itself, or a Deployment's ReplicaSet of the present revision.
func (s *scene) maker(o *unstructured.Unstructured) types.UID {
	if o.GetKind() != "Deployment" {
		return o.GetUID()
	}
	if set := s.currentSet(o); set != nil {
		return set.UID
	}
	return ""
}

// revisionAnnotation is on a Deployment and on its ReplicaSets.
const revisionAnnotation = "deployment.kubernetes.io/revision"

func (s *scene) currentSet(deployment *unstructured.Unstructured) *appsv1.ReplicaSet {
	for _, set := range s.sets {
		if hasController(set, deployment.GetUID()) && set.Annotations[revisionAnnotation] == deployment.GetAnnotations()[revisionAnnotation] {
			return set
		}
	}
	return nil
}

func hasController(o metav1.Object, uid types.UID) bool {
	owner := metav1.GetControllerOfNoCopy(o)
	return owner != nil && owner.UID == uid
}

func (s *scene) podsOf(maker types.UID) []*corev1.Pod {
	var all []*corev1.Pod
	for _, p := range s.pods {
		if hasController(p, maker) {
			all = append(all, p)
		}
	}
	return all
}

// lookAround completes a status by what the namespace shows.
func (w *waiter) lookAround(it *waitItem, status Status, now time.Time) Status {
	s := w.scene(it.ref.Namespace)
	if it.ref.Kind == "Job" {
		w.keepFailures(it, s)
	}
	late := status.Failed && !status.FailedAt.IsZero() // its progress deadline; a Job's end is final
	if s.missing > 0 && (late || !status.Failed) {
		status.Failed = false
		return status
	}
	if status.Failed && !late {
		it.refused = s.refusal(it.obj, s.maker(it.obj))
		return status
	}
	h := s.holdup(it.obj)
	it.refused = h.refused
	if r := h.refused; r != nil {
		if why, final := w.judgeRefusal(it, s, now); final {
			return Status{Failed: true, Message: why}
		}
		if !strings.Contains(status.Message, r.text) {
			status.Message += ": " + r.text
		}
	} else {
		it.doubted = time.Time{}
	}
	if h.on != "" {
		status.On, status.Message, it.since = h.on, h.words, h.since
		if late {
			it.excused, status.Failed = status.FailedAt, false
		}
	}
	return status
}
