// Package sshkey makes and reads the pairs of keys with which repositories are cloned over ssh.
//
// It decides which keys fit a machine that nobody sits at: private ones without a passphrase, of a kind that OpenSSH takes. It knows no
// cluster, no file and no terminal.
package sshkey

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"jr2.dev/jr2/config"
)

// A Pair is a private key and what may be told of it.
type Pair struct {
	// Private is the private key in OpenSSH's own form, with a line end and without a passphrase.
	Private config.Secret
	// Public is the line of authorized_keys, "ssh-ed25519 AAAA… comment", without a line end.
	Public string
	// Fingerprint is "SHA256:…", as ssh-keygen -l writes it.
	Fingerprint string
}

var (
	// ErrPassphrase says that a private key is sealed with a passphrase.
	ErrPassphrase = errors.New("it has a passphrase, which nobody can type in the cluster — give a key without one, for example a new one: " +
		"ssh-keygen -t ed25519 -N '' -f jr2-deploy-key")
	// ErrPublic says that a public key was given for a private one.
	ErrPublic = errors.New("it is a public key — give the private one, which ssh-keygen keeps in the file of the same name without .pub")
	// ErrNoKey says that a text holds no private key.
	ErrNoKey = errors.New("it holds no private key: want all lines from -----BEGIN … PRIVATE KEY----- to -----END … PRIVATE KEY-----, as ssh-keygen writes them")
	// ErrKind says that a private key is of a kind or in a form that is not taken.
	ErrKind = errors.New("its kind of key is not taken: want Ed25519, ECDSA or RSA, as in: ssh-keygen -t ed25519 -N '' -f jr2-deploy-key")
	// ErrPuTTY says that a private key is in PuTTY's form.
	ErrPuTTY = errors.New("it is in PuTTY's form — write it in OpenSSH's: puttygen FILE -O private-openssh -o jr2-deploy-key")
)

// Generate makes an Ed25519 pair. The comment ends the public line, and says on the host of a repository whose key it is.
func Generate(comment string) (*Pair, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make an ssh key: %w", err)
	}
	return pairOf(private, comment)
}

// Parse reads a private key in OpenSSH's form, or in PEM of PKCS #1, PKCS #8 or SEC 1. What it gives is in OpenSSH's form, whatever the text
// was in: not every ssh reads an Ed25519 key of PKCS #8. Errors match those above and quote nothing of the text.
func Parse(text []byte) (*Pair, error) {
	block := privateBlock(text)
	if block == nil {
		return nil, notPrivate(text)
	}
	if block.Type == "ENCRYPTED PRIVATE KEY" {
		return nil, ErrPassphrase
	}
	raw, err := ssh.ParseRawPrivateKey(pem.EncodeToMemory(block))
	var sealed *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &sealed):
		return nil, ErrPassphrase
	case err != nil && strings.Contains(err.Error(), "unhandled key type"), err != nil && strings.Contains(err.Error(), "unsupported key type"):
		return nil, ErrKind
	case err != nil:
		return nil, fmt.Errorf("%w; what stands between them can't be read", ErrNoKey)
	}
	return pairOf(raw, "")
}

// privateBlock is the first block that holds a private key: openssl writes the parameters of a curve before it.
func privateBlock(text []byte) *pem.Block {
	for {
		block, rest := pem.Decode(text)
		if block == nil || strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return block
		}
		text = rest
	}
}

// notPrivate says what a text is that holds no private key.
func notPrivate(text []byte) error {
	text = bytes.TrimSpace(text)
	_, _, _, _, err := ssh.ParseAuthorizedKey(text)
	switch {
	case bytes.HasPrefix(text, []byte("PuTTY-User-Key-File-")):
		return ErrPuTTY
	case err == nil, bytes.Contains(text, []byte("BEGIN PUBLIC KEY-----")), bytes.Contains(text, []byte("BEGIN RSA PUBLIC KEY-----")),
		bytes.Contains(text, []byte("BEGIN SSH2 PUBLIC KEY ----")):
		return ErrPublic
	}
	return ErrNoKey
}

func pairOf(private crypto.PrivateKey, comment string) (*Pair, error) {
	if pointed, ok := private.(*ed25519.PrivateKey); ok {
		private = *pointed
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, ErrKind
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return nil, ErrKind
	}
	public := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	if comment != "" {
		public += " " + comment
	}
	return &Pair{
		Private:     config.NewSecret(string(pem.EncodeToMemory(block))),
		Public:      public,
		Fingerprint: ssh.FingerprintSHA256(signer.PublicKey()),
	}, nil
}
