package jr2_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"jr2.dev/jr2"
)

// A converge that finds all as it asked for it costs few requests, and writes nothing but its lock: of what is checked before the first write, each
// look is paid for by every converge of everybody. The bounds are what `hold` takes now, and a few.
func TestAConvergeTakesFewRequests(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")})
	var requests atomic.Int64
	var writes writes
	count := func(o *jr2.Options) {
		o.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				requests.Add(1)
				return next.RoundTrip(r)
			})
		})
		o.Config.Wrap(writes.wrap)
	}
	must(t, w.up(t, dir, into("few-requests"), count).err)
	if n := requests.Swap(0); n > 110 {
		t.Errorf("the first converge took %d requests", n)
	}
	made := len(writes.all())
	up := w.up(t, dir, into("few-requests"), count)
	must(t, up.err)
	if n := requests.Load(); n > 65 || up.result.Changed != 0 {
		t.Errorf("the second converge took %d requests and changed %d", n, up.result.Changed)
	}
	for _, write := range writes.all()[made:] {
		if !strings.Contains(write, "/leases/") {
			t.Errorf("the second converge wrote %s", write)
		}
	}
}
