package apply

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A keepMark is an annotation or a label by which a tool is told not to delete an object that left what it applies.
type keepMark struct {
	key    string
	values []string
	whole  bool // it counts only when all of a set is removed
	list   bool // the value is a list with commas
}

// keepMarks are those of tools whose manifests people bring along. Sources: the documentation of Argo CD (Sync Options), Helm (Chart Tips and
// Tricks), Flux (Kustomization, garbage collection), cli-utils (lifecycle directives) and kapp (Apply Ordering and Deletion). They are compared
// without regard to case, as Helm and Flux do, because who misspells one means it all the same.
func keepMarks() []keepMark {
	return []keepMark{
		{key: syncOptionsAnnotation, values: []string{"Prune=false", "Prune=confirm"}, list: true},
		{key: syncOptionsAnnotation, values: []string{"Delete=false", "Delete=confirm"}, list: true, whole: true},
		{key: "helm.sh/resource-policy", values: []string{"keep"}},
		{key: "kustomize.toolkit.fluxcd.io/prune", values: []string{"disabled"}},
		{key: "kustomize.toolkit.fluxcd.io/reconcile", values: []string{"disabled"}},
		{key: "cli-utils.sigs.k8s.io/on-remove", values: []string{"keep"}},
		{key: "client.lifecycle.config.k8s.io/deletion", values: []string{"detach"}},
		{key: "kapp.k14s.io/delete-strategy", values: []string{"orphan"}},
	}
}

// keepMarkOf is the mark that tells to keep an object, as "key: value"; "" when there is none. Flux takes its marks as labels too.
func keepMarkOf(o metav1.Object, whole bool) string {
	for _, mark := range keepMarks() {
		if mark.whole && !whole {
			continue
		}
		for _, value := range []string{o.GetAnnotations()[mark.key], o.GetLabels()[mark.key]} {
			if found := mark.in(value); found != "" {
				return mark.key + ": " + found
			}
		}
	}
	return ""
}

// KeepMark is the mark by which somebody says that an object is not to be deleted when all around it is, as "key: value": an annotation, or a label, of
// Argo CD, Helm, Flux, kapp or cli-utils. "" when it carries none. Withdraw heeds it.
func KeepMark(o metav1.Object) string { return keepMarkOf(o, true) }

// in is the word of a value that says to keep.
func (k keepMark) in(value string) string {
	words := []string{value}
	if k.list {
		words = strings.Split(value, ",")
	}
	for _, word := range words {
		word = strings.TrimSpace(word)
		if slices.ContainsFunc(k.values, func(v string) bool { return strings.EqualFold(v, word) }) {
			return word
		}
	}
	return ""
}

// whyKept says why an object is not deleted that somebody said to keep.
func whyKept(mark string) string {
	return fmt.Sprintf("it says to keep it (%s)", mark)
}
