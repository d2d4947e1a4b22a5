package preflight

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"

	"jr2.dev/jr2/internal/names"
)

//go:embed modelprobe.js
var modelProbeScript string

// What a probe's container runs. The Harness brings its node at this place, for every image that it is mounted into (source: reference, the Sandbox
// pod); that it is there in the Harness image itself follows.
const (
	modelProbeNode     = "/opt/jr2/bin/node"
	modelProbeQuestion = "JR2_MODEL_PROBE"
	modelProbeName     = "jr2-model-probe-"
)

const (
	// modelTokens is what an answer may cost (source: reference, "Model preflight").
	modelTokens = 1024
	// modelPause is how long the script waits before its second try, and twice that before its third.
	modelPause = 2 * time.Second
)

// modelQuestion is what the script is asked, in the variable JR2_MODEL_PROBE.
type modelQuestion struct {
	API     string `json:"api"`
	BaseURL string `json:"baseUrl"`
	Model   string `json:"model"`
	// Keys are names of variables; the first that is set is the key, and goes as KeyHeader says: "x-api-key", or "" for a bearer token.
	Keys      []string `json:"keys"`
	KeyHeader string   `json:"keyHeader,omitempty"`
	Tokens    int      `json:"tokens"`
	// Seconds bound one request. Pause is in milliseconds.
	Seconds int `json:"seconds"`
	Pause   int `json:"pause"`
	// Answer is the file of the answer.
	Answer string `json:"answer"`
}

// modelAnswer is what the script says.
type modelAnswer struct {
	// Status is that of the completion, 0 when none came; Error says why.
	Status int    `json:"status"`
	Error  string `json:"error"`
	// Tool says that a tool was called; Text is how the answer begins.
	Tool bool   `json:"tool"`
	Text string `json:"text"`
	// ListStatus is that of the list of models, 0 when none came. Listed counts them, Models are the first; Found says that the model is among all.
	ListStatus int      `json:"listStatus"`
	Listed     int      `json:"listed"`
	Found      bool     `json:"found"`
	Models     []string `json:"models"`
}

// one asks one model.
func (r *modelProbing) one(ctx context.Context, model Model) (*Finding, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	name := modelProbeName + rand.String(8)
	pod, objects, err := r.Pod(name)
	if err != nil {
		return nil, err
	}
	pod.Name = name
	if err := r.question(pod, model); err != nil {
		return nil, err
	}
	end, err := r.run(ctx, pod, func(ctx context.Context, made *corev1.Pod) error { return r.bring(ctx, made, objects) })
	if full := (*quotaError)(nil); errors.As(err, &full) {
		end, err = ending{why: full.words}, nil
	}
	if err != nil {
		return nil, err
	}
	if end.why != "" {
		found := unprobed(Warn, model.Name, r.Redact(end.why))
		return &found, nil
	}
	var answer modelAnswer
	if err := json.Unmarshal([]byte(end.message), &answer); err != nil {
		found := unprobed(Warn, model.Name, "its pod ended without an answer: "+r.Redact(end.message))
		return &found, nil
	}
	answer.Text, answer.Error = r.Redact(answer.Text), r.Redact(answer.Error)
	return judgeModel(model, answer), nil
}

// question sets what the Harness container of the pod runs.
func (r *modelProbing) question(pod *corev1.Pod, model Model) error {
	container := &pod.Spec.Containers[0]
	asked := modelQuestion{
		API: model.API, BaseURL: model.BaseURL, Model: model.ID, Keys: model.Keys, Tokens: modelTokens,
		Seconds: max(1, int(r.Timeout.Seconds()/4)), Pause: int(modelPause.Milliseconds()), Answer: corev1.TerminationMessagePathDefault,
	}
	if asked.Keys == nil {
		asked.Keys = []string{}
	}
	if model.API == wireMessages {
		asked.KeyHeader = "x-api-key"
	}
	raw, err := json.Marshal(asked)
	if err != nil {
		return fmt.Errorf("the question for model %q: %w", model.Name, err)
	}
	container.Command, container.Args = []string{modelProbeNode, "-e", modelProbeScript}, nil
	container.Env = append(container.Env, corev1.EnvVar{Name: modelProbeQuestion, Value: string(raw)})
	return nil
}

// bring makes what the pod reads and waits for. It is the pod's, so the cluster removes it with the pod.
func (r *modelProbing) bring(ctx context.Context, pod *corev1.Pod, objects []runtime.Object) error {
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}
	for _, object := range objects {
		var err error
		var kind, name string
		switch o := object.(type) {
		case *corev1.ConfigMap:
			o.OwnerReferences, o.Labels, kind, name = owner, added(o.Labels, r.labels()), "ConfigMap", o.Name
			_, err = r.Client.ConfigMaps(r.namespace).Create(ctx, o, metav1.CreateOptions{FieldManager: names.ManagedBy})
		case *corev1.Secret:
			o.OwnerReferences, o.Labels, kind, name = owner, added(o.Labels, r.labels()), "Secret", o.Name
			_, err = r.Client.Secrets(r.namespace).Create(ctx, o, metav1.CreateOptions{FieldManager: names.ManagedBy})
		default:
			err = fmt.Errorf("a model probe reads no %T", object)
		}
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") {
			return &quotaError{words: err.Error()}
		}
		if err != nil {
			return fmt.Errorf("make %s %s/%s for a model probe: %w", kind, r.namespace, name, err)
		}
	}
	return nil
}

// A quotaError is a quota that has no room for what a pod reads. It says nothing about the model.
type quotaError struct{ words string }

func (e *quotaError) Error() string { return e.words }
