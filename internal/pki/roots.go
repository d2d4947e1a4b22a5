package pki

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// PublicRoots are the authorities of the public web in PEM: the list of the browsers as the Go project carries it, so that each machine
// renders the same. One that the list trusts under a condition is left out, because a PEM file can't say the condition.
func PublicRoots() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) //nolint:errcheck // a Buffer takes all
		}
	}
	return text.Bytes()
}
