package provision_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/provision"
	"jr2.dev/jr2/placement/v1alpha1"
)

// TestF30ACountQuotaIsWaitedFor: a quota of Sandboxes refuses the Sandbox itself, one of Secrets its token; both are the same wait to the caller.
func TestF30ACountQuotaIsWaitedFor(t *testing.T) {
	for name, resource := range map[string]corev1.ResourceName{"Sandboxes": countOfSandboxes, "Secrets": "secrets", "pods": "pods"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			q := s.quota("few", list(resource, "0"))
			going := s.start(s.request(), provision.Options{})
			going.tells("waits on quota (never): ")
			going.tells(fmt.Sprintf("exceeded quota: few, requested: %s=1, used: %s=0, limited: %s=0", resource, resource, resource))
			s.raise(q, list(resource, "1"))
			raised := time.Now()
			if _, err := going.end(); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(raised); took > 15*time.Second || strings.Count(going.told(), "waits on") != 1 {
				t.Errorf("it took %s, told\n%s", took, going.told())
			}
		})
	}
}

// TestAQuotaThatChangesIsTriedAtOnce, not by the clock alone, which tries after 1, 2, 4 and 8 seconds.
func TestAQuotaThatChangesIsTriedAtOnce(t *testing.T) {
	s := newSite(t)
	q := s.quota("few", list("secrets", "0"))
	var tries atomic.Int32
	cfg := s.through(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets") {
			tries.Add(1)
		}
		return next.RoundTrip(r)
	})
	going := s.startAs(cfg, s.request(), provision.Options{})
	going.tells("waits on quota")
	began := time.Now()
	for change := range 8 {
		before := tries.Load()
		s.until("the quota is changed", func() bool {
			s.get(q.Name, q)
			q.Annotations = map[string]string{"change": fmt.Sprint(change)}
			return s.Update(t.Context(), q) == nil
		})
		s.until("it is tried", func() bool { return tries.Load() > before })
	}
	if took := time.Since(began); took > 25*time.Second { // by the clock it would be 40 s
		t.Errorf("8 changes took %s", took)
	}
	going.cancel(nil)
}

// TestTooLargeIsRefusedFirst: nothing is written of what is over the maximum.
func TestTooLargeIsRefusedFirst(t *testing.T) {
	s := newSite(t)
	request := s.request()
	var over *placement.SizeCapError
	box, err := provision.Provision(t.Context(), s.cfg, request, provision.Options{Sizes: placement.SizeRange{Max: placement.Share{Memory: 1 << 29}}})
	if !errors.As(err, &over) || over.Asked.Memory != 1<<30 || over.Asked.Disk != config.WorkDisk || box.Sandbox != nil {
		t.Errorf("%+v, %v", box, err)
	}
	if !strings.HasPrefix(fmt.Sprint(err), "refusing: the Sandbox asks for memory 1Gi, and at most 512Mi is allowed") {
		t.Error(err)
	}
	s.are(0)
	for problem, edit := range map[string]func(*provision.Request){
		"no Sandbox": func(r *provision.Request) { r.Sandbox = nil }, "states no namespace": func(r *provision.Request) { r.Sandbox.Spec.Image = "" },
		"can't be the name": func(r *provision.Request) { r.Sandbox.Name = "1Up" },
	} {
		bad := s.request()
		edit(&bad)
		if _, err := provision.Provision(t.Context(), s.cfg, bad, provision.Options{}); !errors.As(err, new(*provision.RequestError)) || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v", problem, err)
		}
	}
}

// TestAPodThatIsRefused: one that is wrong is not waited for, one that admission refuses is.
func TestAPodThatIsRefused(t *testing.T) {
	s := newSite(t)
	wrong := s.request()
	wrong.Sandbox.Spec.VolumeMounts = append(wrong.Sandbox.Spec.VolumeMounts, corev1.VolumeMount{Name: "none", MountPath: "/none"})
	if _, err := s.start(wrong, provision.Options{}).end(); !errors.Is(err, provision.ErrInvalid) || !strings.Contains(err.Error(), "none") {
		t.Errorf("ended with %v", err)
	}
	class := s.namespace
	going := s.start(s.request(func(c *provision.Composition) { c.Instance.PriorityClasses.Sandbox = &class }), provision.Options{})
	going.tells("waits on pod (not yet)")
	going.tells("no PriorityClass with name " + class)
	going.cancel(nil)
	going.end() //nolint:errcheck // it was told to
	s.are(0)
}

