package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// A Grant is what a role, or a binding, that is to be written lets others do. The API server takes it only from those who may do all of it
// themselves, or hold the verb escalate on that role, or bind on the role that is bound (source: Kubernetes, "Privilege escalation prevention").
type Grant struct {
	// Role is "Role team-a/web", "ClusterRole web", "RoleBinding team-a/web".
	Role string
	// Namespace is empty for a ClusterRole and its binding.
	Namespace, Name string
	// Rules of the role, or of the role that is bound; none when they are not known.
	Rules []rbacv1.PolicyRule
	// Binds is the role that a binding gives to others; nil for a role.
	Binds *rbacv1.RoleRef
	// Standing says that it is there as it is to be written, which grants nothing. It is asked only when it matters; nil means that it is not
	// there.
	Standing func(ctx context.Context) (bool, error)
	// Try has the server say by dry run whether it takes the object. It knows best; but it can't be asked by who may not write, nor in a namespace
	// that is not there, and then the rules count. nil means that nobody asks it.
	Try func(ctx context.Context) error

	// beyond says that its rules are more than what is to be given for its sake: those of a role that is somebody else's, or all of them.
	beyond bool
}

// permit is the right with which rules need not be held.
func (g Grant) permit() Right {
	right := Right{Verb: "escalate", Group: rbacv1.GroupName, Namespace: g.Namespace, Name: g.Name}
	kind := "Role"
	switch {
	case g.Binds != nil:
		right.Verb, right.Name, kind = "bind", g.Binds.Name, g.Binds.Kind
	case g.Namespace == "":
		kind = "ClusterRole"
	}
	right.Resource = strings.ToLower(kind) + "s"
	return right
}

// holds says that the caller is to hold the rules; else the right to permit is the smaller thing to give.
func (g Grant) holds() bool {
	inNamespace := func(rule rbacv1.PolicyRule) bool { return g.Namespace != "" && len(rule.NonResourceURLs) > 0 } // no Role can give that
	return !g.beyond && len(g.Rules) > 0 && !slices.ContainsFunc(g.Rules, inNamespace)
}

// minimum are the rules to give so that the grant may be written.
func (g Grant) minimum() []rbacv1.PolicyRule {
	if !g.holds() {
		return []rbacv1.PolicyRule{g.permit().rule()}
	}
	var rules []rbacv1.PolicyRule
	for _, rule := range g.Rules {
		rules = append(rules, validation.BreakdownRule(rule)...)
	}
	return rules
}

// isEscalation tells that the caller would grant more than it holds from a call that is refused for want of a right.
func isEscalation(err error) bool {
	return apierrors.IsForbidden(err) && (strings.Contains(err.Error(), "attempting to grant RBAC permissions not currently held") ||
		strings.Contains(err.Error(), "must have cluster-admin privileges to use the aggregationRule"))
}

// Grants are those of the roles and bindings among the objects. A binding of a role that is not among them is read from the cluster; where that
// can't be, only the server knows.
func Grants(ctx context.Context, client kubernetes.Interface, objs []*unstructured.Unstructured) ([]Grant, error) {
	brought := map[string][]rbacv1.PolicyRule{} // by kind, namespace and name
	var grants []Grant
	for _, o := range objs {
		switch kind := o.GetKind(); {
		case o.GroupVersionKind().Group != rbacv1.GroupName:
		case kind == "Role" || kind == "ClusterRole":
			var role rbacv1.Role // a ClusterRole has its rules in the same place
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
				return nil, fmt.Errorf("%s: %w", objectOf(o), err)
			}
			brought[kind+" "+role.Namespace+"/"+role.Name] = role.Rules
			g := newGrant(client, o)
			if aggregates(o) {
				g.Rules, g.beyond = everything(), true
			} else {
				g.Rules = role.Rules
			}
			g.Standing = func(ctx context.Context) (bool, error) { return stands(ctx, client.RbacV1(), kind, &role) }
			grants = append(grants, g)
		}
	}
	for _, o := range objs {
		if o.GroupVersionKind().Group != rbacv1.GroupName || o.GetKind() != "RoleBinding" && o.GetKind() != "ClusterRoleBinding" {
			continue
		}
		var binding rbacv1.RoleBinding // a ClusterRoleBinding has the same shape
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &binding); err != nil {
			return nil, fmt.Errorf("%s: %w", objectOf(o), err)
		}
		g := newGrant(client, o)
		g.Binds, g.Standing = &binding.RoleRef, func(ctx context.Context) (bool, error) { return isBound(ctx, client.RbacV1(), o.GetKind(), &binding) }
		namespace := binding.Namespace
		if binding.RoleRef.Kind == "ClusterRole" {
			namespace = ""
		}
		rules, here := brought[binding.RoleRef.Kind+" "+namespace+"/"+binding.RoleRef.Name]
		if g.Rules = rules; !here {
			g.beyond = true
			if live, err := liveRules(ctx, client.RbacV1(), binding.RoleRef.Kind, namespace, binding.RoleRef.Name); err == nil {
				g.Rules = live
			} else if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
		}
		grants = append(grants, g)
	}
	return grants, nil
}

