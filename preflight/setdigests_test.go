package preflight_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/preflight"
)

const someDigest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"

// registry answers for every image: published for amd64 alone, but for names with "multi" in them; nothing of "gone"; no answer for "down".
func registry(_ context.Context, ref string, _ authn.Authenticator) (preflight.ImageFacts, error) {
	switch {
	case strings.Contains(ref, "gone"):
		return preflight.ImageFacts{Missing: true}, nil
	case strings.Contains(ref, "down"):
		return preflight.ImageFacts{}, errors.New("connection refused")
	case strings.Contains(ref, "artifact"):
		return preflight.ImageFacts{Digest: someDigest}, nil
	case strings.Contains(ref, "multi"):
		return preflight.ImageFacts{Digest: someDigest, Platforms: []string{"linux/amd64", "linux/arm64"}}, nil
	}
	return preflight.ImageFacts{Digest: someDigest, Platforms: []string{"linux/amd64"}}, nil
}

// TestA06Digests: every image of every kind and place is pinned by digest, or reported with its digest.
func TestA06Digests(t *testing.T) {
	one := func(image string) string {
		return workloadYAML("Deployment", "api", "", `{containers: [{name: api, image: "`+image+`"}]}`)
	}
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"pinned":              {one(pinned), nil},
		"pinned beside a tag": {one("localhost:5000/repo/app:v1@" + someDigest), nil},
		"a tag": {one("git.example.com/team/api:stable"), []string{
			"warn image-unpinned Deployment jarvis/api: git.example.com/team/api:stable (container \"api\") is not pinned: a tag is a name that can move — " +
				"pin what it is now: git.example.com/team/api@" + someDigest}},
		"latest": {one("git.example.com/api:latest"), []string{
			"warn image-unpinned Deployment jarvis/api: latest is a name that moves — pin what it is now: git.example.com/api@" + someDigest}},
		"F26: the port is no tag": {one("localhost:5000/repo/app"), []string{
			"warn image-unpinned Deployment jarvis/api: without a tag it means latest, a name that moves — pin what it is now: localhost:5000/repo/app@" + someDigest}},
		"F26: a port and a tag": {one("localhost:5000/repo/app:v1"), []string{
			"warn image-unpinned Deployment jarvis/api: a tag is a name that can move — pin what it is now: localhost:5000/repo/app@" + someDigest}},
		"F26: a port and latest": {one("localhost:5000/app:latest"), []string{
			"warn image-unpinned Deployment jarvis/api: latest is a name that moves — pin what it is now: localhost:5000/app@" + someDigest}},
		"no registry, pinned": {one("reg/app@" + someDigest), []string{
			"warn image-docker-hub Deployment jarvis/api: (container \"api\") means docker.io/reg/app@" + someDigest + ", because it names no registry"}},
		"no registry and a long path": {one("a/b/c@" + someDigest), []string{
			"warn image-docker-hub Deployment jarvis/api: means docker.io/a/b/c@" + someDigest}},
		"F26: no registry": {one("reg/app:v1"), []string{
			"warn image-docker-hub Deployment jarvis/api: reg/app:v1 (container \"api\") means docker.io/reg/app:v1, because it names no registry",
			"warn image-unpinned Deployment jarvis/api: pin what it is now: reg/app@" + someDigest}},
		"an official image":  {one("redis@" + someDigest), nil},
		"Docker Hub by name": {one("docker.io/reg/app@" + someDigest), nil},
		"F26: capitals": {one("reg.example.com/App:v1"), []string{
			`refuse image-invalid Deployment jarvis/api: "reg.example.com/App:v1" (container "api") is no image reference: `}},
		"an empty tag":                    {one("reg.example.com/app:"), []string{"refuse image-invalid Deployment jarvis/api: no image reference"}},
		"a scheme":                        {one("https://reg.example.com/app:v1"), []string{"refuse image-invalid Deployment jarvis/api: no image reference"}},
		"no image":                        {one(""), []string{"refuse image-invalid Deployment jarvis/api: no image is named"}},
		"a placeholder is told elsewhere": {one("git.example.com/api@sha256:REPLACE_ME"), nil},
		"the registry has none": {one("git.example.com/gone:v1"), []string{
			"warn image-missing Deployment jarvis/api: the registry says that it holds no image git.example.com/gone:v1"}},
		"no answer": {one("git.example.com/down:v1"), []string{
			"warn image-unpinned Deployment jarvis/api: find its digest (docker buildx imagetools inspect git.example.com/down:v1) and pin it: git.example.com/down@sha256:…",
			"note not-looked-at registries: git.example.com/down:v1 (connection refused)"}},
		"every place, each image once": {
			workloadYAML("StatefulSet", "redis", "", `{initContainers: [{name: init, image: "r.example.com/a:1"}, {name: dist, image: "r.example.com/b:1"}],
				containers: [{name: redis, image: "r.example.com/a:1"}], ephemeralContainers: [{name: debug, image: "r.example.com/c:1"}],
				volumes: [{name: models, image: {reference: "r.example.com/d:1"}}, {name: later, image: {}}]}`),
			[]string{
				`warn image-unpinned StatefulSet jarvis/redis: r.example.com/d:1 (image volume "models")`,
				`warn image-unpinned StatefulSet jarvis/redis: r.example.com/a:1 (init container "init" and container "redis")`,
				`warn image-unpinned StatefulSet jarvis/redis: r.example.com/b:1 (init container "dist")`,
				`warn image-unpinned StatefulSet jarvis/redis: r.example.com/c:1 (ephemeral container "debug")`,
			},
		},
		"every kind": {
			workloadYAML("DaemonSet", "d", "", `{containers: [{name: a, image: "r.example.com/a:1"}]}`) + workloadYAML("ReplicaSet", "r", "", `{containers: [{name: a, image: "r.example.com/a:1"}]}`) +
				workloadYAML("Job", "j", "", `{containers: [{name: a, image: "r.example.com/a:1"}]}`) + `---
{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: jarvis, name: c}, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: "r.example.com/a:1"}]}}}}}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: jarvis, name: p}, spec: {containers: [{name: a, image: "r.example.com/a:1"}]}}
---
{apiVersion: v1, kind: ReplicationController, metadata: {namespace: jarvis, name: rc}, spec: {template: {spec: {containers: [{name: a, image: "r.example.com/a:1"}]}}}}`,
			[]string{"warn image-unpinned DaemonSet jarvis/d", "warn image-unpinned ReplicaSet jarvis/r", "warn image-unpinned Job jarvis/j",
				"warn image-unpinned CronJob jarvis/c", "warn image-unpinned Pod jarvis/p", "warn image-unpinned ReplicationController jarvis/rc"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			says(t, preflight.Digests(t.Context(), manifests(t, test.text), preflight.SetFacts{Images: registry}), test.want...)
		})
	}
	t.Run("each image is asked for once", func(t *testing.T) {
		var mu sync.Mutex
		asked := map[string]int{}
		counting := func(ctx context.Context, ref string, as authn.Authenticator) (preflight.ImageFacts, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[ref]++
			return registry(ctx, ref, as)
		}
		preflight.Set(t.Context(), manifests(t, one("r.example.com/a:1")+workloadYAML("Job", "j", "", `{containers: [{name: a, image: "r.example.com/a:1"}, {name: b, image: "r.example.com/B"}]}`)),
			preflight.SetFacts{Images: counting, Nodes: []corev1.Node{node("a")}})
		if len(asked) != 1 || asked["r.example.com/a:1"] != 1 {
			t.Errorf("asked %v", asked)
		}
	})
}

