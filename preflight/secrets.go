package preflight

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/seed"
)

// SecretGetter is the one call that NamedSecrets makes; client-go's SecretInterface has it.
type SecretGetter interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.Secret, error)
}

// NamedSecrets checks that each Secret which the configuration names is in the namespace, and has the key that is asked for. What is missing
// refuses; a missing deploy key of a repository only warns, because the clone may be made later. It looks at the names of keys and at
// no value. Each Secret is read once. One that the caller may not read is told in a Note, since nobody knows whether it is there; another error is
// returned with the findings so far.
func NamedSecrets(ctx context.Context, secrets SecretGetter, inst *config.Instance, namespace string) ([]Finding, error) {
	reader := secretReader{ctx: ctx, secrets: secrets, namespace: namespace, seen: map[string]*corev1.Secret{}}
	var findings []Finding
	for i, held := range inst.Secrets {
		if held.ValueFrom == nil || held.ValueFrom.Name == "" {
			continue // without a name it is the configuration that is at fault, which is told
		}
		field := fmt.Sprintf("secrets[%d].valueFrom", i)
		missing := fmt.Sprintf(seed.SecretMissing, i, held.ValueFrom.Name, held.ValueFrom.Name, held.ValueFrom.Key)
		findings = reader.require(findings, field, held.ValueFrom.Name, held.ValueFrom.Key, missing)
	}
	for i, source := range inst.Harness.EnvFrom {
		if ref := source.SecretRef; ref != nil && !isTrue(ref.Optional) {
			missing := fmt.Sprintf(seed.EnvFromMissing, ref.Name, namespace, namespace, ref.Name)
			findings = reader.require(findings, fmt.Sprintf("harness.envFrom[%d]", i), ref.Name, "", missing)
		}
	}
	for i, env := range inst.Harness.Env {
		if env.ValueFrom == nil || env.ValueFrom.SecretKeyRef == nil || isTrue(env.ValueFrom.SecretKeyRef.Optional) {
			continue
		}
		ref, field := env.ValueFrom.SecretKeyRef, fmt.Sprintf("harness.env[%d].valueFrom", i)
		missing := fmt.Sprintf("%s names Secret %q, which does not exist in namespace %q — create it first: %s",
			field, ref.Name, namespace, createSecret(namespace, ref.Name, ref.Key))
		findings = reader.require(findings, field, ref.Name, ref.Key, missing)
	}
	findings = append(findings, reader.deployKeys(inst)...)
	return findings, reader.err
}

type secretReader struct {
	ctx       context.Context
	secrets   SecretGetter
	namespace string
	seen      map[string]*corev1.Secret // nil for one that does not exist
	err       error
}

// require adds a finding when the Secret, or its key where one is given, is not there.
func (r *secretReader) require(findings []Finding, field, name, key, missing string) []Finding {
	finding := Finding{Severity: Refuse, Object: "Secret " + r.namespace + "/" + name}
	secret := r.get(name)
	if apierrors.IsForbidden(r.err) {
		finding.Severity, finding.Code = Note, CodeNotLookedAt
		finding.Message = fmt.Sprintf("nobody could say whether Secret %q, which %s names, is there: %v", name, field, r.err)
		r.err = nil
		return append(findings, finding)
	}
	if r.err != nil {
		return findings
	}
	if secret == nil {
		finding.Code, finding.Message, finding.Fix = CodeSecretMissing, missing, createSecret(r.namespace, name, key)
		return append(findings, finding)
	}
	if _, ok := secret.Data[key]; key == "" || ok {
		return findings
	}
	finding.Code = CodeSecretKeyMissing
	finding.Fix = fmt.Sprintf(`kubectl -n %s patch secret %s --type merge -p '{"stringData":{"%s":"..."}}'`, r.namespace, name, key)
	finding.Message = fmt.Sprintf("%s names key %q of Secret %q, and that Secret has no such key — add it: %s", field, key, name, finding.Fix)
	return append(findings, finding)
}

func (r *secretReader) get(name string) *corev1.Secret {
	secret, seen := r.seen[name]
	if seen || r.err != nil {
		return secret
	}
	secret, err := r.secrets.Get(r.ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret = nil
	} else if err != nil {
		r.err = fmt.Errorf("read Secret %s/%s that the configuration names: %w", r.namespace, name, err)
		return nil
	}
	r.seen[name] = secret
	return secret
}

func createSecret(namespace, name, key string) string {
	if key == "" {
		key = "KEY"
	}
	return fmt.Sprintf("kubectl -n %s create secret generic %s --from-literal=%s=...", namespace, name, key)
}

func isTrue(b *bool) bool { return b != nil && *b }
