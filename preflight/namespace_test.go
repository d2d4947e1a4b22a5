package preflight_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/preflight"
)

func namespaceOf(owner string) *corev1.Namespace {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}
	if owner != "" {
		namespace.Labels = map[string]string{"jr2.dev/instance": owner}
	}
	return namespace
}

func deleted(namespace *corev1.Namespace, conditions ...corev1.NamespaceCondition) *corev1.Namespace {
	now := metav1.NewTime(time.Now())
	namespace.DeletionTimestamp = &now
	namespace.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating, Conditions: conditions}
	return namespace
}

func TestOwnership(t *testing.T) {
	held := corev1.NamespaceCondition{
		Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue,
		Message: "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
	}
	fine := corev1.NamespaceCondition{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionFalse, Message: "All resources successfully discovered"}
	for name, test := range map[string]struct {
		namespace *corev1.Namespace
		home      preflight.Home
		code      string
		message   string
	}{
		"absent":   {nil, preflight.Home{FirstContact: true, What: `create namespace "team-a"`}, "", ""},
		"unowned":  {namespaceOf(""), preflight.Home{FirstContact: true, There: true, What: `adopt the existing namespace "team-a"`}, "", ""},
		"ours":     {namespaceOf("app"), preflight.Home{}, "", ""},
		"foreign":  {namespaceOf("elder"), preflight.Home{}, preflight.CodeNamespaceOwner, `refusing: namespace "team-a" on shared belongs to another instance ("elder"). Give a different namespace with -n, or a different context.`},
		"a prefix": {namespaceOf("app-2"), preflight.Home{}, preflight.CodeNamespaceOwner, `("app-2")`},
		"terminating, ours": {deleted(namespaceOf("app"), fine, held), preflight.Home{}, preflight.CodeNamespaceTerminating,
			`refusing: namespace "team-a" on shared is being deleted — Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances. Wait`},
		"terminating, unowned": {deleted(namespaceOf("")), preflight.Home{}, preflight.CodeNamespaceTerminating, `refusing: namespace "team-a" on shared is being deleted. Wait`},
		"terminating, foreign": {deleted(namespaceOf("elder"), held), preflight.Home{}, preflight.CodeNamespaceOwner, `("elder")`},
	} {
		t.Run(name, func(t *testing.T) {
			home, findings := preflight.Ownership("shared", "team-a", "app", test.namespace)
			if home != test.home {
				t.Errorf("got %+v, want %+v", home, test.home)
			}
			if test.code == "" {
				if findings != nil {
					t.Errorf("got %v", findings)
				}
				return
			}
			if len(findings) != 1 || findings[0].Severity != preflight.Refuse || findings[0].Code != test.code || findings[0].Object != "Namespace team-a" ||
				findings[0].Fix == "" || !strings.Contains(findings[0].Message, test.message) {
				t.Errorf("got %+v", findings)
			}
		})
	}
}

func TestNamespaceName(t *testing.T) {
	for name, refused := range map[string]bool{
		"team-a": false, "a": false, "0": false,
		"Bad": true, "a.b": true, "a b": true, "-x": true, "a/b": true, "": true, strings.Repeat("a", 64): true, "jr2-system": true, "a\nb": true,
		"default": true, "kube-system": true, "kube-public": true, "kube-node-lease": true, "kube-anything": true, "kubeflow": false, "defaults": false, "my-default": false,
	} {
		findings := preflight.NamespaceName(name)
		if len(findings) > 0 != refused {
			t.Errorf("%q: %v", name, findings)
		}
		for _, finding := range findings {
			if strings.Contains(finding.Message, "\n") || finding.Severity != preflight.Refuse {
				t.Errorf("%+v", finding)
			}
		}
	}
}

