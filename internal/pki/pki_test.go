package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"
)

func at(date string) time.Time {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		panic(err)
	}
	return day
}

func authority(t *testing.T, now time.Time) Pair {
	t.Helper()
	pair, err := NewAuthority("review", now)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func hostPair(t *testing.T, ca Pair, host Host, now time.Time) Pair {
	t.Helper()
	pair, err := NewHost(ca, host, now)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

var (
	name    = Host{"search.example.com", 443}
	address = Host{"2001:db8::1", 8443}
)

func TestAuthorityIsAsTheSourceSays(t *testing.T) {
	t.Parallel()
	now := at("2026-11-30")
	cert, _, err := authority(t, now).read()
	if err != nil {
		t.Fatal(err)
	}
	if cert.Subject.String() != "CN=jr2 held-secret CA (review)" || !cert.IsCA || !cert.MaxPathLenZero || cert.MaxPathLen != 0 ||
		cert.KeyUsage != x509.KeyUsageCertSign|x509.KeyUsageCRLSign || len(cert.SubjectKeyId) != 20 || cert.SignatureAlgorithm != x509.ECDSAWithSHA256 {
		t.Errorf("%+v", cert)
	}
	if !cert.NotBefore.Equal(now.Add(-time.Hour)) || !cert.NotAfter.Equal(now.Add(3650*day)) || cert.SerialNumber.Sign() <= 0 || len(cert.SerialNumber.Bytes()) != 16 {
		t.Errorf("from %s to %s, serial %x", cert.NotBefore, cert.NotAfter, cert.SerialNumber)
	}
}

func TestHostIsAsTheSourceSays(t *testing.T) {
	t.Parallel()
	now := at("2026-11-30")
	ca := authority(t, now)
	parent, _, _ := ca.read()
	for _, host := range []Host{name, address, {strings.Repeat("a.", 60) + "example.com", 443}, {"192.0.2.7", 443}} {
		cert, _, err := hostPair(t, ca, host, now).read()
		if err != nil {
			t.Fatal(err)
		}
		if cert.IsCA || !cert.BasicConstraintsValid || cert.KeyUsage != x509.KeyUsageDigitalSignature || !reflect.DeepEqual(cert.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) ||
			!bytes.Equal(cert.AuthorityKeyId, parent.SubjectKeyId) || len(cert.SubjectKeyId) != 20 || !cert.NotAfter.Equal(now.Add(365*day)) {
			t.Errorf("%s: %+v", host.Name, cert)
		}
		if len(cert.DNSNames)+len(cert.IPAddresses) != 1 || cert.VerifyHostname(host.Name) != nil {
			t.Errorf("%s: names %v %v", host.Name, cert.DNSNames, cert.IPAddresses)
		}
		if want := host.Name; len(want) <= 64 && cert.Subject.CommonName != want || len(want) > 64 && cert.Subject.CommonName != "" {
			t.Errorf("%s: %s", host.Name, cert.Subject)
		}
	}
}

// TestATLSClientIsContent opens a real connection: a client that trusts the authority and nothing else takes the certificate.
func TestATLSClientIsContent(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ca := authority(t, now)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Cert)
	for _, host := range []Host{name, address} {
		pair := hostPair(t, ca, host, now)
		cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := net.Pipe()
		go tls.Server(theirs, &tls.Config{Certificates: []tls.Certificate{cert}}).Handshake() //nolint:errcheck // the client tells
		if err := tls.Client(ours, &tls.Config{ServerName: host.Name, RootCAs: roots}).Handshake(); err != nil {
			t.Errorf("%s: %v", host.Name, err)
		}
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	now := at("2026-11-30")
	ca, other := authority(t, now), authority(t, now)
	leaf := hostPair(t, ca, name, now)
	kept := func(ca *Pair, hosts ...Pair) Kept {
		k := Kept{Authority: ca, Hosts: map[string]Pair{}}
		for _, pair := range hosts {
			k.Hosts[name.Stem()] = pair
		}
		return k
	}
	mixed := Pair{Cert: ca.Cert, Key: other.Key}
	for what, c := range map[string]struct {
		kept      Kept
		hosts     []Host
		now       time.Time
		authority string
		lost      bool
		due       []Due
	}{
		"nothing yet":             {kept(nil), []Host{name}, now, "there is none", false, []Due{{name, "a new authority"}}},
		"all there":               {kept(&ca, leaf), []Host{name}, now, "", false, nil},
		"twice the same host":     {kept(&ca, leaf), []Host{name, name}, now, "", false, nil},
		"a host more":             {kept(&ca, leaf), []Host{name, address}, now, "", false, []Due{{address, "there is none"}}},
		"a host less":             {kept(&ca, leaf), nil, now, "", false, nil},
		"the authority is gone":   {kept(nil, leaf), []Host{name}, now, "there is none", true, []Due{{name, "a new authority"}}},
		"another key":             {kept(&mixed, leaf), []Host{name}, now, "its key is that of another certificate", true, []Due{{name, "a new authority"}}},
		"no authority at all":     {kept(&leaf, leaf), []Host{name}, now, "its certificate is none of an authority", true, []Due{{name, "a new authority"}}},
		"rubbish":                 {kept(&Pair{[]byte("x"), []byte("y")}), []Host{name}, now, "its certificate does not read: want one PEM block CERTIFICATE", true, []Due{{name, "a new authority"}}},
		"of another authority":    {kept(&other, leaf), []Host{name}, now, "", false, []Due{{name, "it is not of the Instance's authority"}}},
		"of another host":         {kept(&ca, hostPair(t, ca, address, now)), []Host{name}, now, "", false, []Due{{name, "it is for another host"}}},
		"a day before it is due":  {kept(&ca, leaf), []Host{name}, now.Add(334 * day), "", false, nil},
		"30 days are left":        {kept(&ca, leaf), []Host{name}, now.Add(335 * day), "", false, []Due{{name, "it ends on 2027-11-30"}}},
		"expired":                 {kept(&ca, leaf), []Host{name}, now.Add(400 * day), "", false, []Due{{name, "it ends on 2027-11-30"}}},
		"the authority is aging":  {kept(&ca, leaf), []Host{name}, now.Add(3286 * day), ErrAging.Error(), false, []Due{{name, "a new authority"}}},
		"the authority expired":   {kept(&ca, leaf), []Host{name}, now.Add(3650 * day), "it has expired", true, []Due{{name, "a new authority"}}},
		"a clock before its time": {kept(&ca, leaf), []Host{name}, now.Add(-2 * time.Hour), "it is not valid yet", true, []Due{{name, "a new authority"}}},
	} {
		t.Run(what, func(t *testing.T) {
			d := Decide(c.kept, c.hosts, c.now)
			if d.Authority != c.authority || d.Lost != c.lost || !reflect.DeepEqual(d.Due, c.due) {
				t.Errorf("authority %q, lost %v, due %v", d.Authority, d.Lost, d.Due)
			}
			if again := Decide(c.kept, c.hosts, c.now); !reflect.DeepEqual(d, again) {
				t.Error("decided otherwise the second time")
			}
		})
	}
}

// TestMakeCompletes: what is made is what the next decision keeps, and what stayed is the same bytes.
func TestMakeCompletes(t *testing.T) {
	t.Parallel()
	now := at("2026-11-30")
	ca := authority(t, now)
	first, err := Decide(Kept{}, []Host{name}, now).Make(ca, now)
	if err != nil {
		t.Fatal(err)
	}
	hosts := []Host{name, address}
	second, err := Decide(Kept{&ca, first}, hosts, now).Make(ca, now)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(second[name.Stem()], first[name.Stem()]) || len(second) != 2 {
		t.Error("a certificate that could stay was made again, or one is missing")
	}
	if d := Decide(Kept{&ca, second}, hosts, now); d.Authority != "" || len(d.Due) > 0 {
		t.Errorf("still due: %+v", d)
	}
}

// TestNoCertificateOutlivesItsAuthority also where somebody made the authority shorter.
func TestNoCertificateOutlivesItsAuthority(t *testing.T) {
	t.Parallel()
	now := at("2026-11-30")
	late := now.Add(3600 * day)
	cert, _, err := hostPair(t, authority(t, now), name, late).read()
	if err != nil || !cert.NotAfter.Equal(now.Add(3650*day)) {
		t.Errorf("ends %v, %v", cert.NotAfter, err)
	}
}

func TestKeysDoNotPrint(t *testing.T) {
	t.Parallel()
	ca := authority(t, at("2026-11-30"))
	text, err := json.Marshal(map[string]any{"pair": ca, "kept": Kept{&ca, map[string]Pair{"a": ca}}})
	if err != nil {
		t.Fatal(err)
	}
	printed := string(text) + fmt.Sprintf("%v %+v %#v %s %q %x %v %#v", ca, ca, ca, ca, ca, ca, Kept{&ca, nil}, &ca) + fmt.Sprint(errors.New("x"))
	block, _ := pem.Decode(ca.Key)
	for _, secret := range []string{"PRIVATE", string(ca.Key), string(block.Bytes), fmt.Sprintf("%x", block.Bytes), fmt.Sprint(block.Bytes)} {
		if strings.Contains(printed, secret) {
			t.Fatal("a private key is printed")
		}
	}
	if !strings.Contains(printed, ca.Fingerprint()) {
		t.Error("nothing tells which certificate it is")
	}
}

func TestStemsAreKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]Host{}
	for _, host := range []Host{name, {"search.example.com", 8443}, address, {"2001:db8::2", 8443}, {"a_b.example", 443}, {strings.Repeat("a", 253), 443}, {"192.0.2.7", 443}} {
		stem := host.Stem()
		if len(stem) > 240 || strings.Trim(stem, "abcdefghijklmnopqrstuvwxyz0123456789-._") != "" {
			t.Errorf("%q is no part of a key", stem)
		}
		if other, taken := seen[stem]; taken {
			t.Errorf("%v and %v are both %s", host, other, stem)
		}
		seen[stem] = host
	}
}

func TestPublicRoots(t *testing.T) {
	t.Parallel()
	text := PublicRoots()
	n := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			t.Error(err)
		}
		n++
	}
	if n < 100 || !bytes.Equal(text, PublicRoots()) {
		t.Errorf("%d roots", n)
	}
	if len(text) > 256<<10 {
		t.Errorf("%d bytes: two of these and a bundle of the user must fit into a ConfigMap", len(text))
	}
}
