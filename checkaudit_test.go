package jr2_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

// userAgent is how jr2 names itself to an API server.
const userAgent = "jr2"

// watched has the API server's audit log tell what is asked with these options. The function that it returns gives the requests that could have
// stored something.
func (w *world) watched(t *testing.T, options *jr2.Options) func() []devcluster.AuditEvent {
	t.Helper()
	witness, err := w.Witness(options.Config)
	must(t, err)
	namespace := options.Namespace
	return func() []devcluster.AuditEvent {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
		defer cancel()
		ours, others, err := witness.Events(ctx)
		must(t, err)
		var stored []devcluster.AuditEvent
		for _, e := range ours {
			if e.Stores() {
				stored = append(stored, e)
			}
		}
		// A client that went past the configuration would have no mark; in this test's namespace it can be no other's.
		for _, e := range others {
			if e.Stores() && e.UserAgent == userAgent && namespace != "" && e.Namespace == namespace {
				stored = append(stored, e)
			}
		}
		return stored
	}
}

// wroteNothing fails the test for each request that could have stored something.
func wroteNothing(t *testing.T, who string, stored []devcluster.AuditEvent) {
	t.Helper()
	for _, e := range stored {
		t.Errorf("%s wrote: %s", who, e)
	}
}

// TestTheAuditLogShowsACheckThatWrites: the proof that no check writes can fail. Checks of a caller's that do what they like are seen, also one
// whose client goes past the options, and one whose request was refused.
func TestTheAuditLogShowsACheckThatWrites(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	const home = "audited"
	w.home(t, home, "my-instance")
	dir := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "made"}}
	for _, tt := range []struct {
		name, sees string
		does       func(context.Context, kubernetes.Interface) error
		around     bool // with a client that is not made from the options
	}{
		{name: "reads", does: func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().ConfigMaps(home).List(ctx, metav1.ListOptions{})
			return err
		}},
		{name: "a dry run", does: func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().ConfigMaps(home).Create(ctx, made, dry)
			return err
		}},
		{name: "makes", sees: "create configmaps 201", does: func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().ConfigMaps(home).Create(ctx, made, metav1.CreateOptions{})
			return err
		}},
		{name: "is refused", sees: "create configmaps 409", does: func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().ConfigMaps(home).Create(ctx, made, metav1.CreateOptions{})
			if !apierrors.IsAlreadyExists(err) {
				t.Errorf("got %v", err)
			}
			return nil
		}},
		{name: "changes", sees: "patch configmaps 200", does: func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().ConfigMaps(home).Patch(ctx, "made", types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
			return err
		}},
		{name: "removes, past the options", sees: "delete configmaps 200", around: true, does: func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().ConfigMaps(home).Delete(ctx, "made", metav1.DeleteOptions{})
		}},
	} {
		options := jr2.Options{Dir: dir, Config: w.Config(), Context: contextName, Namespace: home, Env: map[string]string{}, RegistryTransport: loopbackOnly{http.DefaultTransport}}
		stored := w.watched(t, &options)
		done := false
		options.Checks = []preflight.Check{preflight.NewCheck("meddling", func(ctx context.Context) ([]preflight.Finding, error) {
			config := options.Config
			if tt.around {
				config = w.Config()
				config.UserAgent = userAgent
			}
			client, err := kubernetes.NewForConfig(config)
			must(t, err)
			must(t, tt.does(ctx, client))
			done = true
			return nil, nil
		}, "meddled")}
		_, err := jr2.Check(t.Context(), options, preflight.Choice{})
		must(t, err)
		var sees []string
		for _, e := range stored() {
			sees = append(sees, fmt.Sprintf("%s %s %d", e.Verb, e.Resource, e.Code))
		}
		if !done || strings.Join(sees, ", ") != tt.sees {
			t.Errorf("%s: ran %t, saw %q, want %q", tt.name, done, sees, tt.sees)
		}
	}
}

// TestACheckThatProbesWritesWhatItAnnounces: the pods by which it asks models, with what they read, in the Instance's namespace; and all of it goes.
func TestACheckThatProbesWritesWhatItAnnounces(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	const home = "audited-models"
	w.home(t, home, "my-instance")
	dir := folder(t, map[string]string{"jr2.config.ts": configOf(localProvider), "workflows/speak.ts": speaking("local/qwen", "local/other")})
	w.modelsAnswer(t, home, map[string]string{"qwen": usable, "other": usable})
	options := jr2.Options{Dir: dir, Config: w.Config(), Context: contextName, Namespace: home, Env: map[string]string{}, Models: jr2.ProbeInChecks,
		RegistryTransport: loopbackOnly{http.DefaultTransport}}
	stored := w.watched(t, &options)
	report, err := jr2.Check(t.Context(), options, preflight.Choice{})
	must(t, err)
	if refusing(report) != "" {
		t.Errorf("got\n%s", report)
	}
	pods := map[string]string{}
	for _, e := range stored() {
		kinds := map[string]string{"pods": "create delete", "configmaps": "create", "secrets": "create"}
		if e.Namespace != home || !strings.HasPrefix(e.Name, "jr2-model-probe-") || !slices.Contains(strings.Fields(kinds[e.Resource]), e.Verb) {
			t.Errorf("the check wrote: %s", e)
		}
		if e.Resource == "pods" && e.Code < http.StatusMultipleChoices { // the server may refuse the first for a class that is not there yet
			pods[e.Name] += e.Verb + " "
		}
	}
	for name, verbs := range pods {
		if !strings.HasPrefix(verbs, "create delete ") {
			t.Errorf("pod %s: %s", name, verbs)
		}
	}
	if len(pods) != 2 {
		t.Errorf("%d pods, want one for each model", len(pods))
	}
	w.noProbes(t, home)
}
