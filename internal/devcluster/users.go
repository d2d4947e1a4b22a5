package devcluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ensureUsers gives the users their rights.
func (c *Cluster) ensureUsers(ctx context.Context) error {
	for _, user := range c.options.Users {
		// The API server answers before its RBAC API does.
		err := pollWhile(ctx, c.components("kube-apiserver"), func(ctx context.Context) error { return c.ensureUser(ctx, user) })
		if err != nil {
			return fmt.Errorf("give user %s its rights: %w", user.Name, err)
		}
	}
	return nil
}

func (c *Cluster) ensureUser(ctx context.Context, user User) error {
	name := "devcluster:" + user.Name
	meta := metav1.ObjectMeta{Name: name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user.Name}}
	if len(user.ClusterRules) > 0 {
		rbac := c.client.RbacV1()
		role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: user.ClusterRules}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}}
		if err := put(ctx, role, rbac.ClusterRoles().Create, rbac.ClusterRoles().Update); err != nil {
			return err
		}
		if err := put(ctx, binding, rbac.ClusterRoleBindings().Create, rbac.ClusterRoleBindings().Update); err != nil {
			return err
		}
	}
	for namespace, rules := range user.Rules {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		_, err := c.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		roles, bindings := c.client.RbacV1().Roles(namespace), c.client.RbacV1().RoleBindings(namespace)
		role := &rbacv1.Role{ObjectMeta: meta, Rules: rules}
		binding := &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}
		if err := put(ctx, role, roles.Create, roles.Update); err != nil {
			return err
		}
		if err := put(ctx, binding, bindings.Create, bindings.Update); err != nil {
			return err
		}
	}
	return nil
}

// put creates the object, or replaces the one of an earlier start.
func put[T any](ctx context.Context, object T,
	create func(context.Context, T, metav1.CreateOptions) (T, error),
	update func(context.Context, T, metav1.UpdateOptions) (T, error),
) error {
	_, err := create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = update(ctx, object, metav1.UpdateOptions{})
	}
	return err
}
