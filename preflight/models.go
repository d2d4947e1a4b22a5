package preflight

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Stable codes of the findings of ModelProbes.
const (
	// CodeModelUnreachable says that no answer came from the endpoint of a model.
	CodeModelUnreachable = "model-unreachable"
	// CodeModelUnknown says that the endpoint has no such model.
	CodeModelUnknown = "model-unknown"
	// CodeModelDenied says that the endpoint wants another key.
	CodeModelDenied = "model-denied"
	// CodeModelNoTools says that the model answers and calls no tool.
	CodeModelNoTools = "model-no-tool-call"
	// CodeModelBusy says that the endpoint has no time for anybody now.
	CodeModelBusy = "model-busy"
	// CodeModelRefused says that the endpoint refuses the request for another reason.
	CodeModelRefused = "model-refused"
)

// ModelCodes lists the codes of the findings that ModelProbes and ModelsOf may come to.
func ModelCodes() []string {
	return []string{CodeModelUnreachable, CodeModelUnknown, CodeModelDenied, CodeModelNoTools, CodeModelBusy, CodeModelRefused, CodeModelsUnprobed}
}

// Defaults of ModelProbes.
const (
	// DefaultModelTimeout bounds one model (source: reference, "Model preflight").
	DefaultModelTimeout  = 180 * time.Second
	DefaultModelParallel = 4
)

// modelProbeLabel is the label of the pods of ModelProbes.
const modelProbeLabel = "jr2.dev/model-probe"

// ModelProbes ask models what only a pod of the cluster can tell: whether an Agent that runs there is answered, by the name that it uses, with a
// call of a tool. They write: one pod for each model and what the pod reads, all in Namespace. Each pod is removed before Models returns, also
// when its context ends, and the cluster removes with it what was made for it; what a killed run left does nothing after a deadline and is
// removed by the next.
//
// The question runs in the Harness image by that image's own node (/opt/jr2/bin/node), so that no other image is needed, and goes the way of a
// Harness: through the Custodian, with stand-ins for held secrets and with the same trust (source: seed, "Set the registry", for the images; the
// questions are the reference's: list the models, then one completion of at most 1024 tokens that must call a tool; that node runs the
// questions is our guess).
type ModelProbes struct {
	// Client may create, list, watch and delete pods in Namespace, and create ConfigMaps and Secrets there. Required. client-go's CoreV1 is one.
	Client ModelProbeClient
	// Namespace of the Instance.
	Namespace string
	// Pod renders a pod of a name with a Harness, its first container, and a Custodian, and the ConfigMaps and Secrets that it reads. They are made
	// for the pod and go with it, so their names have to be the pod's own. The container's command is set here. Required.
	Pod func(name string) (*corev1.Pod, []runtime.Object, error)
	// Timeout bounds each model, with the pulls of the images; DefaultModelTimeout when 0.
	Timeout time.Duration
	// Parallel bounds how many pods there are at once; DefaultModelParallel when 0.
	Parallel int
	// Redact takes out of what a pod said what must not be told; nil leaves it as it is.
	Redact func(string) string
	// Began and Ended, unless nil, are called for each model, in the models' order and one at a time. found is nil for a model that answered as an
	// Agent needs it.
	Began func(Model)
	Ended func(model Model, found *Finding)
}

// ModelProbeClient is what ModelProbes need of a client.
type ModelProbeClient interface {
	corev1client.PodsGetter
	corev1client.ConfigMapsGetter
	corev1client.SecretsGetter
}

// Models asks each model by one pod. A finding is an answer that no Agent can work with; of a model of the configuration's own provider it
// refuses, and of one of the catalog it warns, since what the catalog of a Harness knows of a provider may be newer than what is known here. A
// pod that the cluster would not run says nothing about the model: that is a Warning with the cluster's words. The error is what kept a
// probe from looking at all; findings until then come with it, in the models' order, and so does what could not be removed.
func (p ModelProbes) Models(ctx context.Context, models []Model) ([]Finding, error) {
	if len(models) == 0 {
		return nil, nil
	}
	run := p.open()
	if err := run.sweep(ctx); err != nil {
		return nil, err
	}
	for _, model := range models {
		if p.Began != nil {
			p.Began(model)
		}
	}
	answers := run.each(ctx, models)
	var findings []Finding
	var errs []error
	for i, model := range models {
		answer := <-answers[i]
		if answer.err != nil {
			errs = append(errs, fmt.Errorf("model %q: %w", model.Name, answer.err))
			continue
		}
		if answer.found != nil {
			findings = append(findings, *answer.found)
		}
		if p.Ended != nil {
			p.Ended(model, answer.found)
		}
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	return findings, run.removeAll(clean, errors.Join(errs...))
}

// modelProbing is one run of ModelProbes.
type modelProbing struct {
	ModelProbes
	shortPods
}

func (p ModelProbes) open() *modelProbing {
	if p.Timeout <= 0 {
		p.Timeout = DefaultModelTimeout
	}
	if p.Parallel <= 0 {
		p.Parallel = DefaultModelParallel
	}
	if p.Redact == nil {
		p.Redact = func(text string) string { return text }
	}
	return &modelProbing{ModelProbes: p, shortPods: shortPods{
		what: "a model probe", label: modelProbeLabel, id: rand.String(8), namespace: p.Namespace, pods: p.Client.Pods(p.Namespace), timeout: p.Timeout,
	}}
}

type probed struct {
	found *Finding
	err   error
}

// each asks some models at a time. Each gives one answer.
func (r *modelProbing) each(ctx context.Context, models []Model) []chan probed {
	answers := make([]chan probed, len(models))
	for i := range answers {
		answers[i] = make(chan probed, 1)
	}
	var group errgroup.Group
	group.SetLimit(r.Parallel)
	go func() {
		for i, model := range models {
			group.Go(func() error {
				found, err := r.one(ctx, model)
				answers[i] <- probed{found, err}
				return nil
			})
		}
	}()
	return answers
}
