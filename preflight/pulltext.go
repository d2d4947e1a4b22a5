package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// denied is the finding about an image that the registry does not show to the credentials of its pods. Where the nodes of a cloud come with
// credentials for its registry, and the pods bring none, that is the usual way and only worth a Note.
func (p *pull) denied() Finding {
	finding := Finding{Severity: Warn, Code: CodeImageCredentials, Object: p.w.object, Fix: p.fix()}
	if len(p.with) == 0 && fromNodes(p.host()) {
		finding.Severity = Note
		finding.Message = fmt.Sprintf("%s: the registry shows %s (%s) only to who has credentials, and its pods have none for %s; nodes of that cloud have their own, which nobody sees from here",
			p.w.object, p.used.image, p.used.where, p.host())
		return finding
	}
	finding.Message = fmt.Sprintf("%s: the registry does not show %s (%s) to its pods%s: %s%s; unless the nodes have credentials of their own, which nobody sees from here, they cannot pull it — %s",
		p.w.object, p.used.image, p.used.where, p.said(), p.why(), p.seen(), finding.Fix)
	return finding
}

// host is the registry, as people and Secrets write it.
func (p *pull) host() string {
	ref, err := name.ParseReference(p.used.image)
	if err != nil {
		return p.used.image
	}
	return strings.Replace(ref.Context().RegistryStr(), name.DefaultRegistry, "docker.io", 1)
}

// said are the registry's words.
func (p *pull) said() string {
	if p.answer.Denied == nil { // it hides what it has
		return " (it says that there is none)"
	}
	return " (" + strings.TrimSpace(p.answer.Denied.Error()) + ")"
}

// seen says what the caller's own credentials got.
func (p *pull) seen() string {
	switch {
	case p.ownAsked && p.own.found():
		return " (your own credentials can read it)"
	case p.answer.Denied != nil:
		return " (many registries say so, too, of an image that they do not hold)"
	}
	return ""
}

// why says of each Secret of the pods why it does not help.
func (p *pull) why() string {
	if len(p.secrets) == 0 {
		return "they name no pull Secret, and neither does their service account"
	}
	var reasons []string
	for _, secret := range p.secrets {
		reasons = append(reasons, secret.String()+" "+p.whyNot(secret))
	}
	return several(reasons)
}

func (p *pull) whyNot(secret *pullSecret) string {
	if secret.state != secretReadable {
		return secret.words
	}
	at := slices.IndexFunc(p.with, func(c credential) bool { return c.from == secret })
	switch {
	case at < 0 && len(secret.entries) == 0:
		return "holds no credentials"
	case at < 0:
		var registries []string
		for _, entry := range secret.entries {
			registries = append(registries, entry.registry)
		}
		slices.Sort(registries)
		return fmt.Sprintf("has credentials for %s and none for %s", few(registries), p.host())
	case p.with[at].empty():
		return "has neither user nor password for " + p.host() + ", and kubelets use nothing else"
	}
	return "has credentials for " + p.host() + " that it does not take"
}

// fix is what to do about the first Secret that does not help.
func (p *pull) fix() string {
	for _, secret := range p.secrets {
		if secret.arrives {
			return fmt.Sprintf("put credentials for %s into %s of the set", p.host(), secret)
		}
		switch secret.state {
		case secretAbsent:
			return p.create(secret.name)
		case secretOfOtherType: // the type of a Secret cannot be changed
			return fmt.Sprintf("kubectl -n %s delete secret %s && %s", secret.namespace, secret.name, p.create(secret.name))
		}
	}
	for _, c := range p.with {
		return fmt.Sprintf("put credentials for %s that may read it into %s", p.host(), c.from)
	}
	const secret = "registry-pull"
	if len(p.w.pod.Spec.ImagePullSecrets) > 0 {
		return p.create(secret) + ", and name it in imagePullSecrets of the pod template"
	}
	return fmt.Sprintf(`%s && kubectl -n %s patch serviceaccount %s -p '{"imagePullSecrets": [{"name": "%s"}]}'`, p.create(secret), p.w.namespace, p.w.account(), secret)
}

func (p *pull) create(secret string) string {
	server := p.host()
	if server == "docker.io" {
		server = "https://index.docker.io/v1/"
	}
	return fmt.Sprintf("kubectl -n %s create secret docker-registry %s --docker-server=%s --docker-username=... --docker-password=...", p.w.namespace, secret, server)
}

// fromNodes says whether the nodes of a cloud usually have credentials for this registry of its own: kubelet credential providers of AWS, Google
// and Azure. https://kubernetes.io/docs/tasks/administer-cluster/kubelet-credential-provider/
func fromNodes(host string) bool {
	bare := strings.Split(host, ":")[0]
	return strings.Contains(bare, ".dkr.ecr") && (strings.HasSuffix(bare, ".amazonaws.com") || strings.HasSuffix(bare, ".amazonaws.com.cn")) ||
		bare == "gcr.io" || strings.HasSuffix(bare, ".gcr.io") || strings.HasSuffix(bare, "-docker.pkg.dev") ||
		slices.ContainsFunc([]string{".azurecr.io", ".azurecr.cn", ".azurecr.de", ".azurecr.us"}, func(end string) bool { return strings.HasSuffix(bare, end) })
}

// A namedSecret is a Secret with the workloads whose pods name it for pulling.
type namedSecret struct {
	*pullSecret
	by []string
	// asked says that all registries answered.
	answered bool
}

func (l *setLook) namedSecrets() []*namedSecret {
	var all []*namedSecret
	at := map[*pullSecret]*namedSecret{}
	for _, p := range l.pulls {
		for _, secret := range p.secrets {
			if at[secret] == nil {
				at[secret] = &namedSecret{pullSecret: secret, answered: true}
				all = append(all, at[secret])
			}
			named := at[secret]
			if !slices.Contains(named.by, p.w.object) {
				named.by = append(named.by, p.w.object)
			}
			named.answered = named.answered && p.err == nil
		}
	}
	slices.SortFunc(all, func(a, b *namedSecret) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

// secretFaults tells what is wrong with Secrets that pods name, without what is told already.
func (l *setLook) secretFaults(told map[*pullSecret]bool) []Finding {
	var findings []Finding
	for _, secret := range l.namedSecrets() {
		finding := Finding{Severity: Note, Code: CodePullSecret, Object: secret.String()}
		which := fmt.Sprintf("%s, which the pods of %s name for pulling, %s", secret, several(secret.by), secret.words)
		switch {
		case secret.state == secretBroken:
			finding.Severity, finding.Fix = Warn, fmt.Sprintf("correct %s, or take its name away from the pods", secret)
			finding.Message = fmt.Sprintf("%s: a kubelet then pulls no image for these pods — %s", which, finding.Fix)
		case told[secret.pullSecret] || secret.state != secretAbsent && secret.state != secretOfOtherType:
			continue
		case secret.answered:
			finding.Message = which + "; their images can be pulled without it"
		default:
			finding.Severity, finding.Fix = Warn, fmt.Sprintf("create %s as one of the type kubernetes.io/dockerconfigjson, or take its name away from the pods", secret)
			finding.Message = fmt.Sprintf("%s, and nobody could ask whether their images can be pulled without it — %s", which, finding.Fix)
		}
		findings = append(findings, finding)
	}
	return findings
}
