package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"time"
)

const day = 24 * time.Hour

// How long certificates live, and when they are made anew.
const (
	AuthorityLife = 3650 * day
	HostLife      = 365 * day
	// HostLeft is what must be left of a host's certificate for it to stay: a pod that starts now reads it once, and runs for days.
	HostLeft = 30 * day
)

// ErrAging says that an authority is sound and too old: a host's certificate could outlive it.
var ErrAging = errors.New("it ends before a new certificate of it would")

// NewAuthority makes the authority of an Instance.
func NewAuthority(instance string, now time.Time) (Pair, error) {
	from, to := span(now, AuthorityLife)
	return sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: "jr2 held-secret CA (" + instance + ")"},
		NotBefore:             from,
		NotAfter:              to,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}, nil, nil)
}

// CheckAuthority says why an authority can't go on; nil when it can. Errors: ErrAging, or one that says what is wrong with it.
func CheckAuthority(authority Pair, now time.Time) error {
	cert, _, err := authority.read()
	switch {
	case err != nil:
		return err
	case !cert.BasicConstraintsValid || !cert.IsCA || cert.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("its certificate is none of an authority")
	case cert.CheckSignatureFrom(cert) != nil:
		return errors.New("its certificate is not signed by itself")
	case now.Before(cert.NotBefore):
		return errors.New("it is not valid yet")
	case !now.Before(cert.NotAfter):
		return errors.New("it has expired")
	case cert.NotAfter.Sub(now) < HostLife:
		return ErrAging
	}
	return nil
}
