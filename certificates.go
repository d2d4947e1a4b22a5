package jr2

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/pki"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/preflight"
)

// authorityAttempts bounds how often a write of the authority that met another writer is tried again from a new read.
const authorityAttempts = 8

// certificates makes those of held secrets that are due. The authority is made once and kept; the hosts' certificates are applied with the
// other objects, so that a converge that is cut off in between leaves an authority of which the next one makes them.
func (c *converge) certificates(ctx context.Context) error {
	c.tellHeld()
	if !render.Holds(c.input) {
		return nil
	}
	now, decision, authority, err := c.certificatesDue(ctx)
	if err != nil {
		return err
	}
	if decision.Authority != "" {
		why := decision.Authority
		made, err := c.keepAuthority(ctx, now)
		if err != nil {
			return err
		}
		if made {
			c.result.Changed++
			c.tell(CertificateMade{Why: why})
			c.noteAuthority(decision, "a new one was made")
		}
		// From here on with the authority that is there, whoever made it.
		if now, decision, authority, err = c.certificatesDue(ctx); err != nil {
			return err
		}
		if decision.Authority != "" {
			return fmt.Errorf("the authority of held secrets was made in Secret %s and does not stay: %s", names.HeldCA, decision.Authority)
		}
	}
	hosts, err := decision.Make(authority, now)
	if err != nil {
		return err
	}
	for _, due := range decision.Due {
		c.tell(CertificateMade{Host: endpoint(due.Host), Why: due.Why})
	}
	c.input.Certificates = &render.Certificates{Authority: authority.Cert, Hosts: hosts}
	return nil
}

// tellHeld tells what is held, for whom, and where it lies.
func (c *converge) tellHeld() {
	for _, binding := range render.Bindings(c.input) {
		c.tell(SecretHeld(binding))
	}
}

func endpoint(host pki.Host) string {
	return config.HostPort{Host: host.Name, Port: host.Port}.String()
}

// certificatesDue looks at what is there and decides. The authority is empty when there is none.
func (c *converge) certificatesDue(ctx context.Context) (now time.Time, decision pki.Decision, authority pki.Pair, err error) {
	now = time.Now()
	if c.opts.Now != nil {
		now = c.opts.Now()
	}
	secrets := c.cluster.client.CoreV1().Secrets(c.cluster.namespace)
	ca, err := secretIfAny(ctx, secrets, names.HeldCA)
	if err != nil {
		return now, decision, authority, err
	}
	tls, err := secretIfAny(ctx, secrets, names.HeldTLS)
	if err != nil {
		return now, decision, authority, err
	}
	kept := pki.Kept{}
	if ca != nil {
		if err := c.claim(ca); err != nil {
			return now, decision, authority, err
		}
		authority = authorityIn(ca)
		kept.Authority = &authority
	}
	if tls != nil {
		kept.Hosts = render.KeptCertificates(tls.Data)
	}
	return now, pki.Decide(kept, render.BoundHosts(c.input), now), authority, nil
}

func authorityIn(secret *corev1.Secret) pki.Pair {
	return pki.Pair{Cert: secret.Data[names.CAKey], Key: secret.Data[names.CAPrivateKey]}
}

// secretIfAny reads a Secret; nil when it is not there.
func secretIfAny(ctx context.Context, secrets typedcorev1.SecretInterface, name string) (*corev1.Secret, error) {
	secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	return secret, nil
}

// claim says whether a Secret that no set holds is the Instance's to use: one that somebody else made is an *apply.UnownedError, unless its adoption was
// asked for. One that is not there is no one's.
func (c *converge) claim(secret *corev1.Secret) error {
	if secret.UID == "" || c.opts.Adopt {
		return nil
	}
	return apply.ClaimSecret(secret, c.labels())
}

