package preflight

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jr2.dev/jr2/config"
)

// objects of a namespace by name, with the keys that each has; one without keys can't be read.
type (
	keyedSecrets    map[string][]string
	keyedConfigMaps map[string][]string
)

var errAway = errors.New("the server is away")

func (k keyedSecrets) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Secret, error) {
	keys, there := k[name]
	switch {
	case !there:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
	case keys == nil:
		return nil, errAway
	}
	secret := &corev1.Secret{Data: map[string][]byte{}}
	for _, key := range keys {
		secret.Data[key] = []byte("hidden")
	}
	return secret, nil
}

func (k keyedConfigMaps) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.ConfigMap, error) {
	keys, there := k[name]
	if !there {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	}
	configMap := &corev1.ConfigMap{Data: map[string]string{}}
	for _, key := range keys {
		configMap.Data[key] = "hidden"
	}
	return configMap, nil
}

func TestHarnessReach(t *testing.T) {
	t.Parallel()
	secrets := keyedSecrets{"models": {"OPENAI_API_KEY", "REGION"}, "short": {"API_KEY"}, "fine": {"REGION"}, "closed": nil}
	configMaps := keyedConfigMaps{"flags": {"HF_TOKEN"}}
	secret := func(name, prefix string) corev1.EnvFromSource {
		return corev1.EnvFromSource{Prefix: prefix, SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	}
	configMap := func(name string) corev1.EnvFromSource {
		return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	}
	for what, c := range map[string]struct {
		source corev1.EnvFromSource
		want   string
	}{
		"a model key":            {secret("models", ""), `refuse model-key-reaches-harness Secret team-a/models: secrets: [{ name: "OPENAI_API_KEY", valueFrom: { secretKeyRef: { name: "models", key: "OPENAI_API_KEY" } } }]`},
		"one after the prefix":   {secret("short", "GROQ_"), `refuse model-key-reaches-harness Secret team-a/short: secrets: [{ name: "GROQ_API_KEY", valueFrom: { secretKeyRef: { name: "short", key: "API_KEY" } } }]`},
		"none after the prefix":  {secret("models", "MY_"), ""},
		"none":                   {secret("fine", ""), ""},
		"one in a ConfigMap":     {configMap("flags"), `refuse model-key-reaches-harness ConfigMap team-a/flags: put the value into a Secret and name it: secrets: [{ name: "HF_TOKEN", valueFrom: { secretKeyRef: { name: ..., key: ... } } }]`},
		"no such ConfigMap":      {configMap("gone"), ""},
		"no such Secret":         {secret("gone", ""), ""},
		"one that does not read": {secret("closed", ""), "note not-looked-at Secret team-a/closed: "},
		"neither":                {corev1.EnvFromSource{}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			inst := &config.Instance{Harness: config.Harness{EnvFrom: []corev1.EnvFromSource{c.source}}}
			findings, err := HarnessReach(t.Context(), secrets, configMaps, inst, "team-a")
			var got []string
			for _, f := range findings {
				got = append(got, string(f.Severity)+" "+f.Code+" "+f.Object+": "+f.Fix)
				if strings.Contains(f.Message, "hidden") || f.Severity == Refuse && !strings.Contains(f.Message, "harness.envFrom[0]") {
					t.Errorf("the message is %q", f.Message)
				}
			}
			if strings.Join(got, "\n") != c.want || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
