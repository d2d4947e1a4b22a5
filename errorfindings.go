package jr2

import (
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/platforms"
	"jr2.dev/jr2/preflight"
)

// findingsOf turns what a look ended with into findings that refuse: those of a *Refusal as they are, one for each of several errors that are
// joined. about is the object where an error names none.
func findingsOf(err error, about string) []preflight.Finding {
	if err == nil {
		return nil
	}
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
		return refusal.Findings
	}
	if several := joined(err); len(several) > 0 {
		var findings []preflight.Finding
		for _, one := range several {
			findings = append(findings, findingsOf(one, about)...)
		}
		return findings
	}
	found := preflight.Finding{Severity: preflight.Refuse, Object: about, Message: err.Error()}
	for _, explain := range []func(error, *preflight.Finding) bool{explainInstance, explainImages, explainReach, explainObject} {
		if explain(err, &found) {
			return []preflight.Finding{found}
		}
	}
	found.Code, found.Fix = preflight.CodeUnexplained, "see the message: no check knows this error"
	return []preflight.Finding{found}
}

// joined are the errors that errors.Join put together, however deep they are wrapped; none when there is only one.
func joined(err error) []error {
	for err != nil {
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			return many.Unwrap()
		}
		err = errors.Unwrap(err)
	}
	return nil
}

// explainInstance knows the errors of reading an Instance.
func explainInstance(err error, f *preflight.Finding) bool {
	var field *config.FieldError
	var module *config.ModuleError
	var size *config.SizeError
	var missing *config.NotFoundError
	var types *preflight.TypecheckError
	var kit *render.KitError
	switch {
	case errors.As(err, &field):
		f.Code, f.Fix = preflight.CodeConfigField, field.Hint
		if field.Path != "" {
			f.Object += " at " + field.Path
		}
	case errors.As(err, &module):
		f.Code, f.Fix = preflight.CodeConfigModule, "correct the module"
		if module.Workflow != "" {
			f.Object = "Workflow " + module.Workflow
		}
	case errors.As(err, &size):
		f.Code, f.Object, f.Fix = preflight.CodeSizeTooSmall, "Workflow "+size.Workflow, raisedSize(size)
	case errors.As(err, &missing):
		f.Code, f.Object, f.Fix = preflight.CodeInstanceMissing, "folder "+missing.Dir, "name an Instance folder"
	case errors.As(err, &types):
		f.Code, f.Fix = preflight.CodeTypes, "correct the types"
	case errors.As(err, new(*preflight.NoNodeError)), errors.As(err, new(*preflight.NoCompilerError)):
		f.Code, f.Fix = preflight.CodeTypes, "npm install in the Instance folder"
	case errors.As(err, &kit):
		f.Code, f.Fix = preflight.CodeKitRegistry, "set kitRegistry to a prefix such as registry.example.com/mirror, or leave it out"
	default:
		return false
	}
	return true
}

// explainImages knows the errors of platforms and images.
func explainImages(err error, f *preflight.Finding) bool {
	var folder *images.ContextError
	var ref *images.RefError
	switch {
	case errors.As(err, new(*platforms.UnsupportedError)):
		f.Code, f.Fix = preflight.CodePlatform, "name linux/amd64, linux/arm64 or both in platforms, or leave it out"
	case errors.As(err, new(*platforms.NoneError)):
		f.Code, f.Fix = preflight.CodeNoPlatform, "add a node of amd64 or arm64, or correct sandbox.nodeSelector"
	case errors.As(err, new(*platforms.NeedsRegistryError)), errors.As(err, new(*images.NoRegistryError)):
		f.Code, f.Fix = preflight.CodeNoRegistry, "set registry in jr2.config.ts (from env)"
	case errors.As(err, &folder):
		f.Code, f.Object, f.Fix = preflight.CodeImageContext, "folder "+folder.Dir, "correct the folder, or the url that names it"
	case errors.As(err, &ref):
		f.Code, f.Fix = preflight.CodeImageContext, "correct registry or the name of the image's folder"
	case errors.As(err, new(*images.MirrorError)), errors.As(err, new(*images.BundledError)):
		f.Code, f.Fix = preflight.CodeRegistryOptions, "correct the option that the message names"
	default:
		return false
	}
	return true
}