// TestA07Architectures: an image published for amd64 alone is found before it meets an arm64 node.
func TestA07Architectures(t *testing.T) {
	arm := func(n corev1.Node) corev1.Node {
		n.Status.NodeInfo.Architecture = "arm64"
		n.Labels[corev1.LabelArchStable] = "arm64"
		return n
	}
	amd := node("amd-1", "kubernetes.io/arch=amd64")
	pod := func(image, more string) string {
		return workloadYAML("Deployment", "api", "", `{`+more+`containers: [{name: api, image: "`+image+`"}]}`)
	}
	for name, test := range map[string]struct {
		text  string
		nodes []corev1.Node
		want  []string
	}{
		"an arm64 pool": {pod("r.example.com/api:1", ""), []corev1.Node{arm(node("arm-1")), arm(node("arm-2"))}, []string{
			`warn image-platform Deployment jarvis/api: r.example.com/api:1 (container "api") is published for linux/amd64 and not for arm-1, arm-2 (arm64), ` +
				"and there is no other node that takes the pod, so it can never be pulled — publish it for arm64"}},
		"a mixed pool": {pod("r.example.com/api:1", ""), []corev1.Node{amd, arm(node("arm-1"))}, []string{
			"warn image-platform Deployment jarvis/api: not for arm-1 (arm64), and a pod that lands there cannot pull it — publish it for arm64, or give the pods the nodeSelector kubernetes.io/arch: amd64"}},
		"a mixed pool, selected":       {pod("r.example.com/api:1", "nodeSelector: {kubernetes.io/arch: amd64}, "), []corev1.Node{amd, arm(node("arm-1"))}, nil},
		"kept off by a taint":          {pod("r.example.com/api:1", ""), []corev1.Node{amd, arm(node("arm-1", "pool=arm:NoSchedule"))}, nil},
		"F07: off by a startup taint":  {pod("r.example.com/api:1", ""), []corev1.Node{amd, arm(node("arm-1", "node.cilium.io/agent-not-ready:NoExecute"))}, []string{"warn image-platform Deployment jarvis/api: arm-1"}},
		"published for both":           {pod("r.example.com/multi:1", ""), []corev1.Node{amd, arm(node("arm-1"))}, nil},
		"an artifact has no platforms": {pod("r.example.com/artifact:1", ""), []corev1.Node{arm(node("arm-1"))}, nil},
		"pinned images too":            {pod(pinned, ""), []corev1.Node{arm(node("arm-1"))}, []string{"warn image-platform Deployment jarvis/api: " + pinned}},
		"no answer":                    {pod("r.example.com/down:1", ""), []corev1.Node{amd}, []string{"note not-looked-at registries: r.example.com/down:1 (connection refused)"}},
		"an init container": {workloadYAML("Deployment", "api", "", `{initContainers: [{name: dist, image: "r.example.com/dist:1"}], containers: [{name: api, image: "r.example.com/multi:1"}]}`),
			[]corev1.Node{arm(node("arm-1"))}, []string{`warn image-platform Deployment jarvis/api: r.example.com/dist:1 (init container "dist") is published`}},
	} {
		t.Run(name, func(t *testing.T) {
			says(t, preflight.Architectures(t.Context(), manifests(t, test.text), preflight.SetFacts{Images: registry, Nodes: test.nodes}), test.want...)
		})
	}
}
