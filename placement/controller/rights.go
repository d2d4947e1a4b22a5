package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/placement/v1alpha1"
)

// A RightsError says what Run may not do. Without the question a controller would wait for ever, and in silence: its caches for a list that is
// refused, its election for a Lease.
type RightsError struct {
	// Missing are rights as people say them, sorted: "watch pods in namespace team-a", "create leases.coordination.k8s.io in namespace ops".
	Missing []string
}

func (e *RightsError) Error() string {
	return "the controller may not " + strings.Join(e.Missing, ", ") + " — bind its account to a role with these rights"
}

// reviewsAtOnce bounds how many questions about rights are under way.
const reviewsAtOnce = 16

// A need is one thing that Run does wherever it works.
type need struct {
	group, resource string
	verbs           []string
}

func needs() []need {
	return []need{
		{"", "pods", []string{"get", "list", "watch", "create", "delete"}},
		{"", "services", []string{"get", "list", "watch", "create"}},
		{v1alpha1.Group, v1alpha1.SandboxResource, []string{"get", "list", "watch", "delete"}},
		{v1alpha1.Group, v1alpha1.SandboxResource + "/status", []string{"patch"}},
		{v1alpha1.Group, v1alpha1.RepoResource, []string{"list", "watch"}},
		{v1alpha1.Group, v1alpha1.RepoResource + "/status", []string{"patch"}},
	}
}

// checkRights asks for everything that Run can't do without. The answer of an authorizer that is away is an error, and no missing right.
func checkRights(ctx context.Context, c client.Client, opts Options, election string) error {
	var all []authorizationv1.ResourceAttributes
	for _, namespace := range places(opts.Namespaces) {
		for _, need := range needs() {
			all = append(all, need.in(namespace)...)
		}
	}
	if opts.LeaderElection {
		all = append(all, need{"coordination.k8s.io", "leases", []string{"get", "create", "update"}}.in(election)...)
	}
	refused := make([]string, len(all))
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for i, right := range all {
		group.Go(func() error {
			allowed, err := may(asking, c, right)
			if err != nil {
				return fmt.Errorf("ask for the right to %s: %w", text(right), err)
			}
			if !allowed {
				refused[i] = text(right)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	slices.Sort(refused)
	if missing := slices.DeleteFunc(refused, func(s string) bool { return s == "" }); len(missing) > 0 {
		return &RightsError{Missing: missing}
	}
	return nil
}

func (n need) in(namespace string) []authorizationv1.ResourceAttributes {
	resource, sub, _ := strings.Cut(n.resource, "/")
	var rights []authorizationv1.ResourceAttributes
	for _, verb := range n.verbs {
		rights = append(rights, authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: n.group, Resource: resource, Subresource: sub})
	}
	return rights
}

func places(namespaces []string) []string {
	if len(namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return namespaces
}

func may(ctx context.Context, c client.Client, right authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
	if err := c.Create(ctx, review); err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

func text(right authorizationv1.ResourceAttributes) string {
	resource := right.Resource
	if right.Group != "" {
		resource += "." + right.Group
	}
	if right.Subresource != "" {
		resource += "/" + right.Subresource
	}
	if right.Namespace == "" {
		return right.Verb + " " + resource + " in all namespaces"
	}
	return right.Verb + " " + resource + " in namespace " + right.Namespace
}
