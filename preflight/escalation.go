package preflight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// An uncoveredGrant is what a role or a binding grants and the caller does not hold.
type uncoveredGrant struct {
	grant Grant
	rules []rbacv1.PolicyRule // none where only the server knows them
	said  error               // the server's words; nil when it was not asked, or could not be
}

// uncovered are the grants that the server would refuse, several asked about at a time. Where the caller is refused anyway, the server is not asked
// about those that the rules cover.
func (r *rights) uncovered(grants []Grant, refused bool) ([]uncoveredGrant, error) {
	judged := make([]*uncoveredGrant, len(grants))
	group, _ := errgroup.WithContext(r.ctx)
	group.SetLimit(reviewsAtOnce)
	for i, grant := range grants {
		group.Go(func() (err error) {
			judged[i], err = r.judge(grant, refused)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var all []uncoveredGrant
	for _, one := range judged {
		if one != nil {
			all = append(all, *one)
		}
	}
	return slices.DeleteFunc(all, func(u uncoveredGrant) bool { return toldByItsRole(u, all) }), nil
}

// judge returns nil for a grant that the server would take. What it says to a dry run counts; where that says nothing, the rules do.
func (r *rights) judge(grant Grant, refused bool) (*uncoveredGrant, error) {
	covers, rules := validation.Covers(r.rules[cmp.Or(grant.Namespace, noNamespace)], grant.Rules)
	uncovered := &uncoveredGrant{grant: grant, rules: rules}
	known := len(grant.Rules) > 0 || grant.Binds == nil
	if !known {
		covers = true // only the server can refuse it
	}
	if grant.Try != nil && (!refused || !covers || !known) {
		err := grant.Try(r.ctx)
		if cause := context.Cause(r.ctx); cause != nil {
			return nil, cause
		}
		switch {
		case err == nil:
			return nil, nil
		case isEscalation(err):
			covers, uncovered.said = false, err
		}
	}
	if !covers && uncovered.said == nil {
		var err error
		if covers, err = r.allowed(grant.permit()); err != nil {
			return nil, err
		}
	}
	if !covers && grant.Standing != nil {
		standing, err := grant.Standing(r.ctx)
		if err != nil {
			return nil, err
		}
		covers = standing
	}
	if covers {
		return nil, nil
	}
	return uncovered, nil
}

// toldByItsRole says that the finding about the role which is bound helps the binding too.
func toldByItsRole(u uncoveredGrant, all []uncoveredGrant) bool {
	return u.grant.Binds != nil && !u.grant.beyond && slices.ContainsFunc(all, func(role uncoveredGrant) bool {
		scope := role.grant.Namespace == "" || role.grant.Namespace == u.grant.Namespace
		return role.grant.Binds == nil && role.grant.holds() && scope && role.grant.Role == u.grant.bound()
	})
}

// bound is the role that a binding gives, as its own grant calls it.
func (g Grant) bound() string {
	if g.Binds.Kind == "ClusterRole" {
		return "ClusterRole " + g.Binds.Name
	}
	return "Role " + g.Namespace + "/" + g.Binds.Name
}

// fix gives the caller what the grant lacks, or, where that is more than it is to have, the right to write the grant all the same.
func (u uncoveredGrant) fix(user string) string {
	if !u.grant.holds() || len(u.rules) == 0 {
		return u.grant.permit().Fix(user)
	}
	kind, _, _ := strings.Cut(u.grant.Role, " ")
	return rulesFix("jr2:hold:"+strings.ToLower(kind)+":"+u.grant.Name, u.grant.Namespace, combined(smallest(u.rules, nil)), user)
}

func uncoveredFindings(uncovered []uncoveredGrant, user string) []Finding {
	var findings []Finding
	for _, u := range uncovered {
		texts := make([]string, len(u.rules))
		for i, rule := range u.rules {
			texts[i] = ruleText(rule)
		}
		if len(texts) == 0 && u.said != nil {
			texts = []string{strings.Join(strings.Fields(u.said.Error()), " ")}
		}
		findings = append(findings, Finding{
			Severity: Refuse, Code: CodeEscalation, Object: u.grant.Role, Fix: u.fix(user),
			Message: fmt.Sprintf("refusing: %s grants what this user does not hold, and the API server lets nobody grant that: %s. Nothing was applied.",
				u.grant.Role, strings.Join(texts, "; ")),
		})
	}
	return findings
}