// explainReach knows why a cluster can't be asked.
func explainReach(err error, f *preflight.Finding) bool {
	var unreachable *UnreachableError
	var kubeconfig *KubeconfigError
	switch class := apply.Classify(err); {
	case errors.As(err, &unreachable):
		f.Code, f.Object, f.Fix = preflight.CodeUnreachable, "cluster "+unreachable.Context, "kubectl --context "+unreachable.Context+" version"
	case errors.Is(err, ErrNoContext):
		f.Code, f.Object, f.Fix = preflight.CodeNoContext, "kubeconfig", "name a context with --context"
	case errors.As(err, &kubeconfig):
		f.Code, f.Object, f.Fix = preflight.CodeNoContext, "kubeconfig", "correct the kubeconfig, or name another with --kubeconfig"
		if kubeconfig.Context != "" {
			f.Object, f.Fix = "context "+kubeconfig.Context, "correct the context, or name another with --context"
		}
	case class == apply.ClassUnauthorized:
		f.Code, f.Fix = preflight.CodeUnauthorized, "correct the credentials of the context"
	default:
		return false
	}
	return true
}

// explainObject knows why an object can't be brought as it is asked for.
func explainObject(err error, f *preflight.Finding) bool {
	var conflict *apply.ConflictError
	var owned *apply.OwnedError
	var unowned *apply.UnownedError
	var immutable *apply.ImmutableError
	var empty *apply.EmptyKeyError
	var inventory *apply.InventoryError
	var object *apply.ObjectError
	if errors.As(err, &object) {
		f.Object = object.Ref.String()
	}
	switch {
	case errors.As(err, &conflict):
		f.Code, f.Object, f.Fix = preflight.CodeFieldConflict, conflict.Ref.String(), "--take-from "+strings.Join(managers(conflict), ",")
		if field := fixedField(conflict); field != "" { // nobody can take over what can't be changed
			f.Code, f.Fix = preflight.CodeImmutable, deletion(conflict.Ref)
			f.Message = fmt.Sprintf("%s: %s is another's and can't be changed once it is made — look whether somebody needs it as it is (%s -o yaml), and delete it",
				conflict.Ref, field, onObject("get", conflict.Ref))
			if conflict.Ref.Kind == "PriorityClass" {
				f.Message += ", or name another class in priorityClasses"
			}
		}
	case errors.As(err, &owned):
		f.Code, f.Object, f.Fix = preflight.CodeOwnedByOther, owned.Ref.String(), onObject("annotate", owned.Ref)+" "+apply.SetAnnotation+"-"
	case errors.As(err, &unowned):
		f.Code, f.Object, f.Fix = preflight.CodeOwnedByOther, unowned.Ref.String(), "--adopt"
	case errors.As(err, &immutable):
		f.Code, f.Object, f.Fix = preflight.CodeImmutable, immutable.Ref.String(), deletion(immutable.Ref)
		f.Message += " (what it holds is lost when it is deleted)"
	case errors.As(err, &inventory):
		f.Code, f.Object, f.Fix = preflight.CodeInventory, inventory.Ref.String(), deletion(inventory.Ref)
		if inventory.Version != 0 {
			f.Fix = "use the release of jr2 that wrote it"
		} else {
			f.Message += " (without it, what left the Instance since its last converge stays in the cluster)"
		}
	case errors.As(err, &empty):
		f.Code, f.Object = preflight.CodeSecretEmpty, empty.Ref.String()
		f.Fix = withoutKeys(empty)
	case apply.Classify(err) == apply.ClassEscalation:
		f.Object = strings.Replace(f.Object, "."+rbacv1.GroupName, "", 1) // as the check of all rights has it
		return explainClass(apply.ClassEscalation, f)
	default:
		if !explainRight(err, f) && !explainClass(apply.Classify(err), f) {
			return false
		}
		if object != nil {
			preciser(object, f)
		}
	}
	return true
}

