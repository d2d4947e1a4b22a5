package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	kubeauth "github.com/google/go-containerregistry/pkg/authn/kubernetes"
	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
)

// A pullEntry is what a Secret holds for one registry, or for a part of one.
type pullEntry struct {
	registry string // as the Secret writes it
	keychain authn.Keychain
}

// read sorts a Secret by what a kubelet makes of it. An entry that can't be read breaks all of them, and the other Secrets of the pod
// with it: a kubelet pulls nothing then (k8s.io/kubernetes, pkg/credentialprovider/secrets).
func (s *pullSecret) read(ctx context.Context, secret *corev1.Secret) {
	entries, err := entriesOf(secret)
	switch {
	case err != nil:
		s.state, s.words = secretBroken, fmt.Sprintf("cannot be read: %v", err)
		return
	case entries == nil:
		s.state, s.words = secretOfOtherType, fmt.Sprintf("is of the type %s, which holds no pull credentials", secret.Type)
		return
	}
	for _, registry := range slices.Backward(slices.Sorted(maps.Keys(entries))) { // as a kubelet tries them
		keychain, err := keychainOf(ctx, registry, entries[registry])
		if err != nil {
			s.state, s.words = secretBroken, fmt.Sprintf("cannot be read: its entry for %s: %v", registry, err)
			return
		}
		s.entries = append(s.entries, pullEntry{registry, keychain})
	}
}

// entriesOf are the entries of both types that kubelets know; nil for a Secret of another type.
func entriesOf(secret *corev1.Secret) (map[string]json.RawMessage, error) {
	entries := map[string]json.RawMessage{}
	if data := secret.Data[corev1.DockerConfigJsonKey]; secret.Type == corev1.SecretTypeDockerConfigJson && len(data) > 0 {
		var config struct {
			Auths map[string]json.RawMessage `json:"auths"`
		}
		err := json.Unmarshal(data, &config)
		maps.Copy(entries, config.Auths)
		return entries, err
	}
	if data := secret.Data[corev1.DockerConfigKey]; secret.Type == corev1.SecretTypeDockercfg && len(data) > 0 {
		err := json.Unmarshal(data, &entries)
		return entries, err
	}
	return nil, nil
}

// keychainOf has one entry, so that each can be tried: the library gives only the first that matches, and a kubelet tries them all.
func keychainOf(ctx context.Context, registry string, entry json.RawMessage) (authn.Keychain, error) {
	data, err := json.Marshal(map[string]map[string]json.RawMessage{"auths": {registry: entry}})
	if err != nil {
		return nil, err
	}
	return kubeauth.NewFromPullSecrets(ctx, []corev1.Secret{{
		Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: data},
	}})
}

// A credential is what a kubelet would show to a registry.
type credential struct {
	user, password string
	from           *pullSecret
}

// authenticator shows them. A kubelet that has neither asks without.
func (c credential) authenticator() authn.Authenticator {
	if c.empty() {
		return authn.Anonymous
	}
	return &authn.Basic{Username: c.user, Password: c.password}
}

func (c credential) empty() bool { return c.user == "" && c.password == "" }

// credentialsFor are those that the Secrets hold for an image. Kubernetes knows Docker Hub as docker.io, and uses what is held for
// index.docker.io, docker's own name for it, when there is nothing else.
func credentialsFor(ctx context.Context, secrets []*pullSecret, image string) ([]credential, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return nil, err
	}
	repository := ref.Context()
	spellings := []authn.Resource{repository}
	if repository.RegistryStr() == name.DefaultRegistry {
		spellings = []authn.Resource{dockerIO(repository.RepositoryStr()), repository}
	}
	for _, spelling := range spellings {
		var all []credential
		for _, secret := range secrets {
			for _, entry := range secret.entries {
				user, password, ok, err := entry.credentials(ctx, spelling)
				if err != nil {
					return nil, err
				}
				if c := (credential{user, password, secret}); ok && !slices.Contains(all, c) {
					all = append(all, c)
				}
			}
		}
		if len(all) > 0 {
			return all, nil
		}
	}
	return nil, nil
}

// credentials are user and password alone: a kubelet does not use the tokens that such an entry may have beside them.
func (e pullEntry) credentials(ctx context.Context, of authn.Resource) (user, password string, ok bool, err error) {
	authenticator, err := authn.Resolve(ctx, e.keychain, of)
	if err != nil || authenticator == authn.Anonymous {
		return "", "", false, err
	}
	config, err := authn.Authorization(ctx, authenticator)
	if err != nil {
		return "", "", false, err
	}
	return config.Username, config.Password, true, nil
}

// dockerIO is a repository of Docker Hub under the name that Kubernetes has for it.
type dockerIO string

// String implements authn.Resource.
func (d dockerIO) String() string { return "docker.io/" + string(d) }

// RegistryStr implements authn.Resource.
func (d dockerIO) RegistryStr() string { return "docker.io" }
