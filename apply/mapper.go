package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// A mapper knows the resources of the kinds that the server serves. It asks for each group and version when the first of its kinds is
// met, and again after reset. The list of everything, which client-go's mappers read, is two requests and thrice as large as two groups on
// an empty cluster, and grows with every definition there; it says nothing of a group whose server is away; and a kind that has just
// arrived comes into it later.
type mapper struct {
	discovery discovery.DiscoveryInterfaceWithContext

	mu       sync.Mutex
	served   map[schema.GroupVersion]*servedVersion
	versions map[string][]string // of the groups that were asked for
}

// A servedVersion is the answer about one version of a group. Its lock is held while the server is asked, so that it is asked once.
type servedVersion struct {
	mu    sync.Mutex
	known bool
	kinds map[string]metav1.APIResource
}

// mapping tells the resource of a kind in one version, or in the first one that has it when the version is empty. A kind that is not
// served is an error for which meta.IsNoMatchError holds; a group whose server is away, an *awayError.
func (m *mapper) mapping(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	versions := []string{gvk.Version}
	if gvk.Version == "" {
		var err error
		if versions, err = m.versionsOf(ctx, gvk.Group); err != nil {
			return nil, err
		}
	}
	for _, v := range versions {
		gv := schema.GroupVersion{Group: gvk.Group, Version: v}
		kinds, err := m.kinds(ctx, gv)
		if err != nil {
			return nil, err
		}
		if r, ok := kinds[gvk.Kind]; ok {
			scope := meta.RESTScopeRoot
			if r.Namespaced {
				scope = meta.RESTScopeNamespace
			}
			return &meta.RESTMapping{Resource: gv.WithResource(r.Name), GroupVersionKind: gv.WithKind(gvk.Kind), Scope: scope}, nil
		}
	}
	return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: slices.DeleteFunc(versions, func(v string) bool { return v == "" })}
}

// kinds lists what one version of a group has; nothing when it is not served.
func (m *mapper) kinds(ctx context.Context, gv schema.GroupVersion) (map[string]metav1.APIResource, error) {
	m.mu.Lock()
	if m.served == nil {
		m.served = map[schema.GroupVersion]*servedVersion{}
	}
	s := m.served[gv]
	if s == nil {
		s = &servedVersion{}
		m.served[gv] = s
	}
	m.mu.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known {
		return s.kinds, nil
	}
	list, err := m.discovery.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
	if apierrors.IsNotFound(err) {
		list, err = &metav1.APIResourceList{}, nil
	}
	if err != nil {
		return nil, away(gv, err)
	}
	s.known, s.kinds = true, map[string]metav1.APIResource{}
	for _, r := range list.APIResources {
		if _, twice := s.kinds[r.Kind]; !twice && !strings.Contains(r.Name, "/") {
			s.kinds[r.Kind] = r
		}
	}
	return s.kinds, nil
}

// versionsOf lists the versions of a group, the server's favourite first.
func (m *mapper) versionsOf(ctx context.Context, group string) (found []string, err error) {
	if group == "" {
		return []string{"v1"}, nil
	}
	m.mu.Lock()
	known, asked := m.versions[group]
	m.mu.Unlock()
	if asked {
		return known, nil
	}
	defer func() {
		if err == nil {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.versions == nil {
				m.versions = map[string][]string{}
			}
			m.versions[group] = found
		}
	}()
	var g metav1.APIGroup
	err = m.discovery.RESTClient().Get().AbsPath("/apis", group).Do(ctx).Into(&g)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	versions := []string{g.PreferredVersion.Version}
	for _, v := range g.Versions {
		if v.Version != g.PreferredVersion.Version {
			versions = append(versions, v.Version)
		}
	}
	return versions, nil
}

// reset forgets what is known, because kinds came or went.
func (m *mapper) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.served, m.versions = nil, nil
}

// An awayError says that the API server answers, and that the one behind it which serves a group does not.
type awayError struct {
	gv  schema.GroupVersion
	err error
}

func (e *awayError) Error() string {
	return fmt.Sprintf("the server that serves %s is away: %v", e.gv, e.err)
}
func (e *awayError) Unwrap() error { return e.err }

// away tells a group whose own server is away from an API server that is.
func away(gv schema.GroupVersion, err error) error {
	status := apierrors.APIStatus(nil)
	if gv.Group != "" && errors.As(err, &status) && status.Status().Code == http.StatusServiceUnavailable {
		return &awayError{gv, err}
	}
	return err
}
