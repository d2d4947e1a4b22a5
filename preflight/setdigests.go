package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Digests finds images that are not pinned by digest, of init and ephemeral containers and of image volumes too. It warns, with the
// digest that the name points to now as the fix when SetFacts.Images can tell. A name that is no image reference refuses. One that
// means Docker Hub only because it names no registry ("team/app:v1") warns, and so does one that its registry says it does not hold.
func Digests(ctx context.Context, objs []*unstructured.Unstructured, facts SetFacts) []Finding {
	l := lookAt(objs, facts)
	l.askImages(ctx)
	return append(l.unread, l.digests()...)
}

func (l *setLook) digests() []Finding {
	var findings []Finding
	unpinned := false
	for _, w := range l.workloads {
		for _, used := range byImage(imagesOf(w.pod)) {
			found, moves := l.digest(w, used.image, used.where)
			findings = append(findings, found...)
			unpinned = unpinned || moves
		}
	}
	switch {
	case unpinned && l.facts.Images == nil:
		findings = append(findings, notLooked("registries", "no registry was asked, so nobody looked at the digests that the tags of this set point to now"))
	case len(l.unanswered()) > 0:
		l.toldUnanswered = true
		findings = append(findings, notLooked("registries", "nobody could say what some images point to now, for which architectures they are published, and whether they can be pulled: "+
			strings.Join(l.unanswered(), "; ")+mirrors))
	}
	return findings
}

// digest checks one image of one workload, and says whether its name may move.
func (l *setLook) digest(w *workload, image, where string) (findings []Finding, moves bool) {
	if placeholderName(image) != "" {
		return nil, false // which is said as such
	}
	finding := Finding{Object: w.object}
	if err := readable(image); err != nil {
		finding.Severity, finding.Code = Refuse, CodeImageInvalid
		finding.Message = fmt.Sprintf("refusing: %s: %q (%s) is no image reference: %v — correct it. Nothing was applied.", w.object, image, where, err)
		finding.Fix = fmt.Sprintf("correct the image %q", image)
		return []Finding{finding}, false
	}
	if finding, ok := dockerHub(w, image, where); ok {
		findings = append(findings, finding)
	}
	answer := l.images[image]
	if answer.err == nil && answer.Missing {
		l.toldMissing[toldImage{w, image}] = true
		return append(findings, missingImage(w, imageUse{image: image, where: where})), false
	}
	repository, moving := split(image)
	if moving == "" {
		return findings, false
	}
	finding.Severity, finding.Code = Warn, CodeImageUnpinned
	fix := fmt.Sprintf("find its digest (docker buildx imagetools inspect %s) and pin it: %s@sha256:…", image, repository)
	if answer.err == nil && answer.Digest != "" {
		finding.Fix = repository + "@" + answer.Digest
		fix = "pin what it is now: " + finding.Fix
	} else {
		finding.Fix = fix
	}
	finding.Message = fmt.Sprintf("%s: %s (%s) is not pinned: %s — %s", w.object, image, where, moving, fix)
	return append(findings, finding), true
}

// split takes the tag off a reference, and says in words why it may move; "" when a digest pins it.
func split(image string) (repository, moving string) {
	named, err := reference.ParseNormalizedNamed(image)
	if _, pinned := named.(reference.Digested); err != nil || pinned {
		return image, ""
	}
	tagged, ok := named.(reference.Tagged)
	if !ok {
		return image, "without a tag it means latest, a name that moves"
	}
	repository = strings.TrimSuffix(image, ":"+tagged.Tag())
	if tagged.Tag() == "latest" {
		return repository, "latest is a name that moves"
	}
	return repository, "a tag is a name that can move"
}

// dockerHub warns of a name such as "team/app", whose author may have meant a registry. One word alone is an official image.
func dockerHub(w *workload, image, where string) (Finding, bool) {
	host, _, several := strings.Cut(image, "/")
	named, err := reference.ParseNormalizedNamed(image)
	written := strings.ContainsAny(host, ".:") || host == "localhost" || strings.ToLower(host) != host
	if err != nil || !several || written {
		return Finding{}, false
	}
	return Finding{
		Severity: Warn, Code: CodeImageDockerHub, Object: w.object,
		Message: fmt.Sprintf("%s: %s (%s) means %s, because it names no registry — write the registry into the name", w.object, image, where, named.String()),
		Fix:     "write " + named.String() + ", or the registry that is meant",
	}, true
}

// unanswered are the images that could not be looked at, each with the reason.
func (l *setLook) unanswered() []string {
	var all []string
	for ref, answer := range l.images {
		if answer.err != nil {
			all = append(all, fmt.Sprintf("%s (%v)", ref, answer.err))
		}
	}
	slices.Sort(all)
	return all
}
