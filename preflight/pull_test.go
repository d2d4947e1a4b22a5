package preflight_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jr2.dev/jr2/preflight"
)

// secrets reads from a map of "namespace/name"; an error of a name is what reading it gives.
type secrets struct {
	namespace string
	held      map[string]*corev1.Secret
	failing   map[string]error
}

func (s secrets) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Secret, error) {
	at := s.namespace + "/" + name
	if err := s.failing[at]; err != nil {
		return nil, err
	}
	if secret := s.held[at]; secret != nil {
		return secret, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
}

type accounts map[string][]string

func (a accounts) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.ServiceAccount, error) {
	pull, ok := a[name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, name)
	}
	account := &corev1.ServiceAccount{}
	for _, name := range pull {
		account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return account, nil
}

// pullSecret is of the newer type, with "registry=user:password" entries.
func pullSecret(entries ...string) *corev1.Secret {
	return &corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":` + auths(entries...) + `}`)}}
}

func auths(entries ...string) string {
	var all []string
	for _, entry := range entries {
		at := strings.LastIndex(entry, "=")
		all = append(all, fmt.Sprintf("%q: {\"auth\": %q}", entry[:at], base64.StdEncoding.EncodeToString([]byte(entry[at+1:]))))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// A private registry shows every image to one user alone, and keeps who asked.
type private struct {
	mu    sync.Mutex
	user  string
	asked []string
	// own says that the caller's own credentials may read too.
	own bool
}

func (p *private) images(ctx context.Context, ref string, as authn.Authenticator) (preflight.ImageFacts, error) {
	user := "own"
	if as != nil {
		config, err := authn.Authorization(ctx, as)
		if err != nil {
			return preflight.ImageFacts{}, err
		}
		user = config.Username
	}
	p.mu.Lock()
	p.asked = append(p.asked, user)
	p.mu.Unlock()
	switch {
	case strings.Contains(ref, "down"):
		return preflight.ImageFacts{}, errors.New("connection refused")
	case strings.Contains(ref, "gone") && (user == p.user || user == "own" && p.own):
		return preflight.ImageFacts{Missing: true}, nil
	case strings.Contains(ref, "public"), user == p.user, user == "own" && p.own:
		return preflight.ImageFacts{Digest: someDigest, Platforms: []string{"linux/amd64"}}, nil
	case strings.Contains(ref, "hidden"):
		return preflight.ImageFacts{Missing: true}, nil
	}
	return preflight.ImageFacts{Denied: errors.New("401 Unauthorized")}, nil
}

// pulling is a Deployment of one image whose pods name these Secrets.
func pulling(image string, names ...string) string {
	var refs []string
	for _, name := range names {
		refs = append(refs, "{name: "+name+"}")
	}
	return workloadYAML("Deployment", "api", "", `{imagePullSecrets: [`+strings.Join(refs, ", ")+`], containers: [{name: api, image: "`+image+`"}]}`)
}

// TestX04CredentialsOfAKubelet: the entry of a Secret is matched with an image as a kubelet does it.
func TestX04CredentialsOfAKubelet(t *testing.T) {
	for name, test := range map[string]struct {
		image   string
		entries []string
		users   []string // in the order in which they are shown; "" for none
	}{
		"the host":                       {"registry.example.com/team/app:1", []string{"registry.example.com=a:1"}, []string{"a"}},
		"another host":                   {"registry.example.com/team/app:1", []string{"example.com=a:1", "git.example.com=b:1"}, []string{""}},
		"a URL":                          {"registry.example.com/team/app:1", []string{"https://registry.example.com/v2/=a:1"}, []string{"a"}},
		"a part of a registry":           {"registry.example.com/team/app:1", []string{"registry.example.com=a:1", "registry.example.com/team=b:1", "registry.example.com/other=c:1"}, []string{"b", "a"}},
		"one word for all hosts":         {"registry.example.com/team/app:1", []string{"*.example.com=a:1"}, []string{"a"}},
		"a star is one part":             {"a.registry.example.com/team/app:1", []string{"*.example.com=a:1"}, []string{""}},
		"another port":                   {"registry.example.com:5000/app:1", []string{"registry.example.com=a:1"}, []string{""}},
		"the port":                       {"registry.example.com:5000/app:1", []string{"registry.example.com:5000=a:1"}, []string{"a"}},
		"Docker Hub as docker writes it": {"redis:7", []string{"https://index.docker.io/v1/=a:1"}, []string{"a"}},
		"Docker Hub as people write it":  {"team/app:1", []string{"docker.io=a:1"}, []string{"a"}},
		"Docker Hub both ways":           {"docker.io/team/app:1", []string{"https://index.docker.io/v1/=a:1", "docker.io=b:1"}, []string{"b"}},
		"a password with a colon":        {"registry.example.com/app:1", []string{"registry.example.com=a:1:2"}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			registry := &private{user: "nobody", own: true}
			facts := preflight.SetFacts{Images: registry.images, Nodes: []corev1.Node{node("a")}, Secrets: func(namespace string) preflight.SecretGetter {
				return secrets{namespace: namespace, held: map[string]*corev1.Secret{"jarvis/pull": pullSecret(test.entries...)}}
			}}
			findings := preflight.Pulls(t.Context(), manifests(t, pulling(test.image, "pull")), facts)
			says(t, findings, "warn image-credentials Deployment jarvis/api: (your own credentials can read it)")
			if want := append(test.users, "own"); !slices.Equal(registry.asked, want) {
				t.Errorf("asked as %q, want %q", registry.asked, want)
			}
		})
	}
}

// TestX04Pulls: what each fault is called, and that nothing is called a fault that nobody saw.
func TestX04Pulls(t *testing.T) {
	const image = "registry.example.com/team/app:1"
	broken := pullSecret()
	broken.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths": {"registry.example.com": {"auth": "bm8gY29sb24="}}}`)
	token := pullSecret()
	token.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths": {"registry.example.com": {"identitytoken": "t"}}}`)
	old := &corev1.Secret{Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte(auths("registry.example.com=puller:1"))}}
	opaque := &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: pullSecret("registry.example.com=puller:1").Data}
	held := map[string]*corev1.Secret{
		"jarvis/right": pullSecret("registry.example.com=puller:1"), "jarvis/wrong": pullSecret("registry.example.com=guesser:1"), "jarvis/other": pullSecret("git.example.com=puller:1", "a.example.com=b:2"),
		"jarvis/broken": broken, "jarvis/token": token, "jarvis/old": old, "jarvis/opaque": opaque, "jarvis/empty": pullSecret(), "elsewhere/far": pullSecret("registry.example.com=puller:1"),
		"jarvis/cloud": pullSecret("team.azurecr.io=old:1"),
	}
	failing := map[string]error{"jarvis/locked": apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "locked", errors.New("not yours"))}
	const create = "kubectl -n jarvis create secret docker-registry "
	const denied = `warn image-credentials Deployment jarvis/api: the registry does not show registry.example.com/team/app:1 (container "api") to its pods (401 Unauthorized): `
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"right":                       {pulling(image, "right"), nil},
		"the older type":              {pulling(image, "old"), nil},
		"one of two is right":         {pulling(image, "wrong", "right"), nil},
		"public":                      {pulling("registry.example.com/public:1"), nil},
		"public, and a Secret beside": {pulling("registry.example.com/public:1", "other"), nil},
		"no Secret is named": {pulling(image), []string{denied + "they name no pull Secret, and neither does their service account (many registries say so, too, of an image that they do not hold); " +
			"unless the nodes have credentials of their own, which nobody sees from here, they cannot pull it — " + create + "registry-pull --docker-server=registry.example.com"}},
		"a Secret is absent":    {pulling(image, "none"), []string{denied + "Secret jarvis/none does not exist"}},
		"it is elsewhere":       {pulling(image, "far"), []string{denied + "Secret jarvis/far does not exist"}},
		"a Secret of no type":   {pulling(image, "opaque"), []string{denied + "Secret jarvis/opaque is of the type Opaque, which holds no pull credentials"}},
		"a Secret for others":   {pulling(image, "other"), []string{denied + "Secret jarvis/other has credentials for a.example.com, git.example.com and none for registry.example.com"}},
		"an empty Secret":       {pulling(image, "empty"), []string{denied + "Secret jarvis/empty holds no credentials"}},
		"wrong":                 {pulling(image, "wrong"), []string{denied + "Secret jarvis/wrong has credentials for registry.example.com that it does not take"}},
		"a token":               {pulling(image, "token"), []string{denied + "Secret jarvis/token has neither user nor password for registry.example.com, and kubelets use nothing else"}},
		"each is told":          {pulling(image, "none", "wrong"), []string{denied + "Secret jarvis/none does not exist and Secret jarvis/wrong has credentials for registry.example.com that it does not take"}},
		"a broken Secret":       {pulling("registry.example.com/public:1", "broken", "right"), []string{"warn pull-secret Secret jarvis/broken: which the pods of Deployment jarvis/api name for pulling, cannot be read: its entry for registry.example.com: "}},
		"it hides all else":     {pulling(image, "broken"), []string{"warn pull-secret Secret jarvis/broken: a kubelet then pulls no image for these pods"}},
		"absent and no matter":  {pulling("registry.example.com/public:1", "none"), []string{"note pull-secret Secret jarvis/none: does not exist; their images can be pulled without it"}},
		"of no type, no matter": {pulling("registry.example.com/public:1", "opaque"), []string{"note pull-secret Secret jarvis/opaque: is of the type Opaque"}},
		"absent, and nobody answers": {pulling("registry.example.com/down:1", "none"), []string{
			"warn pull-secret Secret jarvis/none: does not exist, and nobody could ask whether their images can be pulled without it",
			"note not-looked-at registries: registry.example.com/down:1 (connection refused) — the nodes may reach what cannot be reached from here, and may pull from mirrors that nobody sees from here"}},
		"missing":            {pulling("registry.example.com/gone:1", "right"), []string{"warn image-missing Deployment jarvis/api: the registry says that it holds no image registry.example.com/gone:1"}},
		"hidden from nobody": {pulling("registry.example.com/hidden:1"), []string{"warn image-missing Deployment jarvis/api: holds no image"}},
		"hidden":             {pulling("registry.example.com/hidden:1", "right"), nil},
		"may not be read": {pulling(image, "locked"), []string{
			`note not-looked-at Secrets: registry.example.com/team/app:1 (Deployment jarvis/api): Secret jarvis/locked could not be read: secrets "locked" is forbidden: not yours`}},
		"may not be read, and hides":     {pulling("registry.example.com/hidden:1", "locked"), []string{"note not-looked-at Secrets: hidden"}},
		"may not be read, and no matter": {pulling("registry.example.com/public:1", "locked"), nil},
		"may not be read beside a wrong": {pulling(image, "wrong", "locked"), []string{"note not-looked-at Secrets: locked"}},
		"the nodes of a cloud": {pulling("123456789012.dkr.ecr.eu-central-1.amazonaws.com/app:1"), []string{
			"note image-credentials Deployment jarvis/api: nodes of that cloud have their own, which nobody sees from here"}},
		"a cloud and a Secret": {pulling("team.azurecr.io/app:1", "wrong", "cloud"), []string{"warn image-credentials Deployment jarvis/api: Secret jarvis/cloud has credentials for team.azurecr.io that it does not take"}},
		"it arrives": {pulling(image, "new") + `---
{apiVersion: v1, kind: Secret, metadata: {namespace: jarvis, name: new}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '{"auths": ` + auths("registry.example.com=puller:1") + `}'}}`, nil},
		"it arrives wrong": {pulling(image, "right") + `---
{apiVersion: v1, kind: Secret, metadata: {namespace: jarvis, name: right}, type: kubernetes.io/dockerconfigjson, data: {.dockerconfigjson: ` +
			base64.StdEncoding.EncodeToString([]byte(`{"auths": `+auths("registry.example.com=guesser:1")+`}`)) + `}}`, []string{denied + "Secret jarvis/right has credentials for registry.example.com that it does not take"}},
		"a service account": {workloadYAML("Job", "j", "", `{serviceAccountName: robot, containers: [{name: a, image: "`+image+`"}]}`), nil},
		"a service account that arrives": {workloadYAML("Job", "j", "", `{serviceAccountName: fresh, containers: [{name: a, image: "`+image+`"}]}`) + `---
{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: jarvis, name: fresh}, imagePullSecrets: [{name: right}]}`, nil},
		"the pod's own come before": {workloadYAML("Job", "j", "", `{serviceAccountName: robot, imagePullSecrets: [{name: wrong}], containers: [{name: a, image: "`+image+`"}]}`), []string{
			"warn image-credentials Job jarvis/j: Secret jarvis/wrong"}},
		"never pulled": {workloadYAML("Job", "j", "", `{containers: [{name: a, image: "`+image+`", imagePullPolicy: Never}]}`), nil},
		"no pods":      {workloadYAML("Deployment", "d", "replicas: 0", `{containers: [{name: a, image: "`+image+`"}]}`), nil},
		"every place": {workloadYAML("Deployment", "d", "", `{volumes: [{name: v, image: {reference: "`+image+`"}}], initContainers: [{name: i, image: "`+image+`"}], containers: [{name: a, image: "registry.example.com/public:1"}]}`), []string{
			`warn image-credentials Deployment jarvis/d: (image volume "v" and init container "i")`}},
	} {
		t.Run(name, func(t *testing.T) {
			registry := &private{user: "puller"}
			facts := preflight.SetFacts{
				Images: registry.images, Nodes: []corev1.Node{node("a")}, Namespaces: map[string]*corev1.Namespace{"jarvis": {}},
				Secrets:         func(namespace string) preflight.SecretGetter { return secrets{namespace, held, failing} },
				ServiceAccounts: func(string) preflight.ServiceAccountGetter { return accounts{"default": nil, "robot": {"right"}} },
			}
			findings := preflight.Pulls(t.Context(), manifests(t, test.text), facts)
			says(t, findings, test.want...)
			if said := fmt.Sprint(findings); strings.Contains(said, "puller") || strings.Contains(said, "guesser") || strings.Contains(said, "no colon") {
				t.Errorf("what a Secret holds is said: %s", said)
			}
			for _, f := range preflight.Set(t.Context(), manifests(t, test.text), facts) {
				if f.Code == preflight.CodeImageMissing && !slices.ContainsFunc(test.want, func(w string) bool { return strings.Contains(w, "image-missing") }) || f.Severity == preflight.Refuse {
					t.Errorf("beside the other checks: %+v", f)
				}
			}
		})
	}
}

