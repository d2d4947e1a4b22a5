package provision_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/placement/provision"
	"jr2.dev/jr2/placement/v1alpha1"
)

// TestKilledAtEachWrite: a process that ends before or after any of its writes leaves what the same request completes.
func TestKilledAtEachWrite(t *testing.T) {
	for write := range 4 { // the token, the Repo, the Sandbox, the token's owner
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d %t", write, done), func(t *testing.T) {
				s := newSite(t)
				request := s.request(func(c *provision.Composition) {
					c.Workspace.Repos = []config.RepoSlot{{Slot: "app", State: config.SlotBound, URL: "https://git.example.test/team/app"}}
				})
				request.Sandbox.Spec.Repos = nil // it is made, and no node has it
				_, err := provision.Provision(t.Context(), s.killedAt(write, done), request, provision.Options{})
				if !errors.Is(err, errKilled) {
					t.Fatalf("ended with %v", err)
				}
				box, err := s.start(request, provision.Options{}).end()
				if err != nil || box.Adopted != (write == 2 && done || write == 3) {
					t.Errorf("adopted %t, %v", box.Adopted, err)
				}
				var secret corev1.Secret
				if !s.get(request.Sandbox.Name+"-token", &secret) || len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != box.Sandbox.UID {
					t.Errorf("the token: %v", secret.OwnerReferences)
				}
				var repo v1alpha1.Repo
				if !s.get(request.Repos[0].Name, &repo) {
					t.Error("there is no Repo")
				}
				s.are(1)
			})
		}
	}
}

var errKilled = errors.New("killed")

// killedAt is the way of a process that is killed at a write, before or after the server did it: no request after that arrives.
func (s *site) killedAt(write int, done bool) *rest.Config {
	var mutex sync.Mutex
	writes, dead := 0, false
	return s.through(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		mutex.Lock()
		defer mutex.Unlock()
		if dead {
			return nil, errKilled
		}
		if r.Method == http.MethodGet {
			return next.RoundTrip(r)
		}
		dead = writes == write
		writes++
		if dead && done {
			response, err := next.RoundTrip(r)
			if err != nil {
				return nil, err
			}
			response.Body.Close() //nolint:errcheck // nobody reads it
		}
		if dead {
			return nil, errKilled
		}
		return next.RoundTrip(r)
	})
}

// TestK03TooLargeForAnyNode: it waits with the scheduler's reason, and a deadline ends it with sandbox_lost and that reason.
func TestK03TooLargeForAnyNode(t *testing.T) {
	s := newSite(t)
	memory := int64(1) << 50
	going := s.start(s.request(func(c *provision.Composition) { c.Workspace.Size.Memory = &memory }), provision.Options{PlacingDeadline: 2 * time.Second})
	_, err := going.end()
	var lost *provision.LostError
	if !errors.As(err, &lost) || lost.Code() != "sandbox_lost" || !strings.Contains(lost.Wait.Message, "Insufficient memory") || lost.After < 2*time.Second {
		t.Errorf("ended with %v", err)
	}
	s.are(0)
}

// TestPlacedAtTheLastMoment: a Sandbox that gets its node between the last look and the delete stays.
func TestPlacedAtTheLastMoment(t *testing.T) {
	s := newSite(t)
	request := s.request(pooled("nowhere"))
	var mutex sync.Mutex
	deletes := 0
	cfg := s.through(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		mutex.Lock()
		defer mutex.Unlock()
		switch {
		case isSandbox(r, http.MethodDelete):
			if deletes++; deletes == 1 { // something changes
				box := &v1alpha1.Sandbox{}
				s.until("the Sandbox is changed", func() bool {
					s.get(request.Sandbox.Name, box)
					box.Annotations["changed"] = "now"
					return s.Update(s.Context(), box) == nil
				})
			}
		case isSandbox(r, http.MethodGet) && strings.HasSuffix(r.URL.Path, request.Sandbox.Name): // and that is what
			box := &v1alpha1.Sandbox{}
			s.get(request.Sandbox.Name, box)
			box.Status.Node = "roomy"
			body, err := json.Marshal(box)
			return response(r, http.StatusOK, string(body)), err
		}
		return next.RoundTrip(r)
	})
	going := s.startAs(cfg, request, provision.Options{})
	going.tells("waits on node")
	going.cancel(nil)
	if box, err := going.end(); box.Removed || err == nil || deletes != 1 {
		t.Errorf("removed %t after %d deletes, %v", box.Removed, deletes, err)
	}
	s.are(1)
}

// TestProvisionAgain: the same request after a process that was killed goes on with what is there; another one of the name is refused.
func TestProvisionAgain(t *testing.T) {
	s := newSite(t)
	q := s.quota("q", list(corev1.ResourceLimitsMemory, "512Mi"))
	request := s.request()
	// What a killed process leaves: the Sandbox and its token as they were written.
	killed := s.start(request, provision.Options{})
	killed.tells("waits on quota")
	again := s.start(request, provision.Options{})
	again.tells("waits on quota")
	other := request
	other.Sandbox = request.Sandbox.DeepCopy()
	other.Sandbox.Labels[v1alpha1.LabelRun] = "another"
	if box, err := s.start(other, provision.Options{}).end(); !errors.As(err, new(*provision.ExistsError)) || box.Removed {
		t.Errorf("another run: %+v, %v", box, err)
	}
	other.Token = config.NewSecret("another")
	if _, err := s.start(other, provision.Options{}).end(); !errors.As(err, new(*provision.ExistsError)) {
		t.Errorf("another token: %v", err)
	}
	s.raise(q, list(corev1.ResourceLimitsMemory, "2Gi"))
	if box, err := again.end(); err != nil || !box.Adopted {
		t.Errorf("%+v, %v", box, err)
	}
	s.are(1)
}
