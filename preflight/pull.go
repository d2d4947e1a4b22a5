package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Pulls looks whether kubelets can pull the images of the pods that a set will make: with the credentials that the pods have, and for the nodes on
// which they can land. It warns of images that the registry does not hold or does not show to those credentials, of pull Secrets that do not
// exist, are none, or cannot be read, and of architectures, as Architectures does. The caller's own credentials are no help to a kubelet, and
// are used only to say more about an image that the pods do not get.
//
// The credentials are those of the pod's imagePullSecrets, else of its service account's, as kubelets match them with images; Secrets and
// service accounts of the set count as there. Where SetFacts.DryRun is given, a pod of each workload is made by dry run, and its images,
// policies and Secrets are those that count, whatever a webhook made of them.
//
// Nothing refuses: nodes may have credentials of their own (a kubelet's credential provider, the container runtime's configuration) and mirrors,
// and nobody sees either from here. What could not be looked at is a Note: a Secret that may not be read, a registry that does not answer. An
// image that is never pulled, or that all nodes list on which the pod can land, is not asked about; that a kubelet lets a pod use only images
// that its own credentials have pulled (KEP-2535) is not looked at.
func Pulls(ctx context.Context, objs []*unstructured.Unstructured, facts SetFacts) []Finding {
	l := lookAt(objs, facts)
	if facts.DryRun != nil {
		l.admission(ctx) // for the pods that come back; Admission tells the rest
	}
	l.askPulls(ctx)
	return slices.Concat(l.unread, l.pullFindings(), l.architectures())
}

// askPulls asks with the credentials of the pods. What it learns about an image serves the other checks too.
func (l *setLook) askPulls(ctx context.Context) {
	if l.facts.Images == nil {
		return
	}
	l.pulls = l.pullsOf(ctx)
	for _, p := range l.pulls {
		if known, asked := l.images[p.used.image]; asked && known.err == nil && known.found() {
			continue
		}
		learned := p.learned()
		if p.notKnown() != "" {
			learned.Missing = false // it may be hidden from those without the credentials that nobody saw
		}
		l.images[p.used.image] = learned
	}
}

func (l *setLook) pullFindings() []Finding {
	if l.facts.Images == nil {
		if len(l.workloads) == 0 {
			return nil
		}
		return []Finding{notLooked("registries", "no registry was asked, so nobody looked whether the images of this set can be pulled")}
	}
	var findings []Finding
	var unknown []string
	told := map[*pullSecret]bool{}
	for _, p := range l.pulls {
		if p.err != nil || p.readable() {
			continue
		}
		unread := p.notKnown()
		switch {
		case p.missing(unread == ""):
			if !l.toldMissing[toldImage{p.w, p.used.image}] {
				findings = append(findings, missingImage(p.w, p.used))
			}
		case p.broken() != nil: // no image of the pod is pulled, and that is told
		case unread != "":
			unknown = append(unknown, fmt.Sprintf("%s (%s): %s", p.used.image, p.w.object, unread))
		default:
			findings = append(findings, p.denied())
			for _, secret := range p.secrets {
				told[secret] = true
			}
		}
	}
	findings = append(findings, l.secretFaults(told)...)
	if failed := l.unanswered(); len(failed) > 0 && !l.toldUnanswered {
		l.toldUnanswered = true
		findings = append(findings, notLooked("registries", "nobody could say whether some images can be pulled: "+strings.Join(failed, "; ")+mirrors))
	}
	if slices.Sort(unknown); len(unknown) > 0 {
		findings = append(findings, notLooked("Secrets", "nobody could look whether pods have the credentials for some images, which their registries do not show without: "+
			strings.Join(slices.Compact(unknown), "; ")))
	}
	return findings
}

// missing says whether it is the registry's clear word that it holds no such image. To somebody without the right credentials it may only hide it,
// so where the pods may have some that nobody saw, there is no clear word.
func (p *pull) missing(known bool) bool {
	return known && !(p.ownAsked && p.own.found()) && (p.own.Missing || p.answer.Missing)
}

func (p *pull) broken() *pullSecret {
	for _, secret := range p.secrets {
		if secret.state == secretBroken {
			return secret
		}
	}
	return nil
}

// notKnown says what keeps anybody from knowing the pods' credentials; "" when all are known.
func (p *pull) notKnown() string {
	var reasons []string
	if p.unread != "" {
		reasons = append(reasons, p.unread)
	}
	for _, secret := range p.secrets {
		if secret.state == secretUnread {
			reasons = append(reasons, secret.String()+" "+secret.words)
		}
	}
	return several(reasons)
}
