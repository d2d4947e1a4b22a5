package main

import (
	"errors"
	"fmt"
	"testing"

	"jr2.dev/jr2/apply"
)

// TestFixesNameTheirFlags has an error of the library say which flag of the command helps, with its value.
func TestFixesNameTheirFlags(t *testing.T) {
	ref := apply.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a"}
	conflict := func(manager string) error {
		return &apply.ConflictError{Ref: ref, Conflicts: []apply.Conflict{{Manager: manager, Field: ".data.x"}}}
	}
	several := fmt.Errorf("apply: %w", errors.Join(conflict("kubectl-patch"), conflict("kubectl (scale)"), conflict("kubectl-patch")))
	owned := &apply.OwnedError{Ref: ref, Owner: "shop/web", Set: "shop/other"}
	moved := &apply.OwnedError{Ref: ref, Owner: "shop/web", Set: "default/web"}
	for _, c := range []struct {
		err, base error
		want      string
	}{
		{takeable(several), several, ` — with --take-from "kubectl" --take-from "kubectl-patch"`},
		{takeable(owned), owned, ``},
		{adoptable(owned), owned, ` — or take what belongs to that set over, with --adopt-from shop/web`},
		{adoptable(moved), moved, ` — or take what belongs to that set over, with --adopt-from shop/web; or, when it is the same set and only its record is looked for elsewhere, with -n shop`},
	} {
		if got := c.err.Error(); got != c.base.Error()+c.want {
			t.Errorf("got  %s\nwant %s%s", got, c.base, c.want)
		}
		if !errors.Is(c.err, c.base) {
			t.Errorf("%v lost what it wraps", c.err)
		}
	}
	if takeable(nil) != nil {
		t.Error("no error became one")
	}
	ref, err := parseRef("CustomResourceDefinition widgets.example.com")
	if err != nil || ref.Group != "apiextensions.k8s.io" {
		t.Errorf("a definition without its group: %v, %v", ref, err)
	}
}
