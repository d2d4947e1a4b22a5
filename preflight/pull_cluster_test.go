package preflight_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/preflight"
)

const (
	puller, pullerPassword = "puller", "s3cret"
	theToken               = "a-token-for-pulling"
)

// tokens asks for a token as Docker Hub does: everybody gets one for public repositories, and who knows the password gets one for all.
func tokens(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			user, password, some := r.BasicAuth()
			token := map[string]string{"token": "public"}
			if some && (user != puller || password != pullerPassword) {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			if some {
				token["token"] = theToken
			}
			json.NewEncoder(w).Encode(token) //nolint:errcheck // the client will tell
			return
		}
		bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if bearer != theToken && (bearer != "public" || !strings.HasPrefix(r.URL.Path, "/v2/public/") && r.URL.Path != "/v2/") {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="test"`, r.Host))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// A pullWorld is a registry that wants credentials and a real API server with an amd64 node and one for arm64.
type pullWorld struct {
	client   kubernetes.Interface
	registry *devcluster.Registry
	host     string
	facts    preflight.SetFacts
	// busy is how many requests from now on are answered with status.
	busy   atomic.Int64
	status atomic.Int64
}

func thePullWorld(t *testing.T, cluster *devcluster.Cluster) *pullWorld {
	w := &pullWorld{client: clientFor(t, cluster.Config())}
	registry, err := devcluster.StartRegistry(t.Context(), devcluster.RegistryOptions{Wrap: func(next http.Handler) http.Handler {
		next = tokens(next)
		return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			if w.busy.Add(-1) >= 0 {
				out.Header().Set("Retry-After", "0")
				out.WriteHeader(int(w.status.Load()))
				return
			}
			next.ServeHTTP(out, r)
		})
	}})
	must(t, err)
	t.Cleanup(func() { registry.Close() }) //nolint:errcheck // the test is over
	w.registry, w.host = registry, registry.Host
	for _, repository := range []string{"team/app", "public/app"} {
		push(t, w.host+"/"+repository+":1", "amd64", "arm64")
		push(t, w.host+"/"+repository+":amd", "amd64")
	}
	nodes, err := placement.Nodes(t.Context(), w.client.CoreV1().Nodes())
	must(t, err)
	w.facts = factsOf(w.client, jr2.AskRegistries(images.Registry{Keychain: nobody{}}, images.LocalRegistry{Host: w.host}))
	w.facts.Nodes, w.facts.Pods = nodes, []corev1.Pod{}
	return w
}

// nobody has no credentials of its own.
type nobody struct{}

func (nobody) Resolve(authn.Resource) (authn.Authenticator, error) { return authn.Anonymous, nil }

func factsOf(client kubernetes.Interface, ask func(context.Context, string, authn.Authenticator) (preflight.ImageFacts, error)) preflight.SetFacts {
	return preflight.SetFacts{
		Images:  ask,
		Secrets: func(namespace string) preflight.SecretGetter { return client.CoreV1().Secrets(namespace) },
		ServiceAccounts: func(namespace string) preflight.ServiceAccountGetter {
			return client.CoreV1().ServiceAccounts(namespace)
		},
		DryRun: func(namespace string) preflight.PodCreator { return client.CoreV1().Pods(namespace) },
	}
}

// push pushes an index with an image for each architecture.
func push(t *testing.T, ref string, archs ...string) {
	t.Helper()
	index := v1.ImageIndex(empty.Index)
	for _, arch := range archs {
		image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: arch})
		must(t, err)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	parsed, err := name.ParseReference(ref)
	must(t, err)
	must(t, remote.WriteIndex(parsed, index, remote.WithContext(t.Context()), remote.WithAuth(&authn.Basic{Username: puller, Password: pullerPassword})))
}

func (w *pullWorld) keep(t *testing.T, namespace, name string, secret *corev1.Secret) {
	t.Helper()
	secret = secret.DeepCopy()
	secret.Name = name
	_, err := w.client.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{})
	must(t, err)
}

// amd keeps a pod off the arm64 node.
const amd = "nodeSelector: {kubernetes.io/arch: amd64}, "

func (w *pullWorld) pod(namespace, more, image string) string {
	return workloadIn(namespace, "Deployment", "api", "", `{`+more+`containers: [{name: api, image: "`+w.host+`/`+image+`"}]}`)
}

// TestX04PullsOfACluster: a registry that gives tokens, and Secrets and service accounts as a real API server keeps and merges them.
func TestX04PullsOfACluster(t *testing.T) {
	t.Parallel()
	pods := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create"}}
	cluster := devcluster.ForTest(t, devcluster.Options{
		Nodes: []devcluster.Node{{Name: "amd-1"}, {Name: "arm-1", Arch: "arm64"}},
		Users: []devcluster.User{{Name: "ana", Rules: map[string][]rbacv1.PolicyRule{"locked": {pods}}}},
	})
	w := thePullWorld(t, cluster)
	ctx := t.Context()
	good, bad := pullSecret(w.host+"="+puller+":"+pullerPassword), pullSecret(w.host+"="+puller+":guess")
	makeNamespace(t, w.client, "pulls", nil)
	w.keep(t, "pulls", "good", good)
	w.keep(t, "pulls", "bad", bad)
	w.keep(t, "pulls", "old", &corev1.Secret{Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte(auths(w.host + "=" + puller + ":" + pullerPassword))}})
	w.keep(t, "pulls", "other", pullSecret("git.example.com=a:b"))
	w.keep(t, "pulls", "part", pullSecret(w.host+"/other=a:b", w.host+"/team="+puller+":"+pullerPassword))
	named := func(name string) string { return "imagePullSecrets: [{name: " + name + "}], " }
	const denied = "warn image-credentials Deployment pulls/api: "
	for what, test := range map[string]struct{ more, image, want string }{
		"good":                {named("good"), "team/app:1", ""},
		"the older type":      {named("old"), "team/app:1", ""},
		"a part":              {named("part"), "team/app:1", ""},
		"bad":                 {named("bad"), "team/app:1", denied + "Secret pulls/bad has credentials for " + w.host + " that it does not take"},
		"absent":              {named("none"), "team/app:1", denied + "Secret pulls/none does not exist"},
		"another host":        {named("other"), "team/app:1", denied + "Secret pulls/other has credentials for git.example.com and none for " + w.host},
		"none":                {"", "team/app:1", denied + "they name no pull Secret"},
		"public":              {"", "public/app:1", ""},
		"missing":             {named("good"), "team/app:2", "warn image-missing Deployment pulls/api: holds no image " + w.host + "/team/app:2"},
		"not for arm64":       {named("good"), "team/app:amd", "warn image-platform Deployment pulls/api: is published for linux/amd64 and not for arm-1 (arm64)"},
		"not for arm64, away": {named("good") + amd, "team/app:amd", ""},
	} {
		t.Run(what, func(t *testing.T) {
			var want []string
			if test.want != "" {
				want = append(want, test.want)
			}
			says(t, preflight.Pulls(ctx, manifests(t, w.pod("pulls", test.more, test.image)), w.facts), want...)
		})
	}
	t.Run("service accounts", func(t *testing.T) { testPullAccounts(t, w, good) })
	t.Run("what arrives", func(t *testing.T) { testPullsArrive(t, w) })
	t.Run("no right to read Secrets", func(t *testing.T) {
		config, err := cluster.ConfigFor("ana")
		must(t, err)
		facts := factsOf(clientFor(t, config), w.facts.Images)
		facts.Nodes = w.facts.Nodes
		w.keep(t, "locked", "good", good)
		says(t, preflight.Pulls(ctx, manifests(t, w.pod("locked", named("good"), "team/app:1")), facts), "note not-looked-at Secrets: team/app:1 (Deployment locked/api): Secret locked/good could not be read: secrets \"good\" is forbidden")
		says(t, preflight.Pulls(ctx, manifests(t, w.pod("locked", named("good"), "public/app:1")), facts))
		facts.DryRun = nil // and who may not read the service account does not know which Secrets there are
		says(t, preflight.Pulls(ctx, manifests(t, w.pod("locked", "", "team/app:1")), facts), "note not-looked-at Secrets: its service account default could not be read")
	})
	t.Run("a registry that is busy", func(t *testing.T) {
		for _, status := range []int64{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
			w.status.Store(status)
			w.busy.Store(2)
			says(t, preflight.Pulls(ctx, manifests(t, w.pod("pulls", named("good"), "team/app:1")), w.facts))
			if left := w.busy.Load(); left >= 0 {
				t.Errorf("%d: %d answers were not asked for", status, left)
			}
		}
	})
	t.Run("a registry that is away", func(t *testing.T) {
		text := strings.ReplaceAll(w.pod("pulls", named("good"), "team/app:1"), w.host, "127.0.0.1:1")
		says(t, preflight.Pulls(ctx, manifests(t, text), w.facts), "note not-looked-at registries: 127.0.0.1:1/team/app:1 (connect: connection refused) — the nodes may reach what cannot be reached from here")
	})
	for _, namespace := range []string{"pulls", "locked"} {
		left, err := w.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		must(t, err)
		if len(left.Items) > 0 {
			t.Errorf("the check left %d pods in %s", len(left.Items), namespace)
		}
	}
}

// testPullAccounts: the Secrets of a service account are the pod's, as the server merges them, and as they are merged where it is not asked.
func testPullAccounts(t *testing.T, w *pullWorld, good *corev1.Secret) {
	makeNamespace(t, w.client, "accounts", nil)
	w.keep(t, "accounts", "good", good)
	w.keep(t, "accounts", "other", pullSecret("git.example.com=a:b"))
	robot := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "good"}}}
	_, err := w.client.CoreV1().ServiceAccounts("accounts").Create(t.Context(), robot, metav1.CreateOptions{})
	must(t, err)
	unasked := w.facts
	unasked.DryRun = nil
	check := func(more string, want ...string) {
		t.Helper()
		text := w.pod("accounts", more, "team/app:1")
		for _, facts := range []preflight.SetFacts{w.facts, unasked} {
			says(t, preflight.Pulls(t.Context(), manifests(t, text), facts), want...)
		}
	}
	check("", "warn image-credentials Deployment accounts/api: they name no pull Secret, and neither does their service account")
	check("serviceAccountName: robot, ")
	check("serviceAccountName: robot, imagePullSecrets: [{name: other}], ", "warn image-credentials Deployment accounts/api: Secret accounts/other has credentials for git.example.com")
	patch := []byte(`{"imagePullSecrets": [{"name": "good"}]}`)
	_, err = w.client.CoreV1().ServiceAccounts("accounts").Patch(t.Context(), "default", "application/merge-patch+json", patch, metav1.PatchOptions{})
	must(t, err)
	eventually(t, "the service account counts", func() bool {
		return len(preflight.Pulls(t.Context(), manifests(t, w.pod("accounts", "", "team/app:1")), w.facts)) == 0
	})
	check("")
}

// testPullsArrive: a namespace, its Secret and its service account arrive with the set, and are asked of nobody.
func testPullsArrive(t *testing.T, w *pullWorld) {
	facts := w.facts
	facts.Namespaces = map[string]*corev1.Namespace{}
	secret := fmt.Sprintf("---\n{apiVersion: v1, kind: Secret, metadata: {namespace: new, name: pull}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '{\"auths\": %s}'}}\n",
		auths(w.host+"="+puller+":"+pullerPassword))
	const account = "---\n{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: new, name: robot}, imagePullSecrets: [{name: pull}]}\n"
	text := namespaceYAML("new", "") + w.pod("new", "serviceAccountName: robot, ", "team/app:1")
	says(t, preflight.Pulls(t.Context(), manifests(t, text+account+secret), facts))
	says(t, preflight.Pulls(t.Context(), manifests(t, text+account), facts), "warn image-credentials Deployment new/api: Secret new/pull does not exist")
	says(t, preflight.Pulls(t.Context(), manifests(t, text+secret), facts), "warn image-credentials Deployment new/api: they name no pull Secret")
	// An account that arrives in a namespace that is there takes its Secrets along, whatever the server made of the pod without it.
	there := strings.ReplaceAll(w.pod("new", "serviceAccountName: robot, ", "team/app:1")+account+secret, "namespace: new", "namespace: pulls")
	says(t, preflight.Pulls(t.Context(), manifests(t, there), w.facts))
}
