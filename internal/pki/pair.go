package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"
)

// A Pair is a certificate with its private key, both in PEM. It prints without the key.
type Pair struct {
	Cert, Key []byte
}

const mask = "****"

// Format masks the key in every verb of package fmt.
func (p Pair) Format(f fmt.State, _ rune) { io.WriteString(f, p.masked()) } //nolint:errcheck // a Formatter has no way to tell

// MarshalJSON masks the key.
func (p Pair) MarshalJSON() ([]byte, error) { return []byte(`"` + p.masked() + `"`), nil }

func (p Pair) masked() string {
	if len(p.Key) == 0 {
		return "no key, certificate " + p.Fingerprint()
	}
	return "key " + mask + ", certificate " + p.Fingerprint()
}

// Fingerprint is the SHA-256 of the certificate's text, in hex.
func (p Pair) Fingerprint() string {
	sum := sha256.Sum256(p.Cert)
	return hex.EncodeToString(sum[:])
}

// read parses both halves and wants them to belong together.
func (p Pair) read() (*x509.Certificate, crypto.Signer, error) {
	cert, err := onlyBlock(p.Cert, "CERTIFICATE")
	if err != nil {
		return nil, nil, fmt.Errorf("its certificate does not read: %w", err)
	}
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		return nil, nil, fmt.Errorf("its certificate does not read: %w", err)
	}
	der, err := onlyBlock(p.Key, "PRIVATE KEY")
	if err != nil {
		return nil, nil, errors.New("its key does not read")
	}
	// What the parser says of a key is left out: it may quote it.
	parsedKey, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, nil, errors.New("its key does not read")
	}
	key, ok := parsedKey.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, nil, errors.New("its key is no ECDSA key on P-256")
	}
	if !key.PublicKey.Equal(parsed.PublicKey) {
		return nil, nil, errors.New("its key is that of another certificate")
	}
	return parsed, key, nil
}

func onlyBlock(text []byte, kind string) ([]byte, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != kind || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("want one PEM block %s", kind)
	}
	return block.Bytes, nil
}

// sign makes a new key and a certificate for it; a nil parent signs itself.
func sign(template, parent *x509.Certificate, signer crypto.Signer) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	if template.SerialNumber, err = serial(); err != nil {
		return Pair{}, err
	}
	if template.SubjectKeyId, err = keyID(&key.PublicKey); err != nil {
		return Pair{}, err
	}
	template.SignatureAlgorithm = x509.ECDSAWithSHA256
	if parent == nil {
		parent, signer = template, key
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return Pair{}, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	}, nil
}

// serial is positive and has 16 random bytes.
func serial() (*big.Int, error) {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		return nil, err
	}
	b[0] = b[0]&0x7f | 0x40 // positive, and never shorter
	return new(big.Int).SetBytes(b), nil
}

func keyID(key *ecdsa.PublicKey) ([]byte, error) {
	raw, err := key.Bytes()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	return sum[:20], nil
}

// span is from an hour ago, because clocks differ, for the given life.
func span(now time.Time, life time.Duration) (from, to time.Time) {
	now = now.UTC().Truncate(time.Second)
	return now.Add(-time.Hour), now.Add(life)
}
