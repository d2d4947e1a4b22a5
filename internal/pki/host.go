package pki

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// A Host is an endpoint that needs a certificate: a name in lower case or an IP address without brackets, and a port.
type Host struct {
	Name string
	Port int
}

// maxStem leaves room in the key of a Secret, which ends at 253 characters.
const maxStem = 200

// Stem names the files of the host's certificate: it is unique for a host and a port, and fit for the key of a Secret.
func (h Host) Stem() string {
	name := h.Name
	if len(name) > maxStem || strings.Contains(name, ":") { // no key may hold a colon
		sum := sha256.Sum256([]byte(name))
		name = "host-" + hex.EncodeToString(sum[:16])
	}
	return name + "-" + strconv.Itoa(h.Port)
}

// Address says whether the host is an IP address.
func (h Host) Address() (netip.Addr, bool) {
	address, err := netip.ParseAddr(h.Name)
	return address, err == nil
}

// NewHost makes a certificate for a host. It never outlives the authority.
func NewHost(authority Pair, host Host, now time.Time) (Pair, error) {
	parent, signer, err := authority.read()
	if err != nil {
		return Pair{}, err
	}
	from, to := span(now, HostLife)
	if to.After(parent.NotAfter) {
		to = parent.NotAfter
	}
	template := &x509.Certificate{
		NotBefore:             from,
		NotAfter:              to,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if len(host.Name) <= 64 { // what a common name may hold; the host counts where it is an alternative name
		template.Subject = pkix.Name{CommonName: host.Name}
	}
	if address, ok := host.Address(); ok {
		template.IPAddresses = append(template.IPAddresses, address.AsSlice())
	} else {
		template.DNSNames = []string{host.Name}
	}
	return sign(template, parent, signer)
}

// CheckHost says why a host's certificate can't stay; nil when it can.
func CheckHost(authority, pair Pair, host Host, now time.Time) error {
	parent, _, err := authority.read()
	if err != nil {
		return err
	}
	cert, _, err := pair.read()
	if err != nil {
		return err
	}
	if !host.onlyNameOf(cert) {
		return errors.New("it is for another host")
	}
	roots := x509.NewCertPool()
	roots.AddCert(parent)
	_, err = cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	switch {
	case now.Before(cert.NotBefore):
		return errors.New("it is not valid yet")
	case cert.NotAfter.Sub(now) <= HostLeft:
		return errors.New("it ends on " + cert.NotAfter.UTC().Format(time.DateOnly))
	case err != nil:
		return errors.New("it is not of the Instance's authority")
	}
	return nil
}

// onlyNameOf says that a certificate has exactly this alternative name.
func (h Host) onlyNameOf(cert *x509.Certificate) bool {
	if len(cert.EmailAddresses)+len(cert.URIs) > 0 {
		return false
	}
	if address, ok := h.Address(); ok {
		return len(cert.DNSNames) == 0 && len(cert.IPAddresses) == 1 && cert.IPAddresses[0].Equal(address.AsSlice())
	}
	return len(cert.IPAddresses) == 0 && len(cert.DNSNames) == 1 && cert.DNSNames[0] == h.Name
}
