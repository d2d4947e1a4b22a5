package jr2

import (
	"strings"
	"testing"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/preflight"
)

// TestFindingsOfConflicts: fields are taken over where the server lets them change, and an object that holds another's fixed field has to go.
func TestFindingsOfConflicts(t *testing.T) {
	t.Parallel()
	class := apply.Ref{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass", Name: "jr2-control"}
	binding := apply.Ref{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding", Namespace: "n", Name: "b"}
	for _, tt := range []struct {
		ref              apply.Ref
		field, code, fix string
		says             string
	}{
		{class, ".value", preflight.CodeImmutable, "kubectl delete priorityclass.scheduling.k8s.io jr2-control", "name another class in priorityClasses"},
		{class, ".description", preflight.CodeFieldConflict, "--take-from helm", ""},
		{binding, ".roleRef.name", preflight.CodeImmutable, "kubectl -n n delete rolebinding.rbac.authorization.k8s.io b", "kubectl -n n get rolebinding.rbac.authorization.k8s.io b -o yaml"},
		{binding, ".subjects", preflight.CodeFieldConflict, "--take-from helm", ""},
	} {
		conflict := &apply.ConflictError{Ref: tt.ref, Conflicts: []apply.Conflict{{Manager: "helm", Field: ".metadata.labels.a"}, {Manager: "helm", Field: tt.field}}}
		f := findingsOf(conflict, "x")[0]
		if f.Code != tt.code || f.Fix != tt.fix || !strings.Contains(f.Message, tt.says) || f.Object != tt.ref.String() {
			t.Errorf("%s of %s: got %+v", tt.field, tt.ref, f)
		}
	}
}
