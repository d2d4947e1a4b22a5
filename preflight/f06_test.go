package preflight_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"jr2.dev/jr2/preflight"
)

// restricted34 are the labels of case F06.
const restricted34 = enforce + ": restricted, " + enforce + "-version: v1.34"

// What a container of case F06 states: wholly, and without what the case leaves out.
const (
	wholly = `securityContext: {runAsNonRoot: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}`
	partly = `securityContext: {runAsNonRoot: true, allowPrivilegeEscalation: false}`
	// lacking are the words about a container that states so little.
	lacking = `unrestricted capabilities (container "dist" must set securityContext.capabilities.drop=["ALL"]), seccompProfile (pod or container "dist" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`
)

// f06 is the pod of case F06: the main container is fine, and the init container lacks seccompProfile and capabilities.drop.
const f06 = `{initContainers: [{name: dist, image: a, ` + partly + `}], containers: [{name: api, image: a, ` + wholly + `}]}`

// TestF06PodsThatAreRefused is case F06 as a real server answers: the workload is accepted and its pods are not, and container and fields are named.
func TestF06PodsThatAreRefused(t *testing.T) {
	t.Parallel()
	check := admissionChecker{clientFor(t, sharedCluster(t).Config())}
	makeNamespace(t, check.client, "f06", map[string]string{enforce: "restricted", enforce + "-version": "v1.34"})
	makeNamespace(t, check.client, "f06-baseline", map[string]string{enforce: "baseline"})
	job := `{restartPolicy: Never, ` + f06[1:]
	good := `{initContainers: [{name: dist, image: a, ` + wholly + `}], containers: [{name: api, image: a, ` + wholly + `}]}`
	const violates = `its pod template violates PodSecurity "restricted:v1.34": ` + lacking
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"the case":      {workloadIn("f06", "Deployment", "api", "", f06), []string{"refuse pod-security Deployment f06/api: " + violates}},
		"a Job":         {workloadIn("f06", "Job", "j", "", job), []string{"refuse pod-security Job f06/j: " + violates}},
		"a DaemonSet":   {workloadIn("f06", "DaemonSet", "d", "", f06), []string{"refuse pod-security DaemonSet f06/d: " + violates}},
		"a StatefulSet": {workloadIn("f06", "StatefulSet", "s", "serviceName: s", f06), []string{"refuse pod-security StatefulSet f06/s: " + violates}},
		"a CronJob": {"---\n{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: f06, name: c}, spec: {jobTemplate: {spec: {template: {spec: " + job + "}}}}}\n",
			[]string{"refuse pod-security CronJob f06/c: " + violates}},
		"a sidecar": {workloadIn("f06", "Deployment", "api", "", `{initContainers: [{name: dist, image: a, restartPolicy: Always, `+partly+`}], containers: [{name: api, image: a, `+wholly+`}]}`),
			[]string{"refuse pod-security Deployment f06/api: " + violates}},
		"the main container": {workloadIn("f06", "Deployment", "api", "", `{initContainers: [{name: api, image: a, `+wholly+`}], containers: [{name: dist, image: a, `+partly+`}]}`),
			[]string{"refuse pod-security Deployment f06/api: " + violates}},
		"another level": {workloadIn("f06-baseline", "Deployment", "api", "", `{initContainers: [{name: dist, image: a, securityContext: {privileged: true}}], containers: [{name: api, image: a}]}`),
			[]string{`refuse pod-security Deployment f06-baseline/api: violates PodSecurity "baseline:latest": privileged (container "dist" must not set securityContext.privileged=true)`}},
		"a level that asks for less": {workloadIn("f06-baseline", "Deployment", "api", "", f06), nil},
		"all is stated":              {workloadIn("f06", "Deployment", "api", "", good), nil},
	} {
		t.Run(name, func(t *testing.T) { says(t, check.findings(t, test.text, preflight.SetFacts{}), test.want...) })
	}
}

