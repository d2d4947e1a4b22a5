package config

import (
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func checkHarness(inst *Instance) error {
	for _, check := range []func(*Instance) error{checkHarnessEnv, checkEnvFrom, checkProvider, checkCatalog} {
		if err := check(inst); err != nil {
			return err
		}
	}
	return nil
}

func checkHarnessEnv(inst *Instance) error {
	seen := map[string]bool{}
	for i, variable := range inst.Harness.Env {
		path := fmt.Sprintf("harness.env[%d]", i)
		switch {
		case len(validation.IsEnvVarName(variable.Name)) > 0:
			return inst.problem(hintHarness, path+".name", "%q is no name of an environment variable", clip(variable.Name))
		case strings.HasPrefix(variable.Name, kitPrefix):
			return inst.problem(hintHarness, path+".name", "%q starts with JR2_, which is the Kit's own", clip(variable.Name))
		case seen[variable.Name]:
			return inst.problem(hintHarness, path+".name", "%q is there twice", clip(variable.Name))
		case variable.Value.Present() && variable.ValueFrom != nil:
			return inst.problem(hintHarness, path, "has both value and valueFrom")
		case strings.ContainsRune(variable.Value.Reveal(), 0):
			return inst.problem(hintHarness, path+".value", "holds a NUL character, which no environment variable can")
		}
		seen[variable.Name] = true
		if at, why := envSourceProblem(variable.ValueFrom); why != "" {
			return inst.problem(hintHarness, path+".valueFrom"+at, "%s", why)
		}
	}
	return nil
}

// envSourceProblem says what is wrong with the source of a variable; nil is none and so has no problem.
func envSourceProblem(from *corev1.EnvVarSource) (at, why string) {
	switch {
	case from == nil:
		return "", ""
	case envSources(from) != 1:
		return "", fmt.Sprintf("want exactly one source, got %d", envSources(from))
	case from.SecretKeyRef != nil:
		at, why = keyRefProblem("Secret", from.SecretKeyRef.Name, from.SecretKeyRef.Key)
		return ".secretKeyRef" + at, why
	case from.ConfigMapKeyRef != nil:
		at, why = keyRefProblem("ConfigMap", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key)
		return ".configMapKeyRef" + at, why
	case from.FieldRef != nil && from.FieldRef.FieldPath == "":
		return ".fieldRef.fieldPath", "is empty"
	case from.ResourceFieldRef != nil && from.ResourceFieldRef.Resource == "":
		return ".resourceFieldRef.resource", "is empty"
	case from.FileKeyRef != nil:
		return ".fileKeyRef", "reads a file of a volume, and the Harness has none for it"
	}
	return "", ""
}

// keyRefProblem checks the name of a Secret or ConfigMap and of a key in it.
func keyRefProblem(kind, name, key string) (at, why string) {
	if why := objectNameProblem(kind, name); why != "" {
		return ".name", why
	}
	switch {
	case key == "":
		return ".key", "is empty"
	case len(validation.IsConfigMapKey(key)) > 0:
		return ".key", fmt.Sprintf("%q is no key of a %s: letters, digits, \"-\", \"_\" and \".\", at most 253", clip(key), kind)
	}
	return "", ""
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

func checkEnvFrom(inst *Instance) error {
	for i, source := range inst.Harness.EnvFrom {
		path := fmt.Sprintf("harness.envFrom[%d]", i)
		switch {
		case (source.SecretRef == nil) == (source.ConfigMapRef == nil):
			return inst.problem(hintHarness, path, "want one of secretRef and configMapRef")
		case source.Prefix != "" && len(validation.IsEnvVarName(source.Prefix)) > 0:
			return inst.problem(hintHarness, path+".prefix", "%q begins no name of an environment variable", clip(source.Prefix))
		case strings.HasPrefix(source.Prefix, kitPrefix):
			return inst.problem(hintHarness, path+".prefix", "%q starts with JR2_, which is the Kit's own", clip(source.Prefix))
		}
		if ref := source.SecretRef; ref != nil {
			if why := objectNameProblem("Secret", ref.Name); why != "" {
				return inst.problem(hintHarness, path+".secretRef.name", "%s", why)
			}
		}
		if ref := source.ConfigMapRef; ref != nil {
			if why := objectNameProblem("ConfigMap", ref.Name); why != "" {
				return inst.problem(hintHarness, path+".configMapRef.name", "%s", why)
			}
		}
	}
	return nil
}

func checkProvider(inst *Instance) error {
	p := inst.Harness.Provider
	if p == nil {
		return nil
	}
	if p.ID == "" || strings.Contains(p.ID, "/") {
		return inst.problem(hintHarness, "harness.provider.id", "%q is none: text without \"/\", the part of a model before its first \"/\"", clip(p.ID))
	}
	if why := baseURLProblem(p.BaseURL); why != "" {
		return inst.problem(hintHarness, "harness.provider.baseUrl", "%s", why)
	}
	return nil
}

func checkCatalog(inst *Instance) error {
	for _, id := range sortedKeys(inst.Harness.Catalog) {
		if why := baseURLProblem(inst.Harness.Catalog[id].BaseURL); why != "" {
			return inst.problem(hintCatalog, joinPath("harness.catalog", id)+".baseUrl", "%s", why)
		}
	}
	return nil
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
