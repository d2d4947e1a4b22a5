package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"jr2.dev/jr2/internal/devcluster"
)

// testUndeleted: a run that is stopped does not say that it deleted what it could not; and a second signal ends one that still tries.
func (s *scene) testUndeleted(t *testing.T) {
	s.quota(t, "512Mi")
	defer s.quota(t, "")
	asked := make(chan struct{}, 100)
	var hangs atomic.Bool
	proxy, err := devcluster.StartProxy(t.Context(), s.cluster.Config(), func(next http.RoundTripper) http.RoundTripper {
		return devcluster.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodDelete || !strings.Contains(r.URL.Path, "/sandboxes/") {
				return next.RoundTrip(r)
			}
			asked <- struct{}{}
			if hangs.Load() {
				<-r.Context().Done()
			}
			return &http.Response{StatusCode: http.StatusForbidden, Status: "403 Forbidden", Request: r, Header: http.Header{}, Body: http.NoBody}, nil
		})
	})
	must(t, err)
	defer proxy.Close() //nolint:errcheck // the test is over
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, proxy.WriteKubeconfig(kubeconfig, "shared"))
	var left []string
	stop := func() (c *exec.Cmd, told *screen) {
		told = newScreen()
		c = command(t, "run", "hold", s.dir, "--kubeconfig", kubeconfig)
		c.Stderr = told
		must(t, c.Start())
		told.await(t, "waits for quota")
		must(t, c.Process.Signal(os.Interrupt))
		<-asked
		path := "/apis/core.jr2.dev/v1alpha1/namespaces/my-instance/sandboxes/" + sandboxNamed.FindString(told.String())
		left = append(left, path)
		return c, told
	}
	refused, told := stop()
	if code := exitOf(refused.Wait()); code != 1 || !strings.HasPrefix(told.lastLine(), "error: stopped — what never ran could not be deleted, so it goes with its idle timeout") {
		t.Errorf("code %d\n%s", code, told)
	}
	hangs.Store(true)
	hanging, told := stop()
	ended := make(chan error, 1)
	go func() { ended <- hanging.Wait() }()
	until(t, func() bool { // the process may still be hearing the first one
		hanging.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
		select {
		case err = <-ended:
			return true
		default:
			return false
		}
	})
	if err == nil || !strings.Contains(err.Error(), "signal: interrupt") {
		t.Errorf("the second signal: %v\n%s", err, told)
	}
	for _, path := range left {
		must(t, s.client.CoreV1().RESTClient().Delete().AbsPath(path).Do(t.Context()).Error())
	}
}
