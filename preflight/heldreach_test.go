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
	switch {
	case !there:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	case keys == nil:
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, name, errAway)
	}
	configMap := &corev1.ConfigMap{Data: map[string]string{}}
	for _, key := range keys {
		configMap.Data[key] = "hidden"
	}
	return configMap, nil
}

func TestHarnessReach(t *testing.T) {
	t.Parallel()
	secrets := keyedSecrets{"models": {"OPENAI_API_KEY", "REGION"}, "short": {"API_KEY"}, "fine": {"REGION"}, "signs": {"SECRET_ACCESS_KEY"}, "closed": nil}
	configMaps := keyedConfigMaps{"flags": {"HF_TOKEN"}, "plain": {"a"}, "closed": nil}
	named := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	secret := func(name, prefix string) config.Harness {
		return config.Harness{EnvFrom: []corev1.EnvFromSource{{Prefix: prefix, SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named(name)}}}}
	}
	configMap := func(name string, optional bool) config.Harness {
		return config.Harness{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named(name), Optional: &optional}}}}
	}
	keyOf := func(name, key string, optional bool) config.Harness {
		return config.Harness{Env: []config.HarnessEnv{{Name: "X", ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named(name), Key: key, Optional: &optional}}}}}
	}
	for what, c := range map[string]struct {
		harness config.Harness
		want    string
	}{
		"a model key": {secret("models", ""), `refuse model-key-reaches-harness Secret team-a/models: kubectl -n team-a create secret generic models-held --from-literal=OPENAI_API_KEY=..., ` +
			`remove key OPENAI_API_KEY from Secret models, and hold it: secrets: [{ name: "OPENAI_API_KEY", valueFrom: { secretKeyRef: { name: "models-held", key: "OPENAI_API_KEY" } } }]`},
		"one after the prefix": {secret("short", "GROQ_"), `refuse model-key-reaches-harness Secret team-a/short: kubectl -n team-a create secret generic short-held --from-literal=API_KEY=..., ` +
			`remove key API_KEY from Secret short, and hold it: secrets: [{ name: "GROQ_API_KEY", valueFrom: { secretKeyRef: { name: "short-held", key: "API_KEY" } } }]`},
		"none after the prefix": {secret("models", "MY_"), ""},
		"none":                  {secret("fine", ""), ""},
		"one in a ConfigMap": {configMap("flags", false), `refuse model-key-reaches-harness ConfigMap team-a/flags: kubectl -n team-a create secret generic flags-held --from-literal=HF_TOKEN=..., ` +
			`remove key HF_TOKEN from ConfigMap flags, and hold it: secrets: [{ name: "HF_TOKEN", valueFrom: { secretKeyRef: { name: "flags-held", key: "HF_TOKEN" } } }]`},
		"no such Secret":               {secret("gone", ""), ""},
		"a Secret that is not read":    {secret("closed", ""), "note not-looked-at Secret team-a/closed: "},
		"no such ConfigMap":            {configMap("gone", false), "warn configmap-missing ConfigMap team-a/gone: kubectl -n team-a create configmap gone --from-literal=KEY=..."},
		"one that need not be":         {configMap("gone", true), ""},
		"a ConfigMap that is not read": {configMap("closed", false), "note not-looked-at ConfigMap team-a/closed: "},
		"a key of a ConfigMap":         {keyOf("plain", "a", false), ""},
		"no such key":                  {keyOf("plain", "b", false), `warn configmap-missing ConfigMap team-a/plain: kubectl -n team-a patch configmap plain --type merge -p '{"data":{"b":"..."}}'`},
		"a key that need not be":       {keyOf("plain", "b", true), ""},
		"a key of none":                {keyOf("gone", "b", false), "warn configmap-missing ConfigMap team-a/gone: kubectl -n team-a create configmap gone --from-literal=b=..."},
		"a key that is not read":       {keyOf("closed", "b", false), "note not-looked-at ConfigMap team-a/closed: "},
		"credentials that sign": {config.Harness{Env: []config.HarnessEnv{{Name: "AWS_PROFILE", Value: config.NewSecret("hidden")}}},
			"warn signing-credentials-reach-harness Instance fx: give AWS_PROFILE few rights, or use a provider whose key travels in a header"},
		"some of a Secret": {secret("signs", "AWS_"), "warn signing-credentials-reach-harness Secret team-a/signs: give AWS_SECRET_ACCESS_KEY few rights, or use a provider whose key travels in a header"},
		"neither":          {config.Harness{EnvFrom: []corev1.EnvFromSource{{}}}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			findings, err := HarnessReach(t.Context(), secrets, configMaps, &config.Instance{Name: "fx", Harness: c.harness}, "team-a")
			var got []string
			for _, f := range findings {
				got = append(got, string(f.Severity)+" "+f.Code+" "+f.Object+": "+f.Fix)
				if strings.Contains(f.Message, "hidden") || !strings.Contains(f.Message, "harness.env") {
					t.Errorf("the message is %q", f.Message)
				}
			}
			if strings.Join(got, "\n") != c.want || err != nil {
				t.Errorf("got  %q, %v\nwant %q", got, err, c.want)
			}
		})
	}
}
