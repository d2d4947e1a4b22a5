package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jr2.dev/jr2"
	"jr2.dev/jr2/apply"
)

func (s *stage) plan(namespace string, more ...string) []string {
	args := s.args(namespace, more...)
	args[0] = "plan"
	return args
}

// testPlan: 2 while something would change, 0 when nothing would, 1 for an error; the plan alone goes to stdout.
func (s *stage) testPlan(t *testing.T) {
	first := newSession()
	if err := first.run(t.Context(), s.plan("later")...); exitCode(err) != exitChanges {
		t.Fatalf("got %v:\n%s", err, first.err)
	}
	order(t, first, `jr2 plan — instance "fx-ping" → context shared / namespace later`, `first contact: create namespace "later"`, "namespace:", "  create      Namespace later",
		"tokens: mint JR2_INSTANCE_TOKEN, JR2_SIGNING_KEY in Secret later/jr2-instance", "instance:", "assembly: publish ", " changes")
	s.isAbsent(t, "later")

	must(t, newSession().run(t.Context(), s.args("later", "--yes")...))
	again := newSession()
	if err := again.run(t.Context(), s.plan("later", "-o", "json")...); exitCode(err) != 0 {
		t.Errorf("got %v:\n%s", err, again.out)
	}
	var last struct{ Result jr2.Plan }
	must(t, json.Unmarshal([]byte(again.out.lastLine()), &last))
	if types := again.types(t); types[0] != "version" || types[1] != "planStarted" || types[len(types)-1] != "result" || last.Result.Version != 1 || len(last.Result.Layers) == 0 {
		t.Errorf("got %s", again.out)
	}
	out, err := command(t, s.plan("later", "--force")...).Output()
	if exit := exitOf(err); exit != exitChanges || !strings.HasSuffix(string(out), " again\n1 change\n") {
		t.Errorf("as a process: exit code %d\n%s", exit, out)
	}
	if err := newSession().run(t.Context(), s.plan("jr2-system")...); exitCode(err) != 1 {
		t.Errorf("a refusal: %v", err)
	}
}

func TestFlagsOfApply(t *testing.T) {
	mappings, err := parseImages([]string{"a.example:1/web=@sha256:1", "web=b.example:1/web:2", "app=b.example:1/app@sha256:3"})
	must(t, err)
	for name, want := range map[string]apply.ImageMapping{
		"a.example:1/web": {Digest: "sha256:1"}, "web": {NewName: "b.example:1/web", NewTag: "2"}, "app": {NewName: "b.example:1/app", Digest: "sha256:3"},
	} {
		if mappings[name] != want {
			t.Errorf("%s: %+v", name, mappings[name])
		}
	}
	for text, want := range map[string]apply.Ref{
		"Namespace demo": {Kind: "Namespace", Name: "demo"}, "PersistentVolumeClaim demo/state": {Kind: "PersistentVolumeClaim", Namespace: "demo", Name: "state"},
		"CustomResourceDefinition.apiextensions.k8s.io cherrys.fruit.example": {Kind: "CustomResourceDefinition", Group: "apiextensions.k8s.io", Name: "cherrys.fruit.example"},
		"CustomResourceDefinition cherrys.fruit.example":                      {Kind: "CustomResourceDefinition", Group: "apiextensions.k8s.io", Name: "cherrys.fruit.example"},
		"StatefulSet demo/db": {Kind: "StatefulSet", Group: "apps", Namespace: "demo", Name: "db"},
	} {
		if got, err := parseRef(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// TestAnEmptiedDirectoryIsRefused: files that were emptied by mistake must not take down what they held.
func TestAnEmptiedDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "web.yaml"), []byte("# nothing\n"), 0o600))
	a := applying{dir: dir, name: "web"}
	want := dir + ": its files hold no object, so all of the set would be pruned — correct them, or give --allow-empty to have that"
	if _, err := a.read(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	a.empty = true
	if set, err := a.read(); err != nil || len(set.Objects) != 0 {
		t.Errorf("with --allow-empty: %v, %v", set, err)
	}
}