// TestNamespacesOfOtherToolsAreRefused: each mark alone, in a first contact; a namespace that its owner labelled is the Instance's.
func TestNamespacesOfOtherToolsAreRefused(t *testing.T) {
	type marks = map[string]string
	for name, test := range map[string]struct {
		labels, annotations marks
		owners              []metav1.OwnerReference
		says                string
	}{
		"Helm":                      {annotations: marks{"meta.helm.sh/release-name": "shop"}, says: `a release of Helm — its annotation meta.helm.sh/release-name is "shop"`},
		"Helm, by managed-by":       {labels: marks{"app.kubernetes.io/managed-by": "Helm"}, says: `its label app.kubernetes.io/managed-by is "Helm"`},
		"Argo CD, tracking":         {annotations: marks{"argocd.argoproj.io/tracking-id": "shop:/Namespace:shop/shop"}, says: "Argo CD"},
		"Argo CD, instance":         {labels: marks{"argocd.argoproj.io/instance": "shop"}, says: "Argo CD"},
		"Flux":                      {labels: marks{"kustomize.toolkit.fluxcd.io/name": "apps"}, says: "Kustomization of Flux"},
		"Flux, Helm":                {labels: marks{"helm.toolkit.fluxcd.io/name": "apps"}, says: "HelmRelease of Flux"},
		"kapp":                      {labels: marks{"kapp.k14s.io/app": "17"}, says: "an app of kapp"},
		"an ApplySet":               {labels: marks{"applyset.kubernetes.io/part-of": "applyset-x-v1"}, says: "ApplySet"},
		"Config Sync":               {annotations: marks{"configmanagement.gke.io/managed": "enabled"}, says: "Config Sync"},
		"a subnamespace":            {annotations: marks{"hnc.x-k8s.io/subnamespace-of": "parent"}, says: "Hierarchical Namespace Controller"},
		"Capsule":                   {labels: marks{"capsule.clastix.io/tenant": "oil"}, says: "Tenant of Capsule"},
		"OpenShift":                 {labels: marks{"openshift.io/run-level": "0"}, says: "OpenShift"},
		"an addon":                  {labels: marks{"addonmanager.kubernetes.io/mode": "Reconcile"}, says: "addon manager"},
		"a set":                     {annotations: marks{"jr2.dev/set": "ops/base"}, says: "a set of jr2 apply"},
		"an owner":                  {owners: []metav1.OwnerReference{{Kind: "Tenant", Name: "oil"}}, says: "Tenant oil"},
		"nothing that tells":        {labels: marks{"team": "a", "kubernetes.io/metadata.name": "team-a", "pod-security.kubernetes.io/enforce": "restricted"}},
		"our own managed-by":        {labels: marks{"app.kubernetes.io/managed-by": "jr2"}},
		"Config Sync, switched off": {annotations: marks{"configmanagement.gke.io/managed": "disabled"}},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := namespaceOf("")
			namespace.Labels, namespace.Annotations, namespace.OwnerReferences = test.labels, test.annotations, test.owners
			home, findings := preflight.Ownership("shared", "team-a", "app", namespace)
			switch {
			case !home.FirstContact || !home.There:
				t.Errorf("got %+v", home)
			case test.says == "" && len(findings) > 0:
				t.Errorf("refused: %v", findings)
			case test.says == "":
			case len(findings) != 1 || findings[0].Code != preflight.CodeNamespaceManaged || findings[0].Severity != preflight.Refuse ||
				!strings.Contains(findings[0].Message, test.says) || findings[0].Fix != "kubectl label namespace team-a jr2.dev/instance=app":
				t.Errorf("got %+v", findings)
			}
			if namespace.Labels == nil {
				namespace.Labels = marks{}
			}
			namespace.Labels["jr2.dev/instance"] = "app"
			if home, findings := preflight.Ownership("shared", "team-a", "app", namespace); home.FirstContact || len(findings) > 0 {
				t.Errorf("labelled by its owner: %+v, %v", home, findings)
			}
		})
	}
}

func ExampleNamespaceName() {
	fmt.Println(preflight.NamespaceName("team-a"), preflight.NamespaceName("jr2-system")[0].Code)
	// Output: [] namespace-name
}