// explainRight knows which right a call lacked, and says it as the check of all rights does.
func explainRight(err error, f *preflight.Finding) bool {
	right, user, ok := preflight.RefusedRight(err)
	if !ok || apply.Classify(err) != apply.ClassForbidden {
		return false
	}
	f.Code, f.Object, f.Fix = preflight.CodeRightMissing, right.String(), right.Fix(user)
	return true
}

func explainClass(class apply.Class, f *preflight.Finding) bool {
	explained, ok := map[apply.Class]struct{ code, fix string }{
		apply.ClassForbidden:            {preflight.CodeRightMissing, "have an admin grant the right that the message names"},
		apply.ClassEscalation:           {preflight.CodeEscalation, "have an admin grant the rights that the message names, or apply the object once"},
		apply.ClassNamespaceTerminating: {preflight.CodeNamespaceTerminating, "wait until the namespace is gone"},
		apply.ClassQuotaNever:           {preflight.CodeQuotaNever, "raise the quota that the message names"},
		apply.ClassQuotaUnspecified:     {preflight.CodeQuotaNever, "give the namespace a LimitRange with defaults for what the quota wants"},
		apply.ClassQuotaWait:            {preflight.CodeQuotaFull, "raise the quota that the message names, or make room in it"},
		apply.ClassWebhookUnready:       {preflight.CodeWebhookUnreachable, "mend the server of the webhook that the message names"},
		apply.ClassNoMatch:              {preflight.CodeKindUnserved, "install what serves the kind"},
		apply.ClassDenied:               {preflight.CodeRefusedByServer, "ask those who keep the policy that the message names"},
		apply.ClassInvalid:              {preflight.CodeRefusedByServer, "correct the field that the message names"},
		apply.ClassPodSecurity:          {preflight.CodePodSecurity, "raise the namespace's Pod Security level"},
	}[class]
	if ok {
		f.Code, f.Fix = explained.code, explained.fix
	}
	return ok
}

// fixedField is a field of a conflict that the server lets nobody change, as the server names it; empty when there is none.
func fixedField(conflict *apply.ConflictError) string {
	var fixed []string
	switch conflict.Ref.Kind {
	case "PriorityClass":
		fixed = []string{".value", ".preemptionPolicy"}
	case "RoleBinding", "ClusterRoleBinding":
		fixed = []string{".roleRef"}
	}
	for _, one := range conflict.Conflicts {
		for _, field := range fixed {
			if one.Field == field || strings.HasPrefix(one.Field, field+".") {
				return field
			}
		}
	}
	return ""
}

func managers(conflict *apply.ConflictError) []string {
	var names []string
	for _, one := range conflict.Conflicts {
		name, _, _ := strings.Cut(one.Manager, " (")
		if len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	return names
}

// distinct keeps the first of findings that say the same. Of two about one right it keeps that of the check of all rights, which comes last and
// says what the right is needed for; the other is a look that met the refusal.
func distinct(findings []preflight.Finding) []preflight.Finding {
	seen := map[preflight.Finding]bool{}
	last := map[string]int{}
	for i, f := range findings {
		if aboutRights(f) {
			last[f.Object] = i
		}
	}
	kept := []preflight.Finding{}
	for i, f := range findings {
		if !seen[f] && (!aboutRights(f) || last[f.Object] == i) {
			kept = append(kept, f)
		}
		seen[f] = true
	}
	return kept
}

func aboutRights(f preflight.Finding) bool {
	return f.Code == preflight.CodeRightMissing || f.Code == preflight.CodeEscalation
}
