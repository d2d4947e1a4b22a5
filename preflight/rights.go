package preflight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// noNamespace is no name that a namespace can have: what a user may do there is what ClusterRoleBindings alone let him do.
const noNamespace = "no.namespace"

// reviewsAtOnce bounds the questions to the authorizer.
const reviewsAtOnce = 16

// Rights asks the API server whether the caller may do all that is needed, and grant what roles grant. Each missing right is one finding that
// refuses, with the objects that want it; the command that gives it names user, as the server knows the caller ("" prints USER).
//
// One question settles it for who may do everything. Else the caller's rules are read, once for each namespace, and what they do not show is
// asked right by right, because an authorizer other than RBAC need not list what it allows. Nothing is written: reviews of one's own rights are
// open to all by default. An error says that the server did not answer; then nothing is known.
func Rights(ctx context.Context, reviews authorizationclient.AuthorizationV1Interface, user string, needs []Need, grants []Grant) ([]Finding, error) {
	r := &rights{ctx: ctx, reviews: reviews, rules: map[string][]rbacv1.PolicyRule{}}
	if all, err := MayAll(ctx, reviews); err != nil || all {
		return nil, err
	}
	if err := r.readRules(needs, grants); err != nil {
		return nil, err
	}
	missing, err := r.missing(needs)
	if err != nil {
		return nil, err
	}
	uncovered, err := r.uncovered(grants, len(missing) > 0)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, m := range missing {
		fix := m.right.Fix(user)
		findings = append(findings, Finding{
			Severity: Refuse, Code: CodeRightMissing, Object: m.right.String(), Fix: fix,
			Message: fmt.Sprintf("refusing: this user may not %s, which is needed for %s. Nothing was applied.", m.right, strings.Join(m.objects, ", ")),
		})
	}
	return append(findings, uncoveredFindings(uncovered, user)...), nil
}

// MayAll asks whether the caller may do everything: then no right need be asked for, nor what is needed be worked out.
func MayAll(ctx context.Context, reviews authorizationclient.AuthorizationV1Interface) (bool, error) {
	r := &rights{ctx: ctx, reviews: reviews}
	return r.allowed(Right{Verb: "*", Group: "*", Resource: "*"})
}

// rights is one round of questions.
type rights struct {
	ctx     context.Context
	reviews authorizationclient.AuthorizationV1Interface
	rules   map[string][]rbacv1.PolicyRule // by namespace; noNamespace for the whole cluster
}

func (r *rights) allowed(right Right) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: right.attributes()}}
	answer, err := r.reviews.SelfSubjectAccessReviews().Create(r.ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("may this user %s: %w", right, err)
	}
	return answer.Status.Allowed, nil
}

func (r *rights) readRules(needs []Need, grants []Grant) error {
	wanted := []string{noNamespace}
	for _, need := range needs {
		wanted = append(wanted, cmp.Or(need.Namespace, noNamespace))
	}
	for _, grant := range grants {
		wanted = append(wanted, cmp.Or(grant.Namespace, noNamespace))
	}
	slices.Sort(wanted)
	for _, namespace := range slices.Compact(wanted) {
		review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
		answer, err := r.reviews.SelfSubjectRulesReviews().Create(r.ctx, review, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("what may this user do in %s: %w", namespace, err)
		}
		for _, rule := range answer.Status.ResourceRules {
			r.rules[namespace] = append(r.rules[namespace], rbacv1.PolicyRule{
				Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
			})
		}
		for _, rule := range answer.Status.NonResourceRules {
			r.rules[namespace] = append(r.rules[namespace], rbacv1.PolicyRule{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
		}
	}
	return nil
}

// holds says that the rules that were read give the right.
func (r *rights) holds(right Right) bool {
	covers, _ := validation.Covers(r.rules[cmp.Or(right.Namespace, noNamespace)], []rbacv1.PolicyRule{right.rule()})
	return covers
}

// A missingRight is a right without the names of objects, and the objects that want it.
type missingRight struct {
	right   Right
	objects []string
}

func (r *rights) missing(needs []Need) ([]missingRight, error) {
	var open []Need
	for _, need := range needs {
		if !r.holds(need.Right) {
			open = append(open, need)
		}
	}
	refused := make([]bool, len(open))
	group, _ := errgroup.WithContext(r.ctx)
	group.SetLimit(reviewsAtOnce)
	for i, need := range open {
		group.Go(func() error {
			allowed, err := r.allowed(need.Right)
			refused[i] = !allowed
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var missing []missingRight
	for i, need := range open {
		if !refused[i] {
			continue
		}
		if need.Unless != nil {
			unneeded, err := need.Unless(r.ctx)
			if cause := context.Cause(r.ctx); cause != nil {
				return nil, cause
			}
			if unneeded && err == nil {
				continue
			}
		}
		at := slices.IndexFunc(missing, func(m missingRight) bool { return m.right == need.kind() })
		if at < 0 {
			at = len(missing)
			missing = append(missing, missingRight{right: need.kind()})
		}
		if !slices.Contains(missing[at].objects, need.For) {
			missing[at].objects = append(missing[at].objects, need.For)
		}
	}
	return missing, nil
}
