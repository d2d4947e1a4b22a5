package sshkey_test

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"jr2.dev/jr2/internal/sshkey"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openssh(t *testing.T, key crypto.PrivateKey, passphrase string) string {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "somebody@desk")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "somebody@desk", []byte(passphrase))
	}
	must(t, err)
	return string(pem.EncodeToMemory(block))
}

func pkcs8(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return armor("PRIVATE KEY", der)
}

func armor(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// TestParse: each form of a key gives the same pair, in OpenSSH's form.
func TestParse(t *testing.T) {
	t.Parallel()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	sec1, err := x509.MarshalECPrivateKey(ec)
	must(t, err)
	for name, test := range map[string]struct {
		text string
		key  crypto.Signer
	}{
		"ed25519, OpenSSH":               {openssh(t, ed, ""), ed},
		"ed25519, PKCS #8":               {pkcs8(t, ed), ed},
		"rsa, OpenSSH":                   {openssh(t, rsaKey, ""), rsaKey},
		"rsa, PKCS #1":                   {armor("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)), rsaKey},
		"rsa, PKCS #8":                   {pkcs8(t, rsaKey), rsaKey},
		"ecdsa, OpenSSH":                 {openssh(t, ec, ""), ec},
		"ecdsa, SEC 1 after parameters":  {armor("EC PARAMETERS", []byte{6, 1, 1}) + armor("EC PRIVATE KEY", sec1), ec},
		"ecdsa, PKCS #8":                 {pkcs8(t, ec), ec},
		"line ends of Windows":           {strings.ReplaceAll(openssh(t, ed, ""), "\n", "\r\n"), ed},
		"no line end, and blanks before": {"\n\n" + strings.TrimSpace(openssh(t, ed, "")), ed},
	} {
		t.Run(name, func(t *testing.T) {
			pair, err := sshkey.Parse([]byte(test.text))
			must(t, err)
			public, err := ssh.NewPublicKey(test.key.Public())
			must(t, err)
			if pair.Fingerprint != ssh.FingerprintSHA256(public) || pair.Public+"\n" != string(ssh.MarshalAuthorizedKey(public)) {
				t.Errorf("got %s %s", pair.Fingerprint, pair.Public)
			}
			private := pair.Private.Reveal()
			signer, err := ssh.ParsePrivateKey([]byte(private))
			must(t, err)
			if !strings.HasPrefix(private, "-----BEGIN OPENSSH PRIVATE KEY-----\n") || !strings.HasSuffix(private, "-----\n") ||
				ssh.FingerprintSHA256(signer.PublicKey()) != pair.Fingerprint {
				t.Error("the private key is not the one that was given, in OpenSSH's form")
			}
		})
	}
}

// TestParseRefuses: what fits no cluster is told by kind, and none of it is quoted.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	public, ed, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	sealed := &pem.Block{ // the old form of a passphrase, which ssh-keygen wrote until 2018
		Type: "RSA PRIVATE KEY", Bytes: []byte("what is sealed"),
		Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-128-CBC,00112233445566778899AABBCCDDEEFF"},
	}
	x25519, err := ecdh.X25519().GenerateKey(rand.Reader)
	must(t, err)
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	must(t, err)
	sshPublic, err := ssh.NewPublicKey(public)
	must(t, err)
	pkix, err := x509.MarshalPKIXPublicKey(public)
	must(t, err)
	whole := openssh(t, ed, "")
	for name, test := range map[string]struct {
		text string
		want error
	}{
		"a passphrase, OpenSSH":       {openssh(t, ed, "word"), sshkey.ErrPassphrase},
		"a passphrase, PKCS #1":       {string(pem.EncodeToMemory(sealed)), sshkey.ErrPassphrase},
		"a passphrase, PKCS #8":       {armor("ENCRYPTED PRIVATE KEY", []byte("sealed")), sshkey.ErrPassphrase},
		"a public key":                {string(ssh.MarshalAuthorizedKey(sshPublic)), sshkey.ErrPublic},
		"a public key, PKIX":          {armor("PUBLIC KEY", pkix), sshkey.ErrPublic},
		"a public key, RFC 4716":      {"---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n---- END SSH2 PUBLIC KEY ----\n", sshkey.ErrPublic},
		"PuTTY's form":                {"PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n", sshkey.ErrPuTTY},
		"nothing":                     {"", sshkey.ErrNoKey},
		"a word":                      {"hunter2hunter2", sshkey.ErrNoKey},
		"half a key":                  {whole[:len(whole)/2], sshkey.ErrNoKey},
		"garbage in a key's form":     {armor("OPENSSH PRIVATE KEY", []byte("hunter2hunter2")), sshkey.ErrNoKey},
		"garbage in PKCS #8's form":   {armor("PRIVATE KEY", []byte("hunter2hunter2")), sshkey.ErrNoKey},
		"a certificate":               {armor("CERTIFICATE", []byte("hunter2hunter2")), sshkey.ErrNoKey},
		"a DSA key":                   {dsaKey(t), sshkey.ErrKind},
		"a key that signs nothing":    {pkcs8(t, x25519), sshkey.ErrKind},
		"a curve that ssh lacks":      {pkcs8(t, p224), sshkey.ErrKind},
		"a form of another programme": {armor("SSH2 ENCRYPTED PRIVATE KEY", []byte("x")), sshkey.ErrKind},
	} {
		t.Run(name, func(t *testing.T) {
			pair, err := sshkey.Parse([]byte(test.text))
			if !errors.Is(err, test.want) || pair != nil {
				t.Errorf("got %v, %v", pair, err)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("it quotes the text: %v", err)
			}
		})
	}
}

func dsaKey(t *testing.T) string {
	t.Helper()
	n := big.NewInt(7)
	der, err := asn1.Marshal(struct{ Version, P, Q, G, Pub, Priv *big.Int }{big.NewInt(0), n, n, n, n, n})
	must(t, err)
	return armor("DSA PRIVATE KEY", der)
}

// TestGenerate: each pair is a new one, its halves belong together, and it prints nothing of the private one.
func TestGenerate(t *testing.T) {
	t.Parallel()
	one, err := sshkey.Generate("jr2/team-a/key")
	must(t, err)
	other, err := sshkey.Generate("jr2/team-a/key")
	must(t, err)
	if one.Fingerprint == other.Fingerprint || one.Private.Reveal() == other.Private.Reveal() {
		t.Error("the same key twice")
	}
	again, err := sshkey.Parse([]byte(one.Private.Reveal()))
	must(t, err)
	if again.Fingerprint != one.Fingerprint || again.Public+" jr2/team-a/key" != one.Public || !strings.HasPrefix(one.Public, "ssh-ed25519 ") {
		t.Errorf("got %s, and read %s", one.Public, again.Public)
	}
	if shown := fmt.Sprintf("%v %+v %#v", *one, *one, *one); strings.Contains(shown, "BEGIN") || strings.Contains(shown, one.Private.Reveal()[50:70]) {
		t.Errorf("it prints %s", shown)
	}
}

// TestOpenSSHAgrees: ssh-keygen reads what is generated and what was rewritten, and finds the same public key in it.
func TestOpenSSHAgrees(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("no ssh-keygen here")
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	rewritten, err := sshkey.Parse([]byte(pkcs8(t, ed)))
	must(t, err)
	generated, err := sshkey.Generate("jr2/team-a/key")
	must(t, err)
	for name, pair := range map[string]*sshkey.Pair{"generated": generated, "rewritten": rewritten} {
		file := filepath.Join(t.TempDir(), "key")
		must(t, os.WriteFile(file, []byte(pair.Private.Reveal()), 0o600))
		public, err := exec.CommandContext(t.Context(), "ssh-keygen", "-y", "-P", "", "-f", file).Output()
		must(t, err)
		if strings.TrimSpace(string(public)) != pair.Public {
			t.Errorf("%s: ssh-keygen reads %s, want %s", name, public, pair.Public)
		}
		print, err := exec.CommandContext(t.Context(), "ssh-keygen", "-l", "-f", file).Output()
		must(t, err)
		if !strings.Contains(string(print), " "+pair.Fingerprint+" ") {
			t.Errorf("%s: ssh-keygen says %s, want %s", name, print, pair.Fingerprint)
		}
	}
}

// FuzzParse: no text brings it down.
func FuzzParse(f *testing.F) {
	pair, err := sshkey.Generate("")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(pair.Private.Reveal()))
	f.Add([]byte(pair.Public))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if pair, err := sshkey.Parse(text); (pair == nil) == (err == nil) {
			t.Errorf("got %v, %v", pair, err)
		}
	})
}
