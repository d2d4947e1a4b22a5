package render

import (
	"bytes"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/pki"
)

// maxConfigMap is what the API server takes of a ConfigMap's data.
const maxConfigMap = 1 << 20

// hasTrust says that there is an authority to trust beside the public ones.
func hasTrust(in Input) bool { return len(in.CABundle) > 0 || Holds(in) }

// trustConfig is jr2-ca. While secrets are held, the Harness trusts the Instance's authority, which speaks for the bound hosts; the Custodian,
// which speaks to those hosts, never does. Errors: *TrustSizeError.
func trustConfig(in Input) (*corev1.ConfigMap, error) {
	data := trustData(in)
	if err := checkTrustSize(in, data); err != nil {
		return nil, err
	}
	return in.configMap(names.TrustConfig, data), nil
}

// CheckTrust says before anything is made that harness.caBundle is too large to be trusted beside what held secrets need: a *TrustSizeError.
func CheckTrust(in Input) error {
	if in.Instance == nil {
		return ErrNoInstance
	}
	in.Certificates = &Certificates{Authority: make([]byte, 1024)} // more than one has
	return checkTrustSize(in, trustData(in))
}

func trustData(in Input) map[string]string {
	data := map[string]string{}
	if len(in.CABundle) > 0 {
		data[names.CAKey] = string(in.CABundle)
	}
	if Holds(in) {
		roots, own := pki.PublicRoots(), in.Certificates.Authority
		data[names.ExtraKey] = joined(in.CABundle, own)
		data[names.BundleKey] = joined(roots, in.CABundle, own)
		data[names.UpstreamKey] = joined(roots, in.CABundle)
	}
	return data
}

func checkTrustSize(in Input, data map[string]string) error {
	size := 0
	for key, text := range data {
		size += len(key) + len(text)
	}
	if !Holds(in) || size <= maxConfigMap {
		return nil
	}
	return &TrustSizeError{Bundle: len(in.CABundle), Most: len(in.CABundle) - (size-maxConfigMap+3)/4}
}

// joined puts PEM files one after the other, each ended by a newline.
func joined(files ...[]byte) string {
	var all bytes.Buffer
	for _, file := range files {
		all.Write(file)
		if len(file) > 0 && file[len(file)-1] != '\n' {
			all.WriteByte('\n')
		}
	}
	return all.String()
}

// A TrustSizeError says that the file of harness.caBundle is too large beside the public authorities that held secrets need.
type TrustSizeError struct {
	// Bundle is the size of the file, Most what it may be, in bytes.
	Bundle, Most int
}

func (e *TrustSizeError) Error() string {
	return fmt.Sprintf("harness.caBundle has %d bytes; while secrets are held it may have %d, because ConfigMap %s holds it four times, twice with the public "+
		"authorities — leave out of it what is public", e.Bundle, e.Most, names.TrustConfig)
}

// trustEnv is whom a Harness trusts, and while secrets are held, the proxy that it sends https through. HTTP_PROXY is left alone: a held value
// never travels in the clear.
func trustEnv(in Input) []corev1.EnvVar {
	if !Holds(in) {
		if len(in.CABundle) == 0 {
			return nil
		}
		return []corev1.EnvVar{{Name: "NODE_EXTRA_CA_CERTS", Value: trustDir + "/" + names.CAKey}}
	}
	proxy, loopback := fmt.Sprintf("http://127.0.0.1:%d", names.CustodianEgressPort), "localhost,127.0.0.1,::1"
	return []corev1.EnvVar{
		{Name: "HTTPS_PROXY", Value: proxy},
		{Name: "https_proxy", Value: proxy},
		{Name: "NO_PROXY", Value: loopback},
		{Name: "no_proxy", Value: loopback},
		{Name: "NODE_USE_ENV_PROXY", Value: "1"},
		{Name: "NODE_EXTRA_CA_CERTS", Value: trustDir + "/" + names.ExtraKey},
		{Name: "SSL_CERT_FILE", Value: trustDir + "/" + names.BundleKey},
		{Name: "REQUESTS_CA_BUNDLE", Value: trustDir + "/" + names.BundleKey},
		{Name: "GIT_SSL_CAINFO", Value: trustDir + "/" + names.BundleKey},
	}
}
