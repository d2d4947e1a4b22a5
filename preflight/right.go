package preflight

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Right is one thing that a user may do, as an authorizer is asked about it.
type Right struct {
	Verb  string `json:"verb"`
	Group string `json:"group,omitempty"`
	// Resource is the plural, such as "deployments"; a subresource follows a slash: "pods/log".
	Resource string `json:"resource"`
	// Namespace is empty for what lives in none. A Namespace itself counts as living in itself, but when it is created or listed.
	Namespace string `json:"namespace,omitempty"`
	// Name is empty where all objects are meant, and for what has no name yet: create and list.
	Name string `json:"name,omitempty"`
}

// String is "patch deployments.apps in namespace team-a", or "list nodes" for the whole cluster.
func (r Right) String() string {
	text := r.Verb + " " + schema.GroupResource{Group: r.Group, Resource: r.Resource}.String()
	if r.Namespace != "" {
		text += " in namespace " + r.Namespace
	}
	return text
}

// kind is the right without the name of the object.
func (r Right) kind() Right {
	r.Name = ""
	return r
}

// rule is the right as a rule of its own.
func (r Right) rule() rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{Verbs: []string{r.Verb}, APIGroups: []string{r.Group}, Resources: []string{r.Resource}}
	if r.Name != "" {
		rule.ResourceNames = []string{r.Name}
	}
	return rule
}

func (r Right) attributes() *authorizationv1.ResourceAttributes {
	resource, sub := cutSubresource(r.Resource)
	return &authorizationv1.ResourceAttributes{
		Verb: r.Verb, Group: r.Group, Resource: resource, Subresource: sub, Namespace: r.Namespace, Name: r.Name,
	}
}

// A Need is a right and the object for which it is needed, in words: "Deployment.apps team-a/web".
type Need struct {
	Right
	For string `json:"for"`
	// Unless says that the right is not needed after all, as the right to create what is there. It is asked only when the right is missing; an
	// error says that nobody knows. nil means that it is needed.
	Unless func(ctx context.Context) (bool, error) `json:"-"`
}

// Needs are those of one object, or of all of a kind where name is empty.
func Needs(what, group, resource, namespace, name string, verbs ...string) []Need {
	var needs []Need
	for _, verb := range verbs {
		right := Right{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name}
		switch {
		case verb == "create" || verb == "list" || verb == "watch":
			right.Name = "" // what is made has no name yet for an authorizer, and a list has none
		case resource == "namespaces" && group == "":
			right.Namespace = name // for an authorizer it lives in itself
		}
		needs = append(needs, Need{Right: right, For: what})
	}
	return needs
}

// Fix is what an admin types to give the right to a user, by the name that the server has for him; "" prints USER. It is one line for a shell. Each
// right has a role of its own, so that no line undoes another's.
func (r Right) Fix(user string) string {
	return rulesFix(r.roleName(), r.Namespace, []rbacv1.PolicyRule{r.rule()}, user)
}

// rulesFix is one line that gives these rules whatever is there, and takes nothing away. The roles go in as they are and not by kubectl create,
// which fails where they exist, where their namespace does not, and for a kind that nobody serves yet; reconcile makes the namespace, and adds
// to a role or a binding that is there.
func rulesFix(name, namespace string, rules []rbacv1.PolicyRule, user string) string {
	kind, meta := "Role", map[string]any{"name": name, "namespace": namespace}
	if namespace == "" {
		kind, meta = "ClusterRole", map[string]any{"name": name}
	}
	object := func(kind string, fields map[string]any) map[string]any {
		fields["apiVersion"], fields["kind"], fields["metadata"] = rbacv1.SchemeGroupVersion.String(), kind, meta
		return fields
	}
	return "printf %s " + shellWord(jsonText(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{
		object(kind, map[string]any{"rules": rules}),
		object(kind+"Binding", map[string]any{
			"roleRef":  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name},
			"subjects": []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: cmp.Or(user, "USER")}},
		}),
	}})) + " | kubectl auth reconcile -f -"
}

// roleName is "jr2:patch:deployments.apps:scale": the characters between the parts stand in no verb, group or resource.
func (r Right) roleName() string {
	return "jr2:" + r.Verb + ":" + strings.ReplaceAll(resourceArgument(r), "/", ":")
}

// jsonText writes plain maps and types of the API. What stands in a name is left as it is.
func jsonText(value any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err.Error() // these have no value that JSON can't say
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// plainWord is what no shell reads as anything but itself. A backslash, which stands in names of Windows domains, is not.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_.:/@%+=,-]+$`)

// shellWord writes a text for a command that somebody pastes: a user's name comes from whoever vouches for users, and may hold anything.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// ruleText is a rule in the order in which one says it: "get, list on pods, services".
func ruleText(rule rbacv1.PolicyRule) string {
	if len(rule.NonResourceURLs) > 0 {
		return strings.Join(rule.Verbs, ", ") + " on " + strings.Join(rule.NonResourceURLs, ", ")
	}
	var resources []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			resources = append(resources, schema.GroupResource{Group: group, Resource: resource}.String())
		}
	}
	text := strings.Join(rule.Verbs, ", ") + " on " + strings.Join(resources, ", ")
	if len(rule.ResourceNames) > 0 {
		text += " " + strings.Join(rule.ResourceNames, ", ")
	}
	return text
}

func cutSubresource(resource string) (string, string) {
	resource, sub, _ := strings.Cut(resource, "/")
	return resource, sub
}

// resourceArgument is a resource as kubectl create role takes it: "deployments.apps/scale".
func resourceArgument(right Right) string {
	resource, sub := cutSubresource(right.Resource)
	text := schema.GroupResource{Group: right.Group, Resource: resource}.String()
	if sub != "" {
		text += "/" + sub
	}
	return text
}
