package devcluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is longer than anyone keeps such a cluster.
const validity = 10 * 365 * 24 * time.Hour

// A keyPair is a certificate and its key, PEM.
type keyPair struct{ cert, key []byte }

// newAuthority makes a certificate authority.
func newAuthority(name string) (*x509.Certificate, *ecdsa.PrivateKey, keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, keyPair{}, err
	}
	template := certificate(name)
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, keyPair{}, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, keyPair{}, err
	}
	pair, err := encode(der, key)
	return cert, key, pair, err
}

// newLoopbackServer makes an authority and a certificate for this machine's loopback, signed by it, that serves and is a client's too.
// It is good for the other hosts (names or IPs) as well.
func newLoopbackServer(name string, hosts ...string) (authority, server keyPair, err error) {
	ca, caKey, authority, err := newAuthority(name + " CA")
	if err != nil {
		return keyPair{}, keyPair{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, keyPair{}, err
	}
	template := certificate(name)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames = []string{"localhost"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	if err != nil {
		return keyPair{}, keyPair{}, err
	}
	server, err = encode(der, key)
	return authority, server, err
}

func certificate(name string) *x509.Certificate {
	// Subtracting a little keeps the certificate valid for a child whose clock reading is older than ours.
	now := time.Now().Add(-time.Minute)
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		serial = big.NewInt(now.UnixNano())
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now,
		NotAfter:     now.Add(validity),
	}
}

func encode(der []byte, key *ecdsa.PrivateKey) (keyPair, error) {
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

// newServiceAccountKey makes the key that signs and checks service account tokens.
func newServiceAccountKey() ([]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), nil
}

// ensureKeys writes the control plane's keys into dir, unless they are there.
func ensureKeys(dir string) error {
	last := filepath.Join(dir, fileServerKey)
	if _, err := os.Stat(last); err == nil {
		return nil
	}
	ca, server, err := newLoopbackServer("devcluster", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		kubernetesService)
	if err != nil {
		return fmt.Errorf("make the API server's certificate: %w", err)
	}
	account, err := newServiceAccountKey()
	if err != nil {
		return fmt.Errorf("make the service accounts' key: %w", err)
	}
	for _, file := range []struct {
		name string
		data []byte
	}{
		{fileCA, ca.cert}, {fileCAKey, ca.key}, {fileAccountKey, account}, {fileServerCert, server.cert},
		// Last: it is the one that says that all are there.
		{fileServerKey, server.key},
	} {
		if err := writeFile(filepath.Join(dir, file.name), file.data); err != nil {
			return err
		}
	}
	return nil
}
