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
		"unowned":  {namespaceOf(""), preflight.Home{FirstContact: true, What: `adopt the existing namespace "team-a"`}, "", ""},
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

func ExampleNamespaceName() {
	fmt.Println(preflight.NamespaceName("team-a"), preflight.NamespaceName("jr2-system")[0].Code)
	// Output: [] namespace-name
}
