package preflight

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/config"
)

// ConfigMapGetter is the call that HarnessReach makes of ConfigMaps; client-go's ConfigMapInterface has it.
type ConfigMapGetter interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.ConfigMap, error)
}

// Stable codes of what HarnessReach finds beside CodeModelKeyReaches.
const (
	// CodeConfigMapMissing is a ConfigMap, or a key of one, without which no Harness starts.
	CodeConfigMapMissing = "configmap-missing"
	// CodeSigningCredentials are keys that sign requests, so that no Custodian can hold them.
	CodeSigningCredentials = "signing-credentials-reach-harness"
)

// HarnessReach looks at what the Harness is given beside held secrets. A Secret or a ConfigMap of harness.envFrom that gives it a model key, which is to
// be held instead, refuses (source: reference, 4.5 R1 and 7.9). Credentials that sign requests warn (4.5), and so does a ConfigMap that is not there, or
// lacks the key that is asked for: the pods would not start. It looks at the names of keys and at no value. A Secret that does not exist is
// NamedSecrets' business; what can't be read is told in a Note.
func HarnessReach(ctx context.Context, secrets SecretGetter, configMaps ConfigMapGetter, inst *config.Instance, namespace string) ([]Finding, error) {
	r := harnessReach{ctx: ctx, configMaps: configMaps, namespace: namespace, read: map[string]*corev1.ConfigMap{}, failed: map[string]error{}}
	for i, source := range inst.Harness.EnvFrom {
		if ref := source.SecretRef; ref != nil {
			secret, err := secrets.Get(ctx, ref.Name, metav1.GetOptions{})
			if err == nil {
				r.keys(i, "Secret", ref.Name, source.Prefix, slices.Sorted(maps.Keys(secret.Data)))
			} else if !apierrors.IsNotFound(err) {
				r.unseen(fmt.Sprintf("harness.envFrom[%d] gives the Harness a model key", i), "Secret", ref.Name, err)
			}
		}
		if ref := source.ConfigMapRef; ref != nil {
			if configMap := r.configMap(fmt.Sprintf("harness.envFrom[%d]", i), ref.Name, "", isTrue(ref.Optional)); configMap != nil {
				r.keys(i, "ConfigMap", ref.Name, source.Prefix, slices.Sorted(maps.Keys(configMap.Data)))
			}
		}
	}
	for i, variable := range inst.Harness.Env {
		if isSigning(variable.Name) {
			r.signing(fmt.Sprintf("harness.env[%d]", i), "Instance "+inst.Name, variable.Name)
		}
		if variable.ValueFrom != nil && variable.ValueFrom.ConfigMapKeyRef != nil {
			ref := variable.ValueFrom.ConfigMapKeyRef
			r.configMap(fmt.Sprintf("harness.env[%d].valueFrom", i), ref.Name, ref.Key, isTrue(ref.Optional))
		}
	}
	return r.findings, context.Cause(ctx)
}

// harnessReach gathers findings; each ConfigMap is read once.
type harnessReach struct {
	ctx        context.Context
	configMaps ConfigMapGetter
	namespace  string
	read       map[string]*corev1.ConfigMap
	failed     map[string]error
	findings   []Finding
}

func (r *harnessReach) object(kind, name string) string {
	return fmt.Sprintf("%s %s/%s", kind, r.namespace, name)
}

// keys looks at the names of variables that an object gives.
func (r *harnessReach) keys(i int, kind, name, prefix string, keys []string) {
	for _, key := range keys {
		if _, isModelKey := config.LookupModelKey(prefix + key); isModelKey {
			r.findings = append(r.findings, r.reaching(i, kind, name, key, prefix+key))
		}
		if isSigning(prefix + key) {
			r.signing(fmt.Sprintf("harness.envFrom[%d]", i), r.object(kind, name), prefix+key)
		}
	}
}

// configMap reads one, and warns when it, or a key of it, is not there and has to be.
func (r *harnessReach) configMap(field, name, key string, optional bool) *corev1.ConfigMap {
	if name == "" {
		return nil // the configuration is at fault, which is told
	}
	configMap, seen := r.read[name]
	if !seen {
		configMap, r.failed[name] = r.configMaps.Get(r.ctx, name, metav1.GetOptions{})
		r.read[name] = configMap
	}
	err := r.failed[name]
	switch {
	case apierrors.IsNotFound(err):
		if !optional {
			r.missing(field, name, key, fmt.Sprintf("which does not exist in namespace %q", r.namespace),
				fmt.Sprintf("kubectl -n %s create configmap %s --from-literal=%s=...", r.namespace, name, orKey(key)))
		}
		return nil
	case err != nil:
		r.unseen(fmt.Sprintf("%s can be given to the Harness, and what it gives", field), "ConfigMap", name, err)
		return nil
	}
	_, text := configMap.Data[key]
	if _, binary := configMap.BinaryData[key]; key != "" && !text && !binary && !optional {
		r.missing(field, name, key, fmt.Sprintf("which has no key %q", key), fmt.Sprintf(`kubectl -n %s patch configmap %s --type merge -p '{"data":{"%s":"..."}}'`, r.namespace, name, key))
	}
	return configMap
}

func (r *harnessReach) missing(field, name, key, why, fix string) {
	r.findings = append(r.findings, Finding{
		Severity: Warn, Code: CodeConfigMapMissing, Object: r.object("ConfigMap", name), Fix: fix,
		Message: fmt.Sprintf("%s names ConfigMap %q, %s, so no Harness would start — create it first: %s", field, name, why, fix),
	})
}

func orKey(key string) string {
	if key == "" {
		return "KEY"
	}
	return key
}

func (r *harnessReach) unseen(what, kind, name string, err error) {
	r.findings = append(r.findings, Finding{
		Severity: Note, Code: CodeNotLookedAt, Object: r.object(kind, name), Message: fmt.Sprintf("nobody could say whether %s: %v", what, err),
	})
}

// isSigning knows the variables of credentials that sign a request instead of travelling in it, so that a Custodian can't swap them.
func isSigning(name string) bool {
	return slices.Contains([]string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "GOOGLE_APPLICATION_CREDENTIALS"}, name)
}

func (r *harnessReach) signing(field, object, name string) {
	r.findings = append(r.findings, Finding{
		Severity: Warn, Code: CodeSigningCredentials, Object: object,
		Message: fmt.Sprintf("%s gives the Harness %s, which signs requests and so can't be held: every Agent can read it — give it few rights, or use a key that travels in a header", field, name),
		Fix:     "give " + name + " few rights, or use a provider whose key travels in a header",
	})
}

// reaching has the fix that holds: a Secret that harness.envFrom names may not be the one that a held value lies in (R13).
func (r *harnessReach) reaching(i int, kind, name, key, variable string) Finding {
	own := name + "-held"
	fix := fmt.Sprintf("kubectl -n %s create secret generic %s --from-literal=%s=..., remove key %s from %s %s, and hold it: "+
		"secrets: [{ name: %q, valueFrom: { secretKeyRef: { name: %q, key: %q } } }]", r.namespace, own, key, key, kind, name, variable, own, key)
	return Finding{
		Severity: Refuse, Code: CodeModelKeyReaches, Object: r.object(kind, name), Fix: fix,
		Message: fmt.Sprintf("harness.envFrom[%d] names %s %q, whose key %q gives the Harness the model key %s, so every Agent could read it — move it to a "+
			"Secret of its own: %s", i, kind, name, key, variable, fix),
	}
}
