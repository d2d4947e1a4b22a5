package apply_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/apply"
)

// A Secret that is taken over from another set loses no key that this set does not ask for, unless that is asked for by the name of its manager.
func TestASecretOfAnotherSetLosesNoKeyUnasked(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	secret := func(owner, key string) *apply.Set {
		return mustSet(t, owner, ns, "apiVersion: v1\nkind: Secret\nmetadata: {name: words, namespace: NS}\nstringData: {"+key+": x}")
	}
	mustApply(t, secret("a", "first"), apply.Options{})
	opts := apply.Options{AdoptFrom: []string{ns + "/a"}}
	_, err := apply.Apply(t.Context(), config(t), secret("b", "second"), opts)
	for _, err := range []error{err, mustPlan(t, secret("b", "second"), opts).Err()} {
		if conflict := (*apply.ConflictError)(nil); !errors.As(err, &conflict) || conflict.Conflicts[0].Field != ".data.first" {
			t.Errorf("got %v", err)
		}
	}
	now, err := typed(t).CoreV1().Secrets(ns).Get(t.Context(), "words", metav1.GetOptions{})
	if err != nil || len(now.Data) != 1 || len(now.Data["first"]) == 0 {
		t.Errorf("%v, %d keys", err, len(now.Data))
	}
	opts.Conflicts.TakeFrom = []string{apply.DefaultFieldManager}
	mustApply(t, secret("b", "second"), opts)
}