// TestF06LevelArrives is the second case: the label comes in the same set, so that no server can answer. On a namespace whose running pods violate it,
// they survive, and their replacements are refused.
func TestF06LevelArrives(t *testing.T) {
	live := map[string]*corev1.Namespace{"f06": {}}
	pod := func(text string) corev1.Pod {
		made := running("f06", "api-1", "a")
		made.Spec = corev1.PodSpec{}
		must(t, yaml.UnmarshalStrict([]byte(text), &made.Spec))
		return made
	}
	withDebug := pod(`{containers: [{name: api, image: a, ` + wholly + `}], ephemeralContainers: [{name: dist, image: a, ` + partly + `}]}`)
	const running = `warn pod-security-running Namespace f06: the level restricted:v1.34 that the set brings is violated by 1 running pod (api-1): what runs survives, and what replaces it will be refused — correct the workloads first; api-1: `
	good := `{containers: [{name: api, image: a, ` + wholly + `}]}`
	for name, test := range map[string]struct {
		text  string
		facts preflight.SetFacts
		want  []string
	}{
		"on a living namespace": {namespaceYAML("f06", restricted34), preflight.SetFacts{Namespaces: live, Pods: []corev1.Pod{pod(f06)}}, []string{running + lacking}},
		"and the workload stays as it was": {namespaceYAML("f06", restricted34) + workloadIn("f06", "Deployment", "api", "", f06), preflight.SetFacts{Namespaces: live, Pods: []corev1.Pod{pod(f06)}},
			[]string{`refuse pod-security Deployment f06/api: violates PodSecurity "restricted:v1.34": ` + lacking, running + lacking}},
		"an ephemeral container that runs":  {namespaceYAML("f06", restricted34), preflight.SetFacts{Namespaces: live, Pods: []corev1.Pod{withDebug}}, []string{running + lacking}},
		"a level that is raised":            {namespaceYAML("f06", restricted34), preflight.SetFacts{Namespaces: map[string]*corev1.Namespace{"f06": level("baseline")}, Pods: []corev1.Pod{pod(f06)}}, []string{running}},
		"a level that was there":            {namespaceYAML("f06", restricted34), preflight.SetFacts{Namespaces: map[string]*corev1.Namespace{"f06": level("restricted", "v1.34")}, Pods: []corev1.Pod{pod(f06)}}, nil},
		"a namespace that arrives":          {namespaceYAML("new", restricted34) + workloadIn("new", "Deployment", "api", "", f06), preflight.SetFacts{Namespaces: live, Pods: []corev1.Pod{}}, []string{`refuse pod-security Deployment new/api: ` + lacking}},
		"one that asks for nothing":         {namespaceYAML("f06", enforce+": privileged"), preflight.SetFacts{Namespaces: live, Pods: []corev1.Pod{pod(f06)}}, nil},
		"an ephemeral container of the set": {namespaceYAML("new", restricted34) + workloadIn("new", "Deployment", "api", "", `{containers: [{name: api, image: a, `+wholly+`}], ephemeralContainers: [{name: dist, image: a, `+partly+`}]}`), preflight.SetFacts{Namespaces: live, Pods: []corev1.Pod{}}, []string{`refuse pod-security Deployment new/api: ` + lacking}},
		"an older version asks for less":    {namespaceYAML("f06", enforce+": restricted, "+enforce+"-version: v1.18"), preflight.SetFacts{Namespaces: live, Pods: []corev1.Pod{pod(`{containers: [{name: api, image: a, securityContext: {runAsNonRoot: true, allowPrivilegeEscalation: false}}]}`)}}, nil},
		"pods of others that are fine":      {namespaceYAML("f06", restricted34), preflight.SetFacts{Namespaces: live, Pods: []corev1.Pod{pod(good)}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			test.facts.DryRun = func(string) preflight.PodCreator { return admits{} }
			says(t, preflight.Admission(t.Context(), manifests(t, test.text), test.facts), test.want...)
		})
	}
}

// level is a namespace that enforces this level.
func level(name string, version ...string) *corev1.Namespace {
	namespace := &corev1.Namespace{}
	namespace.Labels = map[string]string{enforce: name}
	if len(version) > 0 {
		namespace.Labels[enforce+"-version"] = version[0]
	}
	return namespace
}
