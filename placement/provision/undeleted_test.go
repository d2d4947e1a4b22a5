package provision_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"jr2.dev/jr2/placement/provision"
)

// TestWhatCannotBeDeletedIsSaid: why the provision ended and why something is left are both there to be matched.
func TestWhatCannotBeDeletedIsSaid(t *testing.T) {
	s := newSite(t)
	refuse := s.through(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if isSandbox(r, http.MethodDelete) {
			return response(r, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"not you","code":403}`), nil
		}
		return next.RoundTrip(r)
	})
	going := s.startAs(refuse, s.request(pooled("nowhere")), provision.Options{})
	going.tells("waits on node")
	going.cancel(nil)
	box, err := going.end()
	var left *provision.UndeletedError
	if !errors.As(err, &left) || !errors.Is(err, context.Canceled) || !apierrors.IsForbidden(left.Cleanup) || box.Removed || !strings.Contains(err.Error(), "not you") {
		t.Errorf("removed %t, ended with %v", box.Removed, err)
	}
	s.are(1)
}
