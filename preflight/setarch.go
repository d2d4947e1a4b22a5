package preflight

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"jr2.dev/jr2/platforms"
)

// Architectures warns of images that are not published for the architecture of a node on which their pod can land, now or when a
// startup taint has cleared. Nodes that the pod's selector, affinity or missing toleration keep it from do not count.
func Architectures(ctx context.Context, objs []*unstructured.Unstructured, facts SetFacts) []Finding {
	l := lookAt(objs, facts)
	l.askImages(ctx)
	return append(l.unread, l.architectures()...)
}

func (l *setLook) architectures() []Finding {
	switch {
	case len(l.workloads) == 0:
		return nil
	case l.facts.Images == nil:
		return []Finding{notLooked("registries", "no registry was asked, so nobody looked whether the images are published for the nodes' architectures")}
	case l.facts.Nodes == nil:
		return []Finding{notLooked("nodes", "the nodes were not read, so nobody looked whether the images are published for their architectures")}
	}
	var findings []Finding
	for _, w := range l.workloads {
		nodes := l.landing(w)
		for _, used := range byImage(imagesOf(w.runs())) {
			answer := l.images[used.image]
			if answer.err != nil || len(answer.Platforms) == 0 {
				continue
			}
			if needs := platforms.Unserved(nodes, answer.Platforms); len(needs) > 0 {
				findings = append(findings, unserved(w, used, answer.Platforms, needs, nodes))
			}
		}
	}
	if failed := l.unanswered(); len(failed) > 0 && !l.toldUnanswered {
		findings = append(findings, notLooked("registries", "nobody could say for which architectures some images are published: "+strings.Join(failed, "; ")+mirrors))
	}
	return findings
}

func unserved(w *workload, used imageUse, offered []string, needs []platforms.Need, nodes []corev1.Node) Finding {
	finding := Finding{Severity: Warn, Code: CodeImagePlatform, Object: w.object}
	var lacking, where []string
	count := 0
	for _, need := range needs {
		lacking = append(lacking, need.Architecture)
		where = append(where, fmt.Sprintf("%s (%s)", few(need.Nodes), need.Architecture))
		count += len(need.Nodes)
	}
	outcome := "a pod that lands there cannot pull it"
	finding.Fix = "publish it for " + several(lacking)
	if count == len(nodes) {
		outcome = "there is no other node that takes the pod, so it can never be pulled"
	} else if arch, ok := oneArchitecture(offered); ok {
		finding.Fix += fmt.Sprintf(", or give the pods the nodeSelector %s: %s", corev1.LabelArchStable, arch)
	}
	finding.Message = fmt.Sprintf("%s: %s (%s) is published for %s and not for %s, and %s — %s", w.object, used.image, used.where,
		several(offered), several(where), outcome, finding.Fix)
	return finding
}

// oneArchitecture is the architecture of an image that is published for Linux on one alone.
func oneArchitecture(offered []string) (string, bool) {
	if len(offered) != 1 {
		return "", false
	}
	system, rest, _ := strings.Cut(offered[0], "/")
	arch, _, _ := strings.Cut(rest, "/")
	return arch, system == "linux"
}
