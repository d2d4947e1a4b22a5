package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Validate checks an Instance that a Go program filled in, with the same rules and the same errors as Load: the first problem is a
// *FieldError, or a *ModuleError where it belongs to a Workflow. It reads nothing outside of the value.
func Validate(inst *Instance) error {
	for _, check := range []func(*Instance) error{
		checkName, checkKitVersion, checkGit, checkRegistries, checkSandbox, checkPriorityClasses, checkSecretShapes, checkHarness, checkWorkflows,
	} {
		if err := check(inst); err != nil {
			return err
		}
	}
	return nil
}

// checkKitVersion wants a version that can be compared and that makes an image tag; empty means DefaultKitVersion.
func checkKitVersion(inst *Instance) error {
	if inst.KitVersion == "" {
		return nil
	}
	if _, err := semver.StrictNewVersion(inst.KitVersion); err != nil || strings.Contains(inst.KitVersion, "+") {
		return inst.problem("the exact version of @jr2/orchestrator, such as "+DefaultKitVersion, "kitVersion", "%q is no version", clip(inst.KitVersion))
	}
	return nil
}

func (i *Instance) problem(hint, path, format string, args ...any) error {
	return &FieldError{File: i.File, Path: path, Problem: fmt.Sprintf(format, args...), Hint: hint}
}

func checkName(inst *Instance) error {
	if len(validation.IsDNS1123Label(inst.Name)) == 0 {
		return nil
	}
	if inst.Root != "" && inst.Name == filepath.Base(inst.Root) {
		return inst.problem(hintName, "name", "is not given, and the folder's name %q cannot stand in for it", clip(inst.Name))
	}
	return inst.problem(hintName, "name", "%q is no DNS label", clip(inst.Name))
}

func checkGit(inst *Instance) error {
	for i, entry := range inst.Git.Credentials {
		path := fmt.Sprintf("git.credentials[%d]", i)
		switch {
		case entry.Match == "":
			return inst.problem(hintGit, path+".match", "is empty")
		case entry.Token != "" && tokenNameProblem(entry.Token) != "":
			return inst.problem(hintGit, path+".token", "%s", tokenNameProblem(entry.Token))
		case entry.SSHKey != "" && len(validation.IsDNS1123Subdomain(entry.SSHKey)) > 0:
			return inst.problem(hintGit, path+".sshKey", "%q is no name of a Secret", clip(entry.SSHKey))
		}
	}
	return nil
}

func checkSandbox(inst *Instance) error {
	for _, key := range sortedKeys(inst.Sandbox.NodeSelector) {
		path := joinPath("sandbox.nodeSelector", key)
		if why := validation.IsQualifiedName(key); len(why) > 0 {
			return inst.problem(hintSandbox, path, "is no label key: %s", why[0])
		}
		if why := validation.IsValidLabelValue(inst.Sandbox.NodeSelector[key]); len(why) > 0 {
			return inst.problem(hintSandbox, path, "%q is no label value: %s", clip(inst.Sandbox.NodeSelector[key]), why[0])
		}
	}
	for i, toleration := range inst.Sandbox.Tolerations {
		if at, why := tolerationProblem(toleration); why != "" {
			return inst.problem(hintToleration, fmt.Sprintf("sandbox.tolerations[%d]%s", i, at), "%s", why)
		}
	}
	return checkLimits(inst, "sandbox.resources.limits", inst.Sandbox.Resources)
}

// tolerationProblem applies the API server's rules early: it would otherwise refuse every Sandbox pod, one by one.
func tolerationProblem(t corev1.Toleration) (at, why string) {
	switch {
	case !slices.Contains([]corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists}, t.Operator):
		return ".operator", fmt.Sprintf("%q is none: Exists or Equal", clip(string(t.Operator)))
	case !slices.Contains([]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, t.Effect):
		return ".effect", fmt.Sprintf("%q is none: NoSchedule, PreferNoSchedule or NoExecute", clip(string(t.Effect)))
	case t.Key == "" && t.Operator != corev1.TolerationOpExists:
		return ".operator", "must be Exists when there is no key"
	case t.Operator == corev1.TolerationOpExists && t.Value != "":
		return ".value", "has no meaning with the operator Exists"
	case t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0:
		return ".key", fmt.Sprintf("%q is no key of a taint: %s", clip(t.Key), validation.IsQualifiedName(t.Key)[0])
	case len(validation.IsValidLabelValue(t.Value)) > 0:
		return ".value", fmt.Sprintf("%q is no value of a taint: %s", clip(t.Value), validation.IsValidLabelValue(t.Value)[0])
	case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
		return ".effect", "must be NoExecute when tolerationSeconds is given"
	}
	return "", ""
}

func checkLimits(inst *Instance, path string, limits Limits) error {
	if limits.Memory != nil && *limits.Memory <= 0 {
		return inst.problem(hintResources, path+".memory", "must be more than zero")
	}
	if limits.CPU != nil && *limits.CPU <= 0 {
		return inst.problem(hintResources, path+".cpu", "must be more than zero")
	}
	return nil
}

func checkPriorityClasses(inst *Instance) error {
	for _, class := range []struct {
		key  string
		name *string
	}{{"control", inst.PriorityClasses.Control}, {"sandbox", inst.PriorityClasses.Sandbox}} {
		if class.name == nil {
			continue
		}
		if *class.name == "" {
			return inst.problem("", "priorityClasses."+class.key, "is empty")
		}
		if why := validation.IsDNS1123Subdomain(*class.name); len(why) > 0 {
			return inst.problem("", "priorityClasses."+class.key, "%q is no name of a PriorityClass", clip(*class.name))
		}
	}
	return nil
}

func checkSecretShapes(inst *Instance) error {
	for i, held := range inst.Secrets {
		path := fmt.Sprintf("secrets[%d]", i)
		switch {
		case !heldName.MatchString(held.Name):
			return inst.problem(hintSecrets, path+".name", "%q is none: upper-case letters, digits and \"_\", not starting with a digit", clip(held.Name))
		case held.Value.Present() && held.ValueFrom != nil:
			return inst.problem(hintSecrets, path, "has both value and valueFrom")
		case held.ValueFrom != nil && held.ValueFrom.Name == "":
			return inst.problem(hintSecrets, path+".valueFrom.secretKeyRef.name", "is empty")
		case held.ValueFrom != nil && held.ValueFrom.Key == "":
			return inst.problem(hintSecrets, path+".valueFrom.secretKeyRef.key", "is empty")
		}
		if held.ValueFrom == nil {
			continue
		}
		if at, why := keyRefProblem("Secret", held.ValueFrom.Name, held.ValueFrom.Key); why != "" {
			return inst.problem(hintSecrets, path+".valueFrom.secretKeyRef"+at, "%s", why)
		}
	}
	return nil
}
