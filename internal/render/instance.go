package render

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
)

// Instance renders what every Instance has in its namespace: the Orchestrator with its rights, volume and Service, the configuration
// that it and the Harnesses read, the Secrets whose values derive from the configuration, and the NetworkPolicies.
//
// jr2-instance is rendered without the keys of InstanceSecretKeys: a server-side apply of it leaves those alone.
// jr2-held-secrets, jr2-held-tls and jr2-ca are there only when there is something to put in. jr2-held-ca is not rendered: the authority's key is
// the converge's own.
func Instance(in Input) ([]runtime.Object, error) {
	if err := in.complete(); err != nil {
		return nil, err
	}
	if err := in.Certificates.complete(in); err != nil {
		return nil, err
	}
	var images map[string]any
	if json.Unmarshal([]byte(in.ImageMap), &images) != nil || images == nil {
		return nil, ErrNoImageMap
	}
	objects := orchestratorRights(in)
	objects = append(objects,
		in.secret(names.InstanceSecret, derivedKeys(in)),
		in.secret(names.HarnessEnvSecret, harnessLiterals(in)),
	)
	if held := heldSecretObject(in); held != nil {
		objects = append(objects, held)
	}
	if Holds(in) {
		objects = append(objects, certificateSecret(in))
	}
	objects = append(objects,
		in.configMap(names.ImagesConfig, map[string]string{names.ImagesKey: in.ImageMap}),
		in.configMap(names.HarnessConfig, map[string]string{names.HarnessKey: harnessJSON(in)}),
		heldConfig(in),
	)
	if hasTrust(in) {
		trust, err := trustConfig(in)
		if err != nil {
			return nil, err
		}
		objects = append(objects, trust)
	}
	objects = append(objects, policies(in)...)
	return append(objects, stateClaim(in), orchestratorService(in), orchestratorDeployment(in)), nil
}

// complete checks what Instance and InstanceHarness need.
func (in Input) complete() error {
	switch {
	case in.Instance == nil:
		return ErrNoInstance
	case in.SigningKey.Reveal() == "":
		return ErrNoSigningKey
	case in.Instance.Harness.CABundle != "" && len(in.CABundle) == 0:
		return ErrNoCABundle
	}
	for _, held := range heldSecrets(in) {
		if _, _, err := held.Bindings(); err != nil {
			return fmt.Errorf("render: held secret %s: %w", held.Name, err)
		}
	}
	return nil
}

func (in Input) configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: kind("v1", "ConfigMap"), ObjectMeta: in.meta(name), Data: data}
}

// secret renders an Opaque Secret, possibly an empty one.
func (in Input) secret(name string, values map[string]config.Secret) *corev1.Secret {
	secret := &corev1.Secret{TypeMeta: kind("v1", "Secret"), ObjectMeta: in.meta(name), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{}}
	for key, value := range values {
		secret.Data[key] = []byte(value.Reveal())
	}
	return secret
}
