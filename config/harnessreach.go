package config

import (
	"fmt"
	"slices"
)

// checkHarnessReach refuses what would give the Harness a held value, a Kit Secret or a model key after all.
func checkHarnessReach(p *problems, held map[string]bool) {
	harness := p.inst.Harness
	holds := len(held) > 0 || harness.Provider != nil && harness.Provider.APIKey.Present()
	for i, variable := range harness.Env {
		path := fmt.Sprintf("harness.env[%d]", i)
		_, modelKey := LookupModelKey(variable.Name)
		switch {
		case held[variable.Name]:
			p.rule("R3", "remove it here: the Harness sees the stand-in under that name (ADR-0059)", path+".name", "%q is held in secrets already", clip(variable.Name))
		case modelKey:
			p.rule("R1", "hold it instead: "+holding(variable), path+".name", "%q is a model key, which every Agent could read there", clip(variable.Name))
		case holds && slices.Contains(trustVariables(), variable.Name):
			p.rule("R11", "remove it here, and name your authorities in harness.caBundle (ADR-0059)", path+".name",
				"%q is a proxy or trust variable, which held secrets set themselves", variable.Name)
		}
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
			ref := variable.ValueFrom.SecretKeyRef
			checkReach(p, path+".valueFrom.secretKeyRef", ref.Name, ref.Key)
		}
		checkLiteral(p, path+".value", variable.Value)
	}
	for i, source := range harness.EnvFrom {
		if source.SecretRef != nil {
			checkReach(p, fmt.Sprintf("harness.envFrom[%d].secretRef", i), source.SecretRef.Name, "")
		}
	}
}

// holding is the entry of secrets that holds what a variable has now.
func holding(variable HarnessEnv) string {
	value := "value: process.env." + variable.Name
	if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
		value = fmt.Sprintf("valueFrom: { secretKeyRef: { name: %q, key: %q } }", clip(variable.ValueFrom.SecretKeyRef.Name), clip(variable.ValueFrom.SecretKeyRef.Key))
	}
	hosts := ""
	if key, _ := LookupModelKey(variable.Name); key.Host == "" {
		hosts = ", hosts: [\"<host of the model>\"]"
	}
	return fmt.Sprintf("secrets: [{ name: %q, %s%s }] (ADR-0059)", variable.Name, value, hosts)
}

// checkReach refuses to let the Harness read a key of a Secret; an empty key means the whole Secret.
func checkReach(p *problems, path, name, key string) {
	if slices.Contains(kitSecrets(), name) {
		p.rule("R13", "remove it: what an Agent needs goes into a Secret of your own (ADR-0059)", path, "%q is a Secret of the Kit, which no Harness may read", name)
		return
	}
	for n, held := range p.inst.Secrets {
		if held.ValueFrom != nil && held.ValueFrom.Name == name && name != "" && (key == "" || held.ValueFrom.Key == key) {
			p.rule("R13", fmt.Sprintf("remove it here, or keep the value of secrets[%d] in a Secret of its own (ADR-0059)", n), path,
				"Secret %q holds the value of secrets[%d], so the Harness would see it after all", clip(name), n)
		}
	}
}

// checkLiteral refuses to let the Harness have a held value as the literal of a variable.
func checkLiteral(p *problems, path string, literal Secret) {
	const hint = "remove it here: the Harness works with the stand-in (ADR-0059)"
	if literal.Reveal() == "" {
		return
	}
	for n, secret := range p.inst.Secrets {
		if secret.Value.Reveal() == literal.Reveal() {
			p.rule("R13", hint, path, "is the value of secrets[%d], so the Harness would see it after all", n)
		}
	}
	if provider := p.inst.Harness.Provider; provider != nil && provider.APIKey.Reveal() == literal.Reveal() {
		p.rule("R13", hint, path, "is the value of harness.provider.apiKey, so the Harness would see it after all")
	}
}
