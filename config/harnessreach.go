package config

import (
	"fmt"
	"slices"
)

// checkHarnessReach refuses what would give the Harness a held value, a Kit Secret or a model key after all.
func checkHarnessReach(inst *Instance, held map[string]bool) error {
	holds := len(held) > 0 || inst.Harness.Provider != nil && inst.Harness.Provider.APIKey.Present()
	for i, variable := range inst.Harness.Env {
		path := fmt.Sprintf("harness.env[%d]", i)
		_, modelKey := LookupModelKey(variable.Name)
		switch {
		case held[variable.Name]:
			return inst.problem(hintSecrets, path+".name", "%q is held in secrets already", variable.Name)
		case modelKey:
			return inst.problem(hintSecrets, path+".name", "%q is a model key — hold it in secrets, so that no Agent can read it", variable.Name)
		case holds && slices.Contains(trustVariables(), variable.Name):
			return inst.problem(hintHarness, path+".name", "%q is a proxy or trust variable, which held secrets set themselves", variable.Name)
		}
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
			ref := variable.ValueFrom.SecretKeyRef
			if why := reaches(inst, ref.Name, ref.Key); why != "" {
				return inst.problem(hintHarness, path+".valueFrom.secretKeyRef", "%s", why)
			}
		}
		for n, secret := range inst.Secrets {
			if value := secret.Value.Reveal(); value != "" && value == variable.Value.Reveal() {
				return inst.problem(hintHarness, path+".value", "is the value of secrets[%d], so the Harness would see it after all", n)
			}
		}
	}
	for i, source := range inst.Harness.EnvFrom {
		if source.SecretRef == nil {
			continue
		}
		if why := reaches(inst, source.SecretRef.Name, ""); why != "" {
			return inst.problem(hintHarness, fmt.Sprintf("harness.envFrom[%d].secretRef", i), "%s", why)
		}
	}
	return nil
}

// reaches says why the Harness may not read a key of a Secret; an empty key means the whole Secret.
func reaches(inst *Instance, name, key string) string {
	if slices.Contains(kitSecrets(), name) {
		return fmt.Sprintf("%q is a Secret of the Kit, which no Harness may read", name)
	}
	for n, held := range inst.Secrets {
		if held.ValueFrom != nil && held.ValueFrom.Name == name && (key == "" || held.ValueFrom.Key == key) {
			return fmt.Sprintf("Secret %q holds the value of secrets[%d], so the Harness would see it after all", clip(name), n)
		}
	}
	return ""
}
