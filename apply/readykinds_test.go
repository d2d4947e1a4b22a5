package apply

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// fixture is an object as a server answers it.
func fixture(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

// head is the beginning of a fixture in generation 2: "batch/v1 Job", and more metadata.
func head(kind, metadata string) string {
	version, name, _ := strings.Cut(kind, " ")
	if metadata != "" {
		metadata = ", " + metadata
	}
	return "apiVersion: " + version + "\nkind: " + name + "\nmetadata: {name: x, namespace: demo, uid: u, generation: 2" + metadata + "}\n"
}

func TestReadyOfKinds(t *testing.T) {
	const hook, going = `annotations: {argocd.argoproj.io/hook: PreSync}`, `deletionTimestamp: "2026-01-01T00:00:00Z"`
	conditions := func(all string) string { return "status: {observedGeneration: 2, conditions: [" + all + "]}" }
	for _, tt := range []struct {
		name, kind, metadata, body string
		want                       string // done, failed or waiting, then On
		says                       string // in the message or the note
	}{
		{"replica set", "apps/v1 ReplicaSet", "", "spec: {replicas: 2}\nstatus: {observedGeneration: 2, replicas: 2, availableReplicas: 2}", "done", ""},
		{"replica set, not observed", "apps/v1 ReplicaSet", "", "spec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 2, availableReplicas: 2}", "waiting", "observed"},
		{"replica set, refused", "apps/v1 ReplicaSet", "", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 1, availableReplicas: 1, conditions: [{type: ReplicaFailure, status: "True", message: full}]}}`, "waiting", "1 of 2 pods of replicaset \"x\" are available: full"},
		{"replica set, too many", "apps/v1 ReplicaSet", "", "spec: {replicas: 0}\nstatus: {observedGeneration: 2, replicas: 2, availableReplicas: 2}", "waiting", "2 pods"},

		{"job", "batch/v1 Job", "", `status: {succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}`, "done", "complete"},
		{"job, complete and gone", "batch/v1 Job", going, `status: {conditions: [{type: Complete, status: "True"}]}`, "done", ""},
		{"job, criteria met", "batch/v1 Job", "", `status: {conditions: [{type: SuccessCriteriaMet, status: "True"}]}`, "waiting", "its pods end"},
		{"job, failed", "batch/v1 Job", "", `status: {failed: 1, conditions: [{type: Failed, status: "True", reason: DeadlineExceeded, message: too long}]}`, "failed", "DeadlineExceeded: too long"},
		{"job, failing", "batch/v1 Job", "", `status: {failed: 1, conditions: [{type: FailureTarget, status: "True", reason: BackoffLimitExceeded}]}`, "waiting", "is failing"},
		{"job, a failed pod", "batch/v1 Job", "", `status: {failed: 1, active: 1}`, "waiting", "0 of 1 pods of job \"x\" succeeded, 1 failed"},
		{"job, condition false", "batch/v1 Job", "", `status: {conditions: [{type: Complete, status: "False"}]}`, "waiting", ""},
		{"job, removed", "batch/v1 Job", going, `status: {active: 1}`, "failed", "it was removed before it finished"},
		{"job, suspended", "batch/v1 Job", "", `{spec: {suspend: true}, status: {conditions: [{type: Suspended, status: "True"}]}}`, "done", "suspended: it runs when it is resumed"},
		{"job, a suspended hook", "batch/v1 Job", hook, `spec: {suspend: true}`, "waiting gate", "suspended and runs when"},
		{"job, in a queue", "batch/v1 Job", "labels: {kueue.x-k8s.io/queue-name: main}", `spec: {suspend: true}`, "waiting gate", "until the queue main"},
		{"cron job", "batch/v1 CronJob", "", `status: {}`, "done", ""},

		{"pod", "v1 Pod", "", `status: {phase: Running, conditions: [{type: Ready, status: "True"}]}`, "done", ""},
		{"pod, not ready", "v1 Pod", "", `status: {phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady}]}`, "waiting", "ContainersNotReady"},
		{"pod, new", "v1 Pod", "", `status: {phase: Pending}`, "waiting", "Pending"},
		{"pod, succeeded", "v1 Pod", "", `status: {phase: Succeeded}`, "done", ""},
		{"pod, failed", "v1 Pod", "", `status: {phase: Failed, containerStatuses: [{name: c, state: {terminated: {exitCode: 2, reason: Error}}}]}`, "failed", "container c: Error (exit code 2)"},
		{"pod, evicted", "v1 Pod", "", `status: {phase: Failed, reason: Evicted, message: The node was low on memory.}`, "failed", "Evicted: The node"},
		{"pod, no node", "v1 Pod", "", `status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/1 nodes}]}`, "waiting node", "0/1 nodes"},
		{"pod, no claim", "v1 Pod", "", `status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 'persistentvolumeclaim "d" not found'}]}`, "waiting", ""},
		{"pod, gated", "v1 Pod", "", `{spec: {schedulingGates: [{name: example.com/admission}]}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated}]}}`, "waiting gate", "gate example.com/admission"},
		{"pod, a hook that ends", "v1 Pod", hook, `{spec: {restartPolicy: Never}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, "waiting", "has not ended"},
		{"pod, a hook that stays", "v1 Pod", hook, `{spec: {restartPolicy: Always}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, "done", ""},

		{"claim", "v1 PersistentVolumeClaim", "", `status: {phase: Bound}`, "done", ""},
		{"claim, pending", "v1 PersistentVolumeClaim", "", `status: {phase: Pending}`, "waiting", ""},
		{"claim, lost", "v1 PersistentVolumeClaim", "", `{spec: {volumeName: pv}, status: {phase: Lost}}`, "failed", "pv"},
		{"service", "v1 Service", "", `{spec: {type: ClusterIP}, status: {loadBalancer: {}}}`, "done", ""},
		{"balancer", "v1 Service", "", `{spec: {type: LoadBalancer}, status: {loadBalancer: {}}}`, "waiting", "no address"},
		{"balancer with an address", "v1 Service", "", `{spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}`, "done", "192.0.2.1"},
		{"balancer by hand", "v1 Service", "", `{spec: {type: LoadBalancer, externalIPs: [192.0.2.2]}, status: {loadBalancer: {}}}`, "done", ""},
		{"ingress", "networking.k8s.io/v1 Ingress", "", `status: {loadBalancer: {}}`, "done", ""},
		{"namespace", "v1 Namespace", "", `status: {phase: Active}`, "done", ""},
		{"namespace, going", "v1 Namespace", "", `status: {phase: Terminating, conditions: [{type: NamespaceContentRemaining, status: "True", message: pods remain}]}`, "failed", "pods remain"},
		{"autoscaler", "autoscaling/v2 HorizontalPodAutoscaler", "", `status: {observedGeneration: 2, conditions: [{type: ScalingActive, status: "False", reason: FailedGetResourceMetric, message: no metrics}]}`, "done", "no metrics"},
		{"autoscaler, not observed", "autoscaling/v2 HorizontalPodAutoscaler", "", `status: {observedGeneration: 1}`, "waiting", "generation 2"},
		{"budget", "policy/v1 PodDisruptionBudget", "", `status: {observedGeneration: 2, conditions: [{type: DisruptionAllowed, status: "False"}]}`, "done", ""},
		{"budget, not observed", "policy/v1 PodDisruptionBudget", "", `status: {observedGeneration: 1}`, "waiting", ""},
		{"definition", "apiextensions.k8s.io/v1 CustomResourceDefinition", "", `status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}`, "done", ""},
		{"definition, new", "apiextensions.k8s.io/v1 CustomResourceDefinition", "", `{}`, "waiting", ""},
		{"definition, names taken", "apiextensions.k8s.io/v1 CustomResourceDefinition", "", `status: {conditions: [{type: NamesAccepted, status: "False", message: taken}, {type: Established, status: "False"}]}`, "failed", "taken"},
		{"api service", "apiregistration.k8s.io/v1 APIService", "", `status: {conditions: [{type: Available, status: "True"}]}`, "done", ""},
		{"api service, new", "apiregistration.k8s.io/v1 APIService", "", `{}`, "waiting", ""},
		{"api service, away", "apiregistration.k8s.io/v1 APIService", "", `status: {conditions: [{type: Available, status: "False", reason: MissingEndpoints}]}`, "waiting", "MissingEndpoints"},

		{"custom, no status", "ex.io/v1 Thing", "", `{}`, "done", ""},
		{"custom, empty status", "ex.io/v1 Thing", "", `status: {}`, "done", ""},
		{"custom, other words", "ex.io/v1 Thing", "", `status: {phase: Sleeping}`, "done", ""},
		{"custom, not observed", "ex.io/v1 Thing", "", `status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}`, "waiting", "generation 2"},
		{"custom, ready", "ex.io/v1 Thing", "", conditions(`{type: Ready, status: "True"}`), "done", ""},
		{"custom, ready before available", "ex.io/v1 Thing", "", conditions(`{type: Available, status: "False"}, {type: Ready, status: "True"}`), "done", ""},
		{"custom, available", "ex.io/v1 Thing", "", conditions(`{type: Available, status: "True"}`), "done", ""},
		{"custom, not ready", "ex.io/v1 Thing", "", conditions(`{type: Ready, status: "False", reason: NoDisk, message: no disk}`), "waiting", "NoDisk: no disk"},
		{"custom, unknown", "ex.io/v1 Thing", "", conditions(`{type: Ready, status: Unknown, reason: Working}`), "waiting", "Ready is Unknown: Working"},
		{"custom, stale", "ex.io/v1 Thing", "", conditions(`{type: Ready, status: "True", observedGeneration: 1}`), "waiting", "older generation"},
		{"custom, stale failure", "ex.io/v1 Thing", "", conditions(`{type: Stalled, status: "True", observedGeneration: 1}, {type: Ready, status: "True", observedGeneration: 2}`), "done", ""},
		{"custom, stalled", "ex.io/v1 Thing", "", conditions(`{type: Ready, status: "False"}, {type: Stalled, status: "True", reason: Bad, message: bad spec, lastTransitionTime: "2026-01-01T00:00:00Z"}`), "failed", "Bad: bad spec"},
		{"custom, reconciling", "ex.io/v1 Thing", "", conditions(`{type: Reconciling, status: "True", message: step 2}, {type: Ready, status: "True"}`), "waiting", "step 2"},
		{"custom, going", "ex.io/v1 Thing", going, conditions(`{type: Ready, status: "True"}`), "failed", "it is being deleted"},
		{"deployment, going", "apps/v1 Deployment", going, "spec: {replicas: 0}\nstatus: {observedGeneration: 2}", "failed", "it is being deleted"},
		{"role", "rbac.authorization.k8s.io/v1 Role", "", `{}`, "done", ""},
	} {
		body := tt.body
		if strings.HasPrefix(body, "{") && body != "{}" { // more than one field
			var fields map[string]any
			if err := yaml.Unmarshal([]byte(body), &fields); err != nil {
				t.Fatal(err)
			}
			raw, _ := yaml.Marshal(fields)
			body = string(raw)
		}
		t.Run(tt.name, func(t *testing.T) {
			got := Ready(fixture(t, head(tt.kind, tt.metadata)+strings.TrimPrefix(body, "{}")))
			if state := stateOf(got); state != tt.want || !strings.Contains(got.Message+" "+got.Note, tt.says) || got.Message == "" {
				t.Errorf("%s, %+v", state, got)
			}
		})
	}
}

func stateOf(s Status) string {
	state := "waiting"
	if s.Done {
		state = "done"
	}
	if s.Failed {
		state = "failed"
	}
	return strings.TrimSpace(state + " " + string(s.On))
}

// Typed objects are read like those that came as a map.
func TestReadyOfTypedObjects(t *testing.T) {
	for want, o := range map[string]runtime.Object{
		"waiting": &batchv1.Job{}, "done": &batchv1.CronJob{}, "failed": &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}},
		"waiting node": &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}},
	} {
		if got := Ready(o); stateOf(got) != want {
			t.Errorf("%T: %+v", o, got)
		}
	}
	for _, o := range []runtime.Object{&appsv1.ReplicaSet{}, &corev1.PersistentVolumeClaim{}} {
		if got := Ready(o); got.Done {
			t.Errorf("%T: %+v", o, got)
		}
	}
	if got := Ready(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}}); !got.Done {
		t.Errorf("%+v", got)
	}
}
