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

// HarnessReach refuses a Secret or a ConfigMap of harness.envFrom that gives the Harness a model key, which is to be held instead (source:
// reference, 4.5 R1 and 7.9). It looks at the names of keys and at no value. One that does not exist is another check's business; one that
// can't be read is told in a note.
func HarnessReach(ctx context.Context, secrets SecretGetter, configMaps ConfigMapGetter, inst *config.Instance, namespace string) ([]Finding, error) {
	var findings []Finding
	for i, source := range inst.Harness.EnvFrom {
		object, name, keys, err := keysOf(ctx, secrets, configMaps, source)
		switch {
		case ctx.Err() != nil:
			return findings, err
		case apierrors.IsNotFound(err):
		case err != nil:
			findings = append(findings, Finding{
				Severity: Note, Code: CodeNotLookedAt, Object: fmt.Sprintf("%s %s/%s", object, namespace, name),
				Message: fmt.Sprintf("nobody could say whether harness.envFrom[%d] gives the Harness a model key: %v", i, err),
			})
		}
		for _, key := range keys {
			if _, isModelKey := config.LookupModelKey(source.Prefix + key); isModelKey {
				findings = append(findings, reaching(i, object, namespace, name, key, source.Prefix+key))
			}
		}
	}
	return findings, nil
}

// keysOf names the object of a source and its keys, sorted.
func keysOf(ctx context.Context, secrets SecretGetter, configMaps ConfigMapGetter, source corev1.EnvFromSource) (object, name string, keys []string, err error) {
	switch {
	case source.SecretRef != nil:
		secret, err := secrets.Get(ctx, source.SecretRef.Name, metav1.GetOptions{})
		if err != nil {
			return "Secret", source.SecretRef.Name, nil, err
		}
		return "Secret", source.SecretRef.Name, slices.Sorted(maps.Keys(secret.Data)), nil
	case source.ConfigMapRef != nil:
		configMap, err := configMaps.Get(ctx, source.ConfigMapRef.Name, metav1.GetOptions{})
		if err != nil {
			return "ConfigMap", source.ConfigMapRef.Name, nil, err
		}
		return "ConfigMap", source.ConfigMapRef.Name, slices.Sorted(maps.Keys(configMap.Data)), nil
	}
	return "", "", nil, nil
}

func reaching(i int, object, namespace, name, key, variable string) Finding {
	fix := fmt.Sprintf("secrets: [{ name: %q, valueFrom: { secretKeyRef: { name: %q, key: %q } } }]", variable, name, key)
	if object != "Secret" {
		fix = fmt.Sprintf("put the value into a Secret and name it: secrets: [{ name: %q, valueFrom: { secretKeyRef: { name: ..., key: ... } } }]", variable)
	}
	return Finding{
		Severity: Refuse, Code: CodeModelKeyReaches, Object: fmt.Sprintf("%s %s/%s", object, namespace, name), Fix: fix,
		Message: fmt.Sprintf("harness.envFrom[%d] names %s %q, whose key %q gives the Harness the model key %s, so every Agent could read it — hold it "+
			"instead, out of an object that harness.envFrom does not name: %s", i, object, name, key, variable, fix),
	}
}
