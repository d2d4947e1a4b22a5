package devcluster

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// TroubleAnnotation on a pod names the Trouble that it gets into instead of becoming Ready.
const TroubleAnnotation = "devcluster.jr2.dev/trouble"

// troubleImages is the registry of TroubleImage.
const troubleImages = "trouble.devcluster/"

// A Trouble is a way in which a pod fails, once it is on a node, until it is deleted.
type Trouble string

// What a pod can get into.
const (
	// ImagePullBackOff is an image that is not there.
	ImagePullBackOff Trouble = "ImagePullBackOff"
	// CrashLoopBackOff is a container that ended with exit code 1 for the third time.
	CrashLoopBackOff Trouble = "CrashLoopBackOff"
	// OOMKilled is CrashLoopBackOff whose last exit was the memory limit's.
	OOMKilled Trouble = "OOMKilled"
	// Failed is a pod whose containers ended with exit code 1 and are not started again, as that of a Job.
	Failed Trouble = "Failed"
	// NotReady is a container that runs and whose readiness probe fails.
	NotReady Trouble = "NotReady"
	// ContainerCreating never gets further.
	ContainerCreating Trouble = "ContainerCreating"
)

// TroubleImage is an image that gets each pod that has it into trouble, where a pod's annotations can't be set.
func TroubleImage(t Trouble) string { return troubleImages + strings.ToLower(string(t)) + ":1" }

// A trouble is a Trouble and the state that shows it.
type trouble struct {
	name            Trouble
	phase           string
	state           string
	lastState       string
	restarts        int
	reason, message string
}

func troubles() []trouble {
	ended := func(reason string, code int) string {
		return fmt.Sprintf(`{terminated: {exitCode: %d, reason: %s, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}`, code, reason)
	}
	backOff := `{waiting: {reason: CrashLoopBackOff, message: "back-off 40s restarting failed container"}}`
	return []trouble{
		{name: ImagePullBackOff, phase: "Pending",
			state:  `{waiting: {reason: ImagePullBackOff, message: {{ printf "Back-off pulling image %q: not found" $container.image | Quote }}}}`,
			reason: "Failed", message: "Error: ImagePullBackOff"},
		{name: CrashLoopBackOff, phase: "Running", state: backOff, lastState: ended("Error", 1), restarts: 3,
			reason: "BackOff", message: "Back-off restarting failed container"},
		{name: OOMKilled, phase: "Running", state: backOff, lastState: ended("OOMKilled", 137), restarts: 3,
			reason: "BackOff", message: "Back-off restarting failed container"},
		{name: Failed, phase: "Failed", state: ended("Error", 1), reason: "Failed", message: "Error: the container ended with exit code 1"},
		{name: NotReady, phase: "Running", state: `{running: {startedAt: {{ $now | Quote }}}}`,
			reason: "Unhealthy", message: "Readiness probe failed: HTTP probe failed with statuscode: 503"},
		{name: ContainerCreating, phase: "Pending", state: `{waiting: {reason: ContainerCreating}}`,
			reason: "FailedMount", message: "MountVolume.SetUp failed"},
	}
}

const troubleStage = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-trouble-%s
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - key: '.metadata.deletionTimestamp'
      operator: 'DoesNotExist'
    - key: '.status.containerStatuses'
      operator: 'DoesNotExist'
  next:
    event:
      type: Warning
      reason: %q
      message: %q
    statusTemplate: %q
`

const troubleStatus = `{{ $now := Now }}
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: Ready, status: "False", reason: ContainersNotReady, lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "False", reason: ContainersNotReady, lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
{{ range $container := .spec.containers }}
- name: {{ $container.name | Quote }}
  image: {{ $container.image | Quote }}
  ready: false
  restartCount: RESTARTS
  state: STATE
  lastState: LAST
{{ end }}
phase: PHASE
startTime: {{ $now | Quote }}
`

// stage is the rule that gets a pod into trouble.
func (t trouble) stage() ([]byte, error) {
	last := t.lastState
	if last == "" {
		last = "{}"
	}
	status := strings.NewReplacer("RESTARTS", fmt.Sprint(t.restarts), "STATE", t.state, "LAST", last, "PHASE", t.phase).Replace(troubleStatus)
	stage := fmt.Sprintf(troubleStage, strings.ToLower(string(t.name)), t.reason, t.message, status)
	return withCondition([]byte(stage), fmt.Sprintf(
		`(has(self.metadata.annotations) && %[1]q in self.metadata.annotations && self.metadata.annotations[%[1]q] == %[2]q)`+
			` || self.spec.containers.exists(c, c.image == %[3]q)`,
		TroubleAnnotation, string(t.name), TroubleImage(t.name)))
}

// sparingTrouble keeps the stages that make a pod Ready or complete away from pods in trouble.
func sparingTrouble(stage []byte) ([]byte, error) {
	var head struct {
		Metadata struct{ Name string }
	}
	if err := yaml.Unmarshal(stage, &head); err != nil {
		return nil, err
	}
	if head.Metadata.Name != "pod-ready" && head.Metadata.Name != "pod-complete" {
		return stage, nil
	}
	return withCondition(stage, fmt.Sprintf(
		`!((has(self.metadata.annotations) && %q in self.metadata.annotations)`+
			` || self.spec.containers.exists(c, c.image.startsWith(%q)))`,
		TroubleAnnotation, troubleImages))
}

// withCondition narrows a stage by an expression.
func withCondition(stage []byte, cel string) ([]byte, error) {
	var object map[string]any
	if err := yaml.Unmarshal(stage, &object); err != nil {
		return nil, err
	}
	spec, _ := object["spec"].(map[string]any)
	selector, _ := spec["selector"].(map[string]any)
	expressions, ok := selector["matchExpressions"].([]any)
	if !ok {
		return nil, fmt.Errorf("a stage without matchExpressions")
	}
	selector["matchExpressions"] = append(expressions, map[string]any{"cel": map[string]any{"expression": cel}})
	return yaml.Marshal(object)
}
