package config

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"

	"jr2.dev/jr2/internal/folder"
)

const maxCABundle = 1 << 20 // what a ConfigMap can hold

// CABundle reads the PEM file that harness.caBundle names, relative to the Instance folder. nil without an error means that the
// configuration names none.
func (i *Instance) CABundle() ([]byte, error) {
	if i.Harness.CABundle == "" {
		return nil, nil
	}
	name := i.Harness.CABundle
	if !filepath.IsAbs(name) {
		name = filepath.Join(i.Root, name)
	}
	fail := func(why any) error {
		return i.problem("a PEM file, by a path relative to the Instance folder", "harness.caBundle", "%q (%s): %v", clip(i.Harness.CABundle), name, why)
	}
	text, err := i.readBundle(name)
	switch {
	case errors.Is(err, folder.ErrTooLarge):
		return nil, fail("is larger than " + FormatMemory(maxCABundle))
	case err != nil:
		return nil, fail(reason(err))
	}
	if err := checkPEM(text); err != nil {
		return nil, fail(err)
	}
	return text, nil
}

// readBundle opens the file in the folder; anywhere, when the caller gave the Instance as a value or admits what lies outside.
func (i *Instance) readBundle(name string) ([]byte, error) {
	if i.outside || i.Root == "" || !within(i.Root, name) {
		return folder.ReadFile(name, maxCABundle)
	}
	own, err := folder.Open(i.Root)
	if err != nil {
		return nil, err
	}
	defer own.Close()
	rel, _ := own.Rel(name)
	return own.ReadFile(rel, maxCABundle)
}

// checkPEM wants certificates and nothing else: the file becomes a ConfigMap, and a key in it would be public.
func checkPEM(text []byte) error {
	n := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("holds a %s, and only certificates belong there", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return err
		}
		n++
	}
	if n == 0 {
		return fmt.Errorf("holds no certificate")
	}
	return nil
}

// checkBundleInside refuses a CA bundle outside of the folder: it would be published.
func checkBundleInside(inst *Instance, f *fence) error {
	name := inst.Harness.CABundle
	if name == "" {
		return nil
	}
	if _, err := f.places[0].Real(name); errors.Is(err, folder.ErrOutside) {
		return inst.problem("a path relative to the Instance folder", "harness.caBundle", "%q lies outside the Instance folder", clip(name))
	}
	return nil
}
