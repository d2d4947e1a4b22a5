package devcluster_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"jr2.dev/jr2/internal/devcluster"
)

func TestDockerd(t *testing.T) {
	t.Parallel()
	registry := startRegistry(t, devcluster.RegistryOptions{})
	engine, err := devcluster.StartDockerd(t.Context(), devcluster.DockerOptions{Reach: []string{registry.Host}})
	if errors.Is(err, devcluster.ErrNoDocker) {
		devcluster.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := registry.PushBusybox(t.Context(), "base/busybox:1", "amd64"); err != nil {
		t.Skip(err)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(engine.Host, "unix://"))
	}}}
	response, err := client.Post("http://docker/images/create?fromImage="+registry.Host+"/base/busybox&tag=1", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(text), "Downloaded newer image") {
		t.Errorf("%s %v", text, err)
	}
}
