package assembly

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// strangersAreLeftAlone: a ConfigMap of the pointer's name, and one of a chunk's, by another hand is neither written nor deleted.
func strangersAreLeftAlone(t *testing.T, s store) {
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	a := made(t, "stranger", 3000)
	for _, name := range []string{chunkName(a.Hash, 0), "jr2-assembly"} {
		theirs, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"theirs": "x"}}, metav1.CreateOptions{FieldManager: "kubectl-create"})
		if err != nil {
			t.Fatal(err)
		}
		var foreign *ForeignError
		if err := s.publisher(s.client).Publish(t.Context(), a); !errors.As(err, &foreign) || foreign.Name != name || len(foreign.Managers) != 1 {
			t.Errorf("%s: %v", name, err)
		}
		now, err := maps.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || now.ResourceVersion != theirs.ResourceVersion {
			t.Errorf("%s was written: %v", name, err)
		}
		if name != "jr2-assembly" {
			if err := maps.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	adopting := s.publisher(s.client)
	if _, _, err := adopting.Current(t.Context()); err == nil {
		t.Error("a stranger's pointer was read")
	}
	adopting.Adopt = true
	if err := adopting.Publish(t.Context(), a); err != nil || s.current(t) != a.Hash {
		t.Errorf("with the adoption: %v", err)
	}
}
