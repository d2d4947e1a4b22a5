package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/pki"
)

// Certificates are what a Custodian needs to speak for the hosts that held secrets are bound to.
type Certificates struct {
	// Authority is the certificate of the Instance's authority, in PEM; its key is in no rendered object.
	Authority []byte
	// Hosts are the certificates of BoundHosts, by stem.
	Hosts map[string]pki.Pair
}

// Suffixes of the keys of jr2-held-tls, after a host's stem.
const (
	certSuffix = ".crt"
	keySuffix  = ".key"
)

// BoundHosts are the endpoints that need a certificate because a held secret is bound to them: each once, in the order of their stems.
func BoundHosts(in Input) []pki.Host {
	var all []pki.Host
	for _, bound := range boundHosts(in) {
		all = append(all, bound.pki())
	}
	return all
}

// StandInCertificates take the place of certificates that are yet to be made, for the hosts of the Input. They are the same every time,
// and no certificates.
func StandInCertificates(in Input) *Certificates {
	c := &Certificates{Authority: []byte("authority made by the converge\n"), Hosts: map[string]pki.Pair{}}
	for _, host := range BoundHosts(in) {
		c.Hosts[host.Stem()] = StandInCertificate(host)
	}
	return c
}

// StandInCertificate takes the place of one host's certificate.
func StandInCertificate(host pki.Host) pki.Pair {
	return pki.Pair{Cert: []byte("certificate of " + host.Stem() + " made by the converge\n"), Key: []byte("key of " + host.Stem() + " made by the converge\n")}
}

// KeptCertificates reads the certificates of hosts out of the data of jr2-held-tls. A half one is left out: it can't stay.
func KeptCertificates(data map[string][]byte) map[string]pki.Pair {
	kept := map[string]pki.Pair{}
	for key, cert := range data {
		if stem, ok := strings.CutSuffix(key, certSuffix); ok && data[stem+keySuffix] != nil {
			kept[stem] = pki.Pair{Cert: cert, Key: data[stem+keySuffix]}
		}
	}
	return kept
}

// certificateSecret is jr2-held-tls.
func certificateSecret(in Input) *corev1.Secret {
	values := map[string]config.Secret{}
	for stem, pair := range in.Certificates.Hosts {
		values[stem+certSuffix], values[stem+keySuffix] = config.NewSecret(string(pair.Cert)), config.NewSecret(string(pair.Key))
	}
	return in.secret(names.HeldTLS, values)
}

// complete says that each bound host has a certificate.
func (c *Certificates) complete(in Input) error {
	if !Holds(in) {
		return nil
	}
	if c == nil || len(c.Authority) == 0 {
		return ErrNoCertificates
	}
	for _, host := range BoundHosts(in) {
		if pair := c.Hosts[host.Stem()]; len(pair.Cert) == 0 || len(pair.Key) == 0 {
			return fmt.Errorf("%w: there is none of %s", ErrNoCertificates, host.Name)
		}
	}
	return nil
}

// fingerprints are those of the hosts' certificates, after their number.
func (c *Certificates) fingerprints() []string {
	if c == nil {
		return []string{"0"}
	}
	parts := []string{fmt.Sprint(len(c.Hosts))}
	for _, stem := range slices.Sorted(maps.Keys(c.Hosts)) {
		parts = append(parts, stem, c.Hosts[stem].Fingerprint())
	}
	return parts
}
