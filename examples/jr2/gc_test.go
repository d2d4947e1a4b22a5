package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/internal/kindnodes"
)

// TestGC runs the command against an API server of an empty cluster and a real Docker Engine. What is needed and what goes is tested where
// it is decided.
func TestGC(t *testing.T) {
	forbidden, machine := false, kindnodes.MachineID
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case forbidden && strings.HasSuffix(r.URL.Path, "/namespaces"):
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`)
		case strings.Contains(r.URL.Path, "/configmaps/"):
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		case strings.HasSuffix(r.URL.Path, "/nodes"):
			fmt.Fprint(w, `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"dev-control-plane"},"status":{"nodeInfo":{"machineID":"`+machine+`"}}}]}`)
		case strings.HasSuffix(r.URL.Path, "/namespaces"):
			fmt.Fprint(w, `{"kind":"NamespaceList","apiVersion":"v1","items":[]}`)
		default:
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","items":[]}`)
		}
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	must(t, os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\ncurrent-context: here\nclusters: [{name: c, cluster: {server: \""+server.URL+
		"\"}}]\ncontexts: [{name: here, context: {cluster: c}}, {name: kind-dev, context: {cluster: c}}]\n"), 0o600))
	engine, err := devcluster.StartDockerd(t.Context(), devcluster.DockerOptions{})
	if errors.Is(err, devcluster.ErrNoDocker) {
		devcluster.Missing(t, err.Error())
	}
	must(t, err)
	defer engine.Close() //nolint:errcheck // the end of the test
	gc := func(host string, more ...string) (*session, error) {
		s := newSession()
		s.env = []string{"DOCKER_HOST=" + host}
		return s, s.run(t.Context(), append([]string{"gc", "--kubeconfig", kubeconfig}, more...)...)
	}
	s, err := gc(engine.Host, "--dry-run")
	if must(t, err); s.err.lastLine() != "images: nothing to sweep (0 needed)" {
		t.Errorf("got %s", s.err)
	}
	s, err = gc(engine.Host, "-o", "json")
	if must(t, err); !strings.Contains(s.out.lastLine(), `"result":{"removed":[],"images":0,"bytes":0,"kept":0}`) {
		t.Errorf("got %s", s.out)
	}
	if s, err = gc(engine.Host, "--context", "kind-dev"); err == nil || !strings.Contains(s.err.lastLine(), `has no node of the kind cluster "dev"`) {
		t.Errorf("%v: %s", err, s.err)
	}
	nodes, err := kindnodes.Start(t.Context(), kindnodes.Options{Host: engine.Host, Cluster: "dev", Nodes: []string{"dev-control-plane"}})
	must(t, err)
	defer nodes.Close() //nolint:errcheck // the end of the test
	s, err = gc(engine.Host, "--context", "kind-dev")
	if must(t, err); s.err.lastLine() != "node dev-control-plane: images: nothing to sweep (0 needed)" {
		t.Errorf("got %s", s.err)
	}
	machine = "another"
	if s, err = gc(engine.Host, "--context", "kind-dev"); err == nil || !strings.Contains(s.err.lastLine(), `belongs to another cluster than the context names: its machine id is `+kindnodes.MachineID) {
		t.Errorf("%v: %s", err, s.err)
	}
	if s, err = gc("unix:///nowhere/docker.sock"); err == nil || !strings.Contains(s.err.lastLine(), "nothing was swept: Docker Engine at unix:///nowhere/docker.sock (DOCKER_HOST is set) does not answer") {
		t.Errorf("%v: %s", err, s.err)
	}
	forbidden = true
	if s, err = gc(engine.Host); err == nil || !strings.Contains(s.err.lastLine(), "nothing was swept, because what here needs could not be read") {
		t.Errorf("%v: %s", err, s.err)
	}
}
