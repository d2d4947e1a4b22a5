package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/devcluster"
)

// A movedSet is a directory of two ConfigMaps that was applied; then the file of one was moved into a folder. Field
// case F46.
type movedSet struct {
	cluster *devcluster.Cluster
	client  kubernetes.Interface
	dir     string
}

func newMovedSet(t *testing.T) *movedSet {
	t.Helper()
	s := &movedSet{cluster: devcluster.ForTest(t, devcluster.Options{Bare: true, Context: "shared"}), dir: filepath.Join(t.TempDir(), "shelf")}
	isolated(t)
	var err error
	s.client, err = kubernetes.NewForConfig(s.cluster.Config())
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(s.dir, "apps"), 0o755))
	for file, text := range map[string]string{
		"ns.yaml":   "apiVersion: v1\nkind: Namespace\nmetadata: {name: shelf}\n",
		"keep.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: keep, namespace: shelf}\n",
		"web.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shelf}\n",
	} {
		must(t, os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o600))
	}
	run := newSession()
	if err := s.apply(t, run); err != nil || strings.Contains(run.err.String(), "note: ") {
		t.Fatalf("%v\n%s", err, run.err)
	}
	must(t, os.Rename(filepath.Join(s.dir, "web.yaml"), filepath.Join(s.dir, "apps", "web.yaml")))
	return s
}

func (s *movedSet) args(more ...string) []string {
	return append([]string{"apply", s.dir, "--kubeconfig", s.cluster.Kubeconfig()}, more...)
}

func (s *movedSet) apply(t *testing.T, run *session, more ...string) error {
	return run.run(t.Context(), s.args(more...)...)
}

func (s *movedSet) holdsWeb(t *testing.T) bool {
	t.Helper()
	_, err := s.client.CoreV1().ConfigMaps("shelf").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// TestAPruneThatLooksLikeAnAccident: with nobody to ask, the command notes what is not read, refuses with the flag that
// agrees, and deletes nothing.
func TestAPruneThatLooksLikeAnAccident(t *testing.T) {
	s := newMovedSet(t)
	file := filepath.Join(s.dir, "apps", "web.yaml")
	note := "note: " + file + " looks like a manifest and is not read: sub-folders are not read\n"
	doubt := file + ": it looks like a manifest of ConfigMap shelf/web and is not read: sub-folders are not read\n"
	plan := "DELETES 1 object:\nprune       ConfigMap shelf/web\nwhich looks like an accident:\n            " + doubt
	const flag = " — with --allow-prune\n"
	var accident *apply.AccidentError
	for _, more := range [][]string{nil, {"--plan"}} {
		run := newSession()
		err := s.apply(t, run, more...)
		text := run.err.String()
		if !errors.As(err, &accident) || !strings.Contains(text, note) || !strings.Contains(text, doubt) || !strings.HasSuffix(text, flag) {
			t.Errorf("%v: got %v\n%s", more, err, run.err)
		}
		if more != nil && !strings.HasPrefix(run.out.String(), plan) {
			t.Errorf("got the plan %s", run.out)
		}
		run = newSession()
		err = s.apply(t, run, append(more, "-o", "json")...)
		var told struct {
			Type  string
			Files []apply.UnreadFile
		}
		for _, line := range run.out.lines() {
			if strings.Contains(line, `"type":"unread"`) {
				must(t, json.Unmarshal([]byte(line), &told))
			}
		}
		if !errors.As(err, &accident) || len(told.Files) != 1 || told.Files[0].Path != file || !strings.Contains(run.out.lastLine(), "--allow-prune") {
			t.Errorf("%v, as JSON: got %v\n%s", more, err, run.out)
		}
	}
	if !s.holdsWeb(t) {
		t.Fatal("it was deleted")
	}
	run := newSession()
	if err := s.apply(t, run, "--allow-prune"); err != nil || s.holdsWeb(t) || !strings.Contains(run.err.String(), note) {
		t.Errorf("agreed to: %v\n%s", err, run.err)
	}
	run = newSession()
	if err := s.apply(t, run); err != nil || !strings.Contains(run.err.String(), note) || !strings.Contains(run.err.String(), "nothing changed") {
		t.Errorf("the next one: %v\n%s", err, run.err)
	}

	for _, name := range []string{"ns.yaml", "keep.yaml"} {
		must(t, os.WriteFile(filepath.Join(s.dir, name), nil, 0o600))
	}
	run = newSession()
	if err := s.apply(t, run, "-n", "shelf", "--allow-empty"); err != nil {
		t.Errorf("a directory without an object, as agreed: %v\n%s", err, run.err)
	}
}

// TestUnreadFilesAreToldInBounds: a large folder that is not read does not fill the screen.
func TestUnreadFilesAreToldInBounds(t *testing.T) {
	files := make([]apply.UnreadFile, 12)
	const rest = "note: and 2 more files look like manifests and are not read"
	for _, output := range []string{"text", "json"} {
		s := newSession()
		p, err := newApplyPrinter(output, Streams{Out: s.out, Err: s.err})
		must(t, err)
		p.unread(files)
		p.unread(nil)
		if text := len(s.err.lines()); output == "text" && (text != 11 || s.err.lastLine() != rest) {
			t.Errorf("got %s", s.err)
		}
		if output == "json" && (strings.Count(s.out.lastLine(), `"path"`) != 10 || !strings.HasSuffix(s.out.lastLine(), `"more":2}`)) {
			t.Errorf("got %s", s.out)
		}
	}
}
