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

// Validate checks an Instance that a Go program filled in, with the same rules and the same errors as Load. All problems come at once, one a line:
// *FieldErrors in the order of the sections, then *ModuleErrors in that of the Workflows. It reads nothing outside of the value.
func Validate(inst *Instance) error { return together(inFieldOrder(validate(inst))...) }

func validate(inst *Instance) []error {
	p := &problems{inst: inst}
	for _, check := range []func(*problems){
		checkName, checkKitVersion, checkGit, checkRegistries, checkSandbox, checkPriorityClasses, checkSecretShapes, checkHarness, checkWorkflows,
	} {
		check(p)
	}
	return p.errs
}

// checkKitVersion wants a version that can be compared and that makes an image tag; empty means DefaultKitVersion.
func checkKitVersion(p *problems) {
	version := p.inst.KitVersion
	if version == "" {
		return
	}
	if _, err := semver.StrictNewVersion(version); err != nil || strings.Contains(version, "+") {
		p.add("the exact version of @jr2/orchestrator, such as "+DefaultKitVersion, "kitVersion", "%q is no version", clip(version))
	}
}

func (i *Instance) problem(hint, path, format string, args ...any) error {
	return &FieldError{File: i.File, Path: path, Problem: fmt.Sprintf(format, args...), Hint: hint}
}

func checkName(p *problems) {
	inst := p.inst
	switch {
	case len(validation.IsDNS1123Label(inst.Name)) == 0:
	case inst.Root != "" && inst.Name == filepath.Base(inst.Root):
		p.add(hintName, "name", "is not given, and the folder's name %q cannot stand in for it", clip(inst.Name))
	default:
		p.add(hintName, "name", "%q is no DNS label", clip(inst.Name))
	}
}

func checkGit(p *problems) {
	for i, entry := range p.inst.Git.Credentials {
		path := fmt.Sprintf("git.credentials[%d]", i)
		if entry.Match == "" {
			p.add(hintGit, path+".match", "is empty")
		}
		if why := tokenNameProblem(entry.Token); entry.Token != "" && why != "" {
			p.add(hintGit, path+".token", "%s", why)
		}
		if entry.SSHKey != "" && len(validation.IsDNS1123Subdomain(entry.SSHKey)) > 0 {
			p.add(hintGit, path+".sshKey", "%q is no name of a Secret", clip(entry.SSHKey))
		}
		if slices.Contains(ownSecrets(), entry.SSHKey) { // a Sandbox would be handed what is in it
			p.add(hintGit, path+".sshKey", "%q is a Secret of the Kit, in which no deploy key can be kept — take another name, such as jr2-git-ssh", entry.SSHKey)
		}
	}
}

func checkSandbox(p *problems) {
	sandbox := p.inst.Sandbox
	for _, key := range sortedKeys(sandbox.NodeSelector) {
		path := joinPath("sandbox.nodeSelector", key)
		if why := validation.IsQualifiedName(key); len(why) > 0 {
			p.add(hintSandbox, path, "is no label key: %s", why[0])
		}
		if why := validation.IsValidLabelValue(sandbox.NodeSelector[key]); len(why) > 0 {
			p.add(hintSandbox, path, "%q is no label value: %s", clip(sandbox.NodeSelector[key]), why[0])
		}
	}
	for i, toleration := range sandbox.Tolerations {
		tolerationProblems(toleration, func(at, why string) {
			p.add(hintToleration, fmt.Sprintf("sandbox.tolerations[%d]%s", i, at), "%s", why)
		})
	}
	checkLimits(p, "sandbox.resources.limits", sandbox.Resources)
}

// tolerationProblems applies the API server's rules early: it would otherwise refuse every Sandbox pod, one by one.
func tolerationProblems(t corev1.Toleration, tell func(at, why string)) {
	knownOperator := slices.Contains([]corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists}, t.Operator)
	knownEffect := slices.Contains([]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, t.Effect)
	if t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0 {
		tell(".key", fmt.Sprintf("%q is no key of a taint: %s", clip(t.Key), validation.IsQualifiedName(t.Key)[0]))
	}
	switch {
	case !knownOperator:
		tell(".operator", fmt.Sprintf("%q is none: Exists or Equal", clip(string(t.Operator))))
	case t.Key == "" && t.Operator != corev1.TolerationOpExists:
		tell(".operator", "must be Exists when there is no key")
	}
	switch {
	case t.Operator == corev1.TolerationOpExists && t.Value != "":
		tell(".value", "has no meaning with the operator Exists")
	case len(validation.IsValidLabelValue(t.Value)) > 0:
		tell(".value", fmt.Sprintf("%q is no value of a taint: %s", clip(t.Value), validation.IsValidLabelValue(t.Value)[0]))
	}
	switch {
	case !knownEffect:
		tell(".effect", fmt.Sprintf("%q is none: NoSchedule, PreferNoSchedule or NoExecute", clip(string(t.Effect))))
	case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
		tell(".effect", "must be NoExecute when tolerationSeconds is given")
	}
}

func checkLimits(p *problems, path string, limits Limits) {
	if limits.Memory != nil && *limits.Memory <= 0 {
		p.add(hintResources, path+".memory", "must be more than zero")
	}
	if limits.CPU != nil && *limits.CPU <= 0 {
		p.add(hintResources, path+".cpu", "must be more than zero")
	}
}

func checkPriorityClasses(p *problems) {
	for _, class := range []struct {
		key  string
		name *string
	}{{"control", p.inst.PriorityClasses.Control}, {"sandbox", p.inst.PriorityClasses.Sandbox}} {
		switch {
		case class.name == nil:
		case *class.name == "":
			p.add(hintClasses, "priorityClasses."+class.key, "is empty")
		case len(validation.IsDNS1123Subdomain(*class.name)) > 0:
			p.add(hintClasses, "priorityClasses."+class.key, "%q is no name of a PriorityClass", clip(*class.name))
		}
	}
}

func checkSecretShapes(p *problems) {
	for i, held := range p.inst.Secrets {
		path := fmt.Sprintf("secrets[%d]", i)
		if !heldName.MatchString(held.Name) {
			p.add(hintSecrets, path+".name", "%q is none: upper-case letters, digits and \"_\", not starting with a digit", clip(held.Name))
		}
		if held.Value.Present() && held.ValueFrom != nil {
			p.rule("R4", hintSecrets, path, bothValues)
		}
		if held.ValueFrom != nil {
			keyRefProblems("Secret", held.ValueFrom.Name, held.ValueFrom.Key, func(at, why string) {
				p.add(hintSecrets, path+".valueFrom.secretKeyRef"+at, "%s", why)
			})
		}
	}
}

const bothValues = "has both value and valueFrom"