// TestMissingRights are told at once, and nothing is left behind.
func TestMissingRights(t *testing.T) {
	t.Parallel()
	for user, verb := range map[string]string{"nobody": "create", "unwatching": "watch"} {
		t.Run(user, func(t *testing.T) {
			c, err := newClient(shared.Config())
			if err != nil {
				t.Fatal(err)
			}
			s := &site{t, c, shared.Config(), "t-rights"}
			cfg, err := shared.ConfigFor(user)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.startAs(cfg, s.request(pooled("nowhere")), provision.Options{}).end()
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot "+verb) {
				t.Errorf("ended with %v", err)
			}
			s.are(0)
		})
	}
}

// TestStatusOfNoRun: an id that nobody has, and a prefix that two have.
func TestStatusOfNoRun(t *testing.T) {
	s := newSite(t)
	for _, run := range []string{"ab1", "ab2", "ab"} {
		box := s.request(pooled("nowhere"), func(c *provision.Composition) { c.Run = run }).Sandbox
		s.create(box)
	}
	for id, matches := range map[string]int{"": 0, "x": 0, "a": 3} {
		_, err := provision.Status(t.Context(), s.cfg, s.namespace, id)
		var unknown *provision.UnknownRunError
		if !errors.As(err, &unknown) || len(unknown.Matches) != matches {
			t.Errorf("%q: %v", id, err)
		}
	}
	for id, want := range map[string]string{"ab": "ab", "ab1": "ab1"} {
		if run, err := provision.Status(t.Context(), s.cfg, s.namespace, id); err != nil || run.ID != want {
			t.Errorf("%q: %+v, %v", id, run, err)
		}
	}
}

// TestSweepTokens: what a Provision that was killed between two writes leaves is swept, and nothing else.
func TestSweepTokens(t *testing.T) {
	s := newSite(t)
	box := s.request(pooled("nowhere")).Sandbox
	s.create(box)
	token := func(name, sandbox string, edit ...func(*corev1.Secret)) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if sandbox != "" {
			secret.Labels = map[string]string{"jr2.dev/sandbox": sandbox}
		}
		for _, e := range edit {
			e(secret)
		}
		s.create(secret)
	}
	token("orphan", "ws-gone")
	token("of-a-sandbox", box.Name)
	token("owned", "ws-gone", func(secret *corev1.Secret) {
		secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion().String(), Kind: "Sandbox", Name: box.Name, UID: box.UID}}
	})
	token("somebodys", "")
	if swept, err := provision.SweepTokens(t.Context(), s.cfg, s.namespace); err != nil || swept != nil {
		t.Errorf("fresh ones: %v, %v", swept, err)
	}
	aged := s.through(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/secrets") {
			return next.RoundTrip(r)
		}
		if accept := r.Header.Get("Accept"); !strings.HasPrefix(accept, "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList") {
			t.Errorf("the values of Secrets were asked for: %s", accept)
		}
		r = r.Clone(r.Context())
		r.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
		response, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		return older(response)
	})
	if swept, err := provision.SweepTokens(t.Context(), aged, s.namespace); err != nil || !slices.Equal(swept, []string{"orphan"}) {
		t.Errorf("old ones: %v, %v", swept, err)
	}
}

// older makes what a list holds two years older. Nobody can set a creation time.
func older(response *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(response.Body)
	response.Body.Close() //nolint:errcheck // it is read
	if err != nil {
		return nil, err
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	for i := range list.Items {
		list.Items[i].CreationTimestamp = metav1.NewTime(list.Items[i].CreationTimestamp.AddDate(-2, 0, 0))
	}
	body, err = json.Marshal(list)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return response, err
}