// keepAuthority makes the authority of the Instance, unless one that can go on is there by now: a create replaces nothing, and an update
// replaces exactly what was found unfit, and only what is the Instance's own: adoption takes a Secret as it is.
func (c *converge) keepAuthority(ctx context.Context, now time.Time) (made bool, err error) {
	secrets := c.cluster.client.CoreV1().Secrets(c.cluster.namespace)
	authority, err := pki.NewAuthority(c.inst.Name, now)
	if err != nil {
		return false, err
	}
	data := map[string][]byte{names.CAKey: authority.Cert, names.CAPrivateKey: authority.Key}
	for range authorityAttempts {
		there, err := secretIfAny(ctx, secrets, names.HeldCA)
		switch {
		case err != nil:
			return false, err
		case there == nil:
			_, err = secrets.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: names.HeldCA, Labels: c.labels()}, Type: corev1.SecretTypeOpaque, Data: data,
			}, metav1.CreateOptions{FieldManager: authorityManager})
		case pki.CheckAuthority(authorityIn(there), now) == nil:
			return false, nil
		case apply.ClaimSecret(there, c.labels()) != nil:
			return false, fmt.Errorf("its values can't be used and are not replaced: %w", apply.ClaimSecret(there, c.labels()))
		default:
			there.Data = data // in the version that was read
			_, err = secrets.Update(ctx, there, metav1.UpdateOptions{FieldManager: authorityManager})
		}
		if err == nil {
			return true, nil
		}
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("keep Secret %s: %w", names.HeldCA, err)
		}
	}
	return false, fmt.Errorf("keep Secret %s: it changed %d times while it was written", names.HeldCA, authorityAttempts)
}

// authorityManager owns the fields of the authority's Secret, which no set applies.
const authorityManager = "jr2-mint"

// noteAuthority tells that the authority which made the certificates is not the one that goes on: a warning when it was lost, a note when it
// was only old. The first one of an Instance is no news.
func (c *converge) noteAuthority(decision pki.Decision, then string) {
	finding := preflight.Finding{Severity: preflight.Warn, Code: preflight.CodeHeldAuthority, Object: "Secret " + c.cluster.namespace + "/" + names.HeldCA}
	switch {
	case decision.Lost:
		finding.Message = fmt.Sprintf("the authority of held secrets in Secret %s can't go on (%s) and %s: Sandboxes that run keep what they read of the old one, "+
			"and those whose Custodian starts again have to be made anew", names.HeldCA, decision.Authority, then)
	case decision.Authority == pki.ErrAging.Error():
		finding.Severity = preflight.Note
		finding.Message = fmt.Sprintf("the authority of held secrets in Secret %s is near its end and %s", names.HeldCA, then)
	default:
		return
	}
	c.note(finding)
}

// certificates says which would be made. What is rendered with them holds stand-ins: a plan makes no keys.
func (p *planning) certificates(ctx context.Context) error {
	p.tellHeld()
	if !render.Holds(p.input) {
		return nil
	}
	_, decision, authority, err := p.certificatesDue(ctx)
	if err != nil {
		p.input.Certificates = render.StandInCertificates(p.input)
		return p.passes(err)
	}
	planned := &render.Certificates{Authority: authority.Cert, Hosts: decision.Stay}
	if decision.Authority != "" {
		planned.Authority = render.StandInCertificates(p.input).Authority
		p.noteAuthority(decision, "a new one will be made")
	}
	due := &PlannedCertificates{Authority: decision.Authority}
	for _, d := range decision.Due {
		planned.Hosts[d.Host.Stem()] = render.StandInCertificate(d.Host)
		due.Hosts = append(due.Hosts, PlannedCertificate{Host: d.Host.Name, Port: d.Host.Port, Why: d.Why})
	}
	if decision.Authority != "" || len(due.Hosts) > 0 {
		p.plan.Certificates = due
	}
	p.input.Certificates = planned
	return nil
}

// certificateRights adds what certificates need beside the objects of the set.
func (c *converge) certificateRights(r *rights) {
	if !render.Holds(c.input) {
		return
	}
	r.need("the authority of held secrets", "", "secrets", c.cluster.namespace, names.HeldCA, "get", "create", "update")
}

// heldObjects are the Secrets of held secrets that go with the last one that is held, though they hold data. The authority stays.
func (c *converge) heldObjects() []apply.Ref {
	var refs []apply.Ref
	for _, name := range []string{names.HeldSecrets, names.HeldTLS} {
		refs = append(refs, apply.Ref{Version: "v1", Kind: "Secret", Namespace: c.cluster.namespace, Name: name})
	}
	return refs
}

// write tells what is made and why, for a person.
func (p *PlannedCertificates) write(b *strings.Builder) {
	if p.Authority != "" {
		say(b, "certificates: make the authority of held secrets in Secret %s (%s)", names.HeldCA, p.Authority)
	}
	for _, host := range p.Hosts {
		say(b, "certificates: make that of %s (%s)", endpoint(pki.Host{Name: host.Host, Port: host.Port}), host.Why)
	}
}
