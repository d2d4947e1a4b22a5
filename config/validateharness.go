package config

import (
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func checkHarness(p *problems) {
	checkProvider(p)
	checkCatalog(p)
	checkHarnessEnv(p)
	checkEnvFrom(p)
}

func checkHarnessEnv(p *problems) {
	seen := map[string]bool{}
	for i, variable := range p.inst.Harness.Env {
		path := fmt.Sprintf("harness.env[%d]", i)
		switch {
		case len(validation.IsEnvVarName(variable.Name)) > 0:
			p.add(hintHarness, path+".name", "%q is no name of an environment variable", clip(variable.Name))
		case strings.HasPrefix(variable.Name, kitPrefix):
			p.add(hintHarness, path+".name", "%q starts with JR2_, which is the Kit's own", clip(variable.Name))
		case seen[variable.Name]:
			p.add(hintHarness, path+".name", "%q is there twice", clip(variable.Name))
		}
		seen[variable.Name] = true
		if variable.Value.Present() && variable.ValueFrom != nil {
			p.add(hintHarness, path, bothValues)
		}
		if strings.ContainsRune(variable.Value.Reveal(), 0) {
			p.add(hintHarness, path+".value", "holds a NUL character, which no environment variable can")
		}
		envSourceProblems(variable.ValueFrom, func(at, why string) { p.add(hintHarness, path+".valueFrom"+at, "%s", why) })
	}
}

// envSourceProblems says what is wrong with the source of a variable; nil is none and so has no problem.
func envSourceProblems(from *corev1.EnvVarSource, tell func(at, why string)) {
	switch {
	case from == nil:
	case envSources(from) != 1:
		tell("", fmt.Sprintf("want exactly one source, got %d", envSources(from)))
	case from.SecretKeyRef != nil:
		keyRefProblems("Secret", from.SecretKeyRef.Name, from.SecretKeyRef.Key, func(at, why string) { tell(".secretKeyRef"+at, why) })
	case from.ConfigMapKeyRef != nil:
		keyRefProblems("ConfigMap", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, func(at, why string) { tell(".configMapKeyRef"+at, why) })
	case from.FieldRef != nil && from.FieldRef.FieldPath == "":
		tell(".fieldRef.fieldPath", "is empty")
	case from.ResourceFieldRef != nil && from.ResourceFieldRef.Resource == "":
		tell(".resourceFieldRef.resource", "is empty")
	case from.FileKeyRef != nil:
		tell(".fileKeyRef", "reads a file of a volume, and the Harness has none for it")
	}
}

// keyRefProblems checks the name of a Secret or ConfigMap and of a key in it.
func keyRefProblems(kind, name, key string, tell func(at, why string)) {
	if why := objectNameProblem(kind, name); why != "" {
		tell(".name", why)
	}
	switch {
	case key == "":
		tell(".key", "is empty")
	case len(validation.IsConfigMapKey(key)) > 0:
		tell(".key", fmt.Sprintf("%q is no key of a %s: letters, digits, \"-\", \"_\" and \".\", at most 253", clip(key), kind))
	}
}

func objectNameProblem(kind, name string) string {
	if name == "" {
		return "is empty"
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Sprintf("%q is no name of a %s: lower-case letters, digits, \"-\" and \".\", with a letter or digit at both ends, at most 253", clip(name), kind)
	}
	return ""
}

func checkEnvFrom(p *problems) {
	for i, source := range p.inst.Harness.EnvFrom {
		path := fmt.Sprintf("harness.envFrom[%d]", i)
		if (source.SecretRef == nil) == (source.ConfigMapRef == nil) {
			p.add(hintHarness, path, "want one of secretRef and configMapRef")
		}
		switch {
		case source.Prefix != "" && len(validation.IsEnvVarName(source.Prefix)) > 0:
			p.add(hintHarness, path+".prefix", "%q begins no name of an environment variable", clip(source.Prefix))
		case strings.HasPrefix(source.Prefix, kitPrefix):
			p.add(hintHarness, path+".prefix", "%q starts with JR2_, which is the Kit's own", clip(source.Prefix))
		}
		if ref := source.SecretRef; ref != nil {
			if why := objectNameProblem("Secret", ref.Name); why != "" {
				p.add(hintHarness, path+".secretRef.name", "%s", why)
			}
		}
		if ref := source.ConfigMapRef; ref != nil {
			if why := objectNameProblem("ConfigMap", ref.Name); why != "" {
				p.add(hintHarness, path+".configMapRef.name", "%s", why)
			}
		}
	}
}

func checkProvider(p *problems) {
	provider := p.inst.Harness.Provider
	if provider == nil {
		return
	}
	if provider.ID == "" || strings.Contains(provider.ID, "/") {
		p.add(hintProvider, "harness.provider.id", "%q is none: text without \"/\", the part of a model before its first \"/\"", clip(provider.ID))
	}
	if why := baseURLProblem(provider.BaseURL); why != "" {
		p.add(hintProvider, "harness.provider.baseUrl", "%s", why)
	}
}

func checkCatalog(p *problems) {
	for _, id := range sortedKeys(p.inst.Harness.Catalog) {
		if why := baseURLProblem(p.inst.Harness.Catalog[id].BaseURL); why != "" {
			p.add(hintCatalog, joinPath("harness.catalog", id)+".baseUrl", "%s", why)
		}
	}
}

// baseURLProblem refuses what no request can be sent to. Empty passes: the value may come from an environment that is not there.
func baseURLProblem(text string) string {
	if text == "" {
		return ""
	}
	if hasUserinfo(text) {
		return userinfoProblem(text)
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || !strings.EqualFold(u.Scheme, "https") && !strings.EqualFold(u.Scheme, "http") {
		return fmt.Sprintf("%q is no https or http url of a host", clip(RedactURL(text)))
	}
	return ""
}

func envSources(from *corev1.EnvVarSource) int {
	n := 0
	for _, given := range []bool{from.SecretKeyRef != nil, from.ConfigMapKeyRef != nil, from.FieldRef != nil, from.ResourceFieldRef != nil, from.FileKeyRef != nil} {
		if given {
			n++
		}
	}
	return n
}
