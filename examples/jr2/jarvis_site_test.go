package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// edit replaces a text in files of the copy.
func (s *site) edit(t *testing.T, files, from, to string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.dir, files))
	must(t, err)
	found := false
	for _, path := range paths {
		text, err := os.ReadFile(path)
		must(t, err)
		found = found || strings.Contains(string(text), from)
		must(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), from, to)), 0o644))
	}
	if !found {
		t.Fatalf("no %s holds %q", files, from)
	}
}

var digests = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// release gives every image another digest.
func (s *site) release(t *testing.T, digit string) {
	t.Helper()
	path := filepath.Join(s.dir, "kustomization.yaml")
	text, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, digests.ReplaceAll(text, []byte("sha256:"+strings.Repeat(digit, 64))), 0o644))
}

func (s *site) apply(t *testing.T, more ...string) (*session, error) {
	t.Helper()
	run := newSession()
	args := append([]string{"apply", s.dir, "--kubeconfig", s.cluster.Kubeconfig(), "--context", "shared"}, more...)
	return run, run.run(t.Context(), args...)
}

// order checks that the lines are among those told, in this order.
func order(t *testing.T, run *session, want ...string) {
	t.Helper()
	lines := append(run.err.lines(), run.out.lines()...)
	for _, line := range want {
		at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, line) })
		if at < 0 {
			t.Fatalf("%q does not come in its order:\n%s%s", line, run.err, run.out)
		}
		lines = lines[at+1:]
	}
}

// migration is the Job as it is now.
func (s *site) migration(t *testing.T) string {
	t.Helper()
	job, err := s.client.BatchV1().Jobs("jarvis").Get(t.Context(), "jarvis-migrate", metav1.GetOptions{})
	must(t, err)
	return string(job.UID) + " " + job.Spec.Template.Spec.Containers[0].Image
}

// api is the image and the generation of the api.
func (s *site) api(t *testing.T) (image string, generation int64) {
	t.Helper()
	api, err := s.client.AppsV1().Deployments("jarvis").Get(t.Context(), "jarvis-api", metav1.GetOptions{})
	must(t, err)
	return api.Spec.Template.Spec.Containers[0].Image, api.Generation
}