// everything is what the API server wants of who writes a rule by which a role gathers what others have.
func everything() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}, {Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}}
}

func aggregates(o *unstructured.Unstructured) bool {
	selectors, _, err := unstructured.NestedSlice(o.Object, "aggregationRule", "clusterRoleSelectors")
	return err == nil && len(selectors) > 0
}

func newGrant(client kubernetes.Interface, o *unstructured.Unstructured) Grant {
	return Grant{Role: objectOf(o), Namespace: o.GetNamespace(), Name: o.GetName(), Try: func(ctx context.Context) error { return tryGrant(ctx, client.RbacV1(), o) }}
}

// tryGrant writes the object by dry run.
func tryGrant(ctx context.Context, rbac rbacclient.RbacV1Interface, o *unstructured.Unstructured) error {
	body, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	force := true
	opts := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "jr2-check", Force: &force}
	switch o.GetKind() {
	case "Role":
		_, err = rbac.Roles(o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, body, opts)
	case "ClusterRole":
		_, err = rbac.ClusterRoles().Patch(ctx, o.GetName(), types.ApplyPatchType, body, opts)
	case "RoleBinding":
		_, err = rbac.RoleBindings(o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, body, opts)
	default:
		_, err = rbac.ClusterRoleBindings().Patch(ctx, o.GetName(), types.ApplyPatchType, body, opts)
	}
	return err
}

// unknown turns "not there" and "may not be read" into no answer: one that may not be read is the business of another right.
func unknown(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

func liveRules(ctx context.Context, rbac rbacclient.RbacV1Interface, kind, namespace, name string) ([]rbacv1.PolicyRule, error) {
	if kind == "ClusterRole" {
		live, err := rbac.ClusterRoles().Get(ctx, name, metav1.GetOptions{})
		return live.Rules, err
	}
	live, err := rbac.Roles(namespace).Get(ctx, name, metav1.GetOptions{})
	return live.Rules, err
}

// stands says that a role is there with these rules.
func stands(ctx context.Context, rbac rbacclient.RbacV1Interface, kind string, role *rbacv1.Role) (bool, error) {
	rules, err := liveRules(ctx, rbac, kind, role.Namespace, role.Name)
	return err == nil && equality.Semantic.DeepEqual(rules, role.Rules), unknown(err)
}

// isBound says that a binding is there as it is to be.
func isBound(ctx context.Context, rbac rbacclient.RbacV1Interface, kind string, binding *rbacv1.RoleBinding) (bool, error) {
	var ref rbacv1.RoleRef
	var subjects []rbacv1.Subject
	var err error
	if kind == "ClusterRoleBinding" {
		var live *rbacv1.ClusterRoleBinding
		live, err = rbac.ClusterRoleBindings().Get(ctx, binding.Name, metav1.GetOptions{})
		ref, subjects = live.RoleRef, live.Subjects
	} else {
		var live *rbacv1.RoleBinding
		live, err = rbac.RoleBindings(binding.Namespace).Get(ctx, binding.Name, metav1.GetOptions{})
		ref, subjects = live.RoleRef, live.Subjects
	}
	return err == nil && ref == binding.RoleRef && equality.Semantic.DeepEqual(subjects, binding.Subjects), unknown(err)
}