// TestX04ImagesOnTheNodes: what all nodes have on which the pod can land is not pulled, unless it always is.
func TestX04ImagesOnTheNodes(t *testing.T) {
	has := func(n corev1.Node, names ...string) corev1.Node {
		n.Status.Images = []corev1.ContainerImage{{Names: names}}
		return n
	}
	a, b := has(node("a"), "docker.io/team/app:1", "docker.io/team/app@"+someDigest), has(node("b"), "docker.io/team/app@"+someDigest)
	off := node("off", "x=y:NoSchedule")
	for name, test := range map[string]struct {
		image, more string
		nodes       []corev1.Node
		asks        bool
	}{
		"on the only node":         {"team/app:1", "", []corev1.Node{a}, false},
		"elsewhere it cannot land": {"team/app:1", "", []corev1.Node{a, off}, false},
		"not on all":               {"team/app:1", "", []corev1.Node{a, b}, true},
		"by digest":                {"team/app:2@" + someDigest, "", []corev1.Node{a, b}, false},
		"always":                   {"team/app:1", ", imagePullPolicy: Always", []corev1.Node{a}, true},
		"latest":                   {"team/app", "", []corev1.Node{has(node("a"), "docker.io/team/app:latest")}, true},
		"latest, if not present":   {"team/app", ", imagePullPolicy: IfNotPresent", []corev1.Node{has(node("a"), "docker.io/team/app:latest")}, false},
		"another registry":         {"registry.example.com/team/app:1", "", []corev1.Node{a}, true},
		"no node takes it":         {"team/app:1", "", []corev1.Node{off}, true},
	} {
		t.Run(name, func(t *testing.T) {
			registry := &private{user: "nobody"}
			text := workloadYAML("Deployment", "api", "", `{containers: [{name: api, image: "`+test.image+`"`+test.more+`}]}`)
			facts := preflight.SetFacts{Images: registry.images, Nodes: test.nodes, Namespaces: map[string]*corev1.Namespace{}}
			findings := preflight.Pulls(t.Context(), manifests(t, text), facts)
			got := slices.ContainsFunc(findings, func(f preflight.Finding) bool { return f.Code == preflight.CodeImageCredentials })
			if got != test.asks {
				t.Errorf("got %s", shown(findings))
			}
		})
	}
}
