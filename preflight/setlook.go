package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"golang.org/x/sync/errgroup"
)

// parallel is how many questions to the server or to registries are open at once.
const parallel = 8

// A setLook is a set as the checks see it, and what was asked about it so far.
type setLook struct {
	objs      []*unstructured.Unstructured
	facts     SetFacts
	workloads []*workload
	// unread are Notes about workloads that are none of the shape that their kind has.
	unread []Finding
	images map[string]imageAnswer
	// pulls are what was asked about each image with the credentials of the pods that pull it.
	pulls []*pull
	// toldMissing are the images that a finding about a workload calls missing.
	toldMissing map[toldImage]bool
	// toldUnanswered says that a Note names the images that nobody could look at.
	toldUnanswered bool
}

type toldImage struct {
	w     *workload
	image string
}

type imageAsker = func(context.Context, string, authn.Authenticator) (ImageFacts, error)

type imageAnswer struct {
	ImageFacts
	err error
}

func lookAt(objs []*unstructured.Unstructured, facts SetFacts) *setLook {
	l := &setLook{objs: objs, facts: facts, images: map[string]imageAnswer{}, toldMissing: map[toldImage]bool{}}
	for _, o := range objs {
		w, err := workloadOf(o)
		if err != nil {
			l.unread = append(l.unread, notLooked(objectOf(o), fmt.Sprintf("%s cannot be read as what its kind says, so its pods were not checked: %v", objectOf(o), err)))
			continue
		}
		if w != nil {
			l.workloads = append(l.workloads, w)
		}
	}
	l.autoscaled()
	return l
}

// autoscaled takes the number of replicas of a workload that an autoscaler of the set targets from there: the least that there will be.
func (l *setLook) autoscaled() {
	for _, o := range l.objs {
		if o.GroupVersionKind().Group != "autoscaling" || o.GetKind() != "HorizontalPodAutoscaler" {
			continue
		}
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "scaleTargetRef", "kind") //nolint:errcheck // the server refuses it in its own words
		name, _, _ := unstructured.NestedString(o.Object, "spec", "scaleTargetRef", "name") //nolint:errcheck // as above
		least, ok, err := unstructured.NestedInt64(o.Object, "spec", "minReplicas")
		if !ok || err != nil {
			least = 1 // the API's default
		}
		for _, w := range l.workloads {
			if w.kind == kind && w.name == name && w.namespace == o.GetNamespace() {
				w.replicas = int(least)
			}
		}
	}
}

// find returns the object of a kind and a name, and "" for the namespace of a kind that has none.
func (l *setLook) find(group, kind, namespace, name string) *unstructured.Unstructured {
	for _, o := range l.objs {
		if o.GroupVersionKind().Group == group && o.GetKind() == kind && o.GetNamespace() == namespace && o.GetName() == name {
			return o
		}
	}
	return nil
}

// namespace is the Namespace of the set with this name, or nil.
func (l *setLook) namespace(name string) *corev1.Namespace {
	o := l.find("", "Namespace", "", name)
	if o == nil {
		return nil
	}
	namespace := &corev1.Namespace{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, namespace) != nil {
		return nil
	}
	return namespace
}

// askImages asks about every image of the set that nobody has asked about, once each, with the caller's own credentials.
func (l *setLook) askImages(ctx context.Context) {
	if l.facts.Images == nil {
		return
	}
	var refs []string
	for _, w := range l.workloads {
		for _, use := range slices.Concat(imagesOf(w.pod), imagesOf(w.runs())) {
			if _, asked := l.images[use.image]; !asked && readable(use.image) == nil {
				refs = append(refs, use.image)
			}
		}
	}
	slices.Sort(refs)
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, ref := range slices.Compact(refs) {
		group.Go(func() error {
			facts, err := l.facts.Images(ctx, ref, nil)
			if err == nil {
				err = facts.Denied
			}
			mu.Lock()
			defer mu.Unlock()
			l.images[ref] = imageAnswer{facts, err}
			return nil
		})
	}
	group.Wait() //nolint:errcheck // each answer carries its own
}

// ended says whether a pod holds nothing any more.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func notLooked(object, message string) Finding {
	return Finding{Severity: Note, Code: CodeNotLookedAt, Object: object, Message: message}
}

// several joins names: "a", "a and b", "a, b and c".
func several(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// few joins the names of nodes or pods, and counts those beyond the first five.
func few(names []string) string {
	const shown = 5
	if len(names) <= shown+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
