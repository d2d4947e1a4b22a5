package jr2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/preflight"
)

// A ModelProbing says who asks the models that Agents name, by pods in the cluster.
type ModelProbing string

const (
	// ProbeInConverge has a converge ask. A plan and a check, which write nothing, say that it would.
	ProbeInConverge ModelProbing = ""
	// ProbeInChecks has a check ask too: then it makes pods, and removes them. In a namespace that is not there yet it can't.
	ProbeInChecks ModelProbing = "checks"
	// ProbeNever has nobody ask, which a converge says.
	ProbeNever ModelProbing = "never"
)

// models asks each model that an Agent names, with what the Instance's own objects are about to say: the pods have copies, so that an Instance
// which runs is left alone until its models have answered. What no Agent could work with stops the converge.
func (c *converge) models(ctx context.Context) error {
	switch names := c.inst.Models(); {
	case len(names) == 0:
		c.tell(ModelsSkipped{Reason: "no Agent names a model"})
		return nil
	case c.opts.Models == ProbeNever:
		c.note(unaskedModels(c.inst, "as the options of this converge say"))
		return nil
	}
	findings, err := c.askModels(ctx)
	for _, finding := range findings {
		if finding.Severity != preflight.Refuse {
			c.note(finding)
		}
	}
	if refused := preflight.Refused(findings); refused != nil {
		return refused
	}
	return err
}

// askModels is the look itself.
func (c *converge) askModels(ctx context.Context) ([]preflight.Finding, error) {
	models, unasked := preflight.ModelsOf(c.inst)
	known := c.input
	if known.ImageMap == "" {
		known.ImageMap = "{}" // a probe does not read it
	}
	probes := preflight.ModelProbes{
		Client: c.cluster.client.CoreV1(), Namespace: c.cluster.namespace, Redact: redacting(c.inst),
		Pod:   func(name string) (*corev1.Pod, []runtime.Object, error) { return render.ModelProbe(known, name) },
		Began: func(model preflight.Model) { c.tell(ModelAsked{Model: model.Name, BaseURL: model.BaseURL}) },
		Ended: func(model preflight.Model, found *preflight.Finding) {
			answered := ModelAnswered{Model: model.Name}
			if found != nil {
				answered.Code = found.Code
			}
			c.tell(answered)
		},
	}
	findings, err := probes.Models(ctx, models)
	if err != nil {
		err = fmt.Errorf("models: %w", err)
	}
	return append(unasked, findings...), err
}

// asksModels says whether a converge with these options makes pods for its models.
func (c *converge) asksModels() bool {
	models, _ := preflight.ModelsOf(c.inst)
	return len(models) > 0 && c.opts.Models != ProbeNever
}

// modelRights adds what the probes of models need.
func (c *converge) modelRights(r *rights) {
	if !c.asksModels() {
		return
	}
	const what = "the probes of models"
	home := c.cluster.namespace
	r.need(what, "", "pods", home, "", "create", "list", "watch", "delete")
	r.need(what, "", "configmaps", home, "", "create")
	r.need(what, "", "secrets", home, "", "create")
}

// models of a plan are not asked, because that takes pods.
func (p *planning) models(context.Context) error {
	if len(p.inst.Models()) == 0 {
		return nil
	}
	why := "a plan and a check write nothing, and a converge asks each by a pod"
	if p.opts.Models == ProbeNever {
		why = "as the options say"
	}
	p.note(unaskedModels(p.inst, why))
	return nil
}

// models of a check are asked when that is wanted and there is a namespace to ask in.
func (k *checking) models(ctx context.Context) error {
	switch {
	case k.opts.Models != ProbeInChecks || len(k.inst.Models()) == 0:
		return k.planning.models(ctx)
	case k.homeless:
		k.note(unaskedModels(k.inst, "there is no namespace yet to ask from"))
		return nil
	}
	check := preflight.NewCheck("models", k.askModels, preflight.ModelCodes()...)
	findings, err := preflight.Run(ctx, []preflight.Check{check}, preflight.RunOptions{Choice: k.choice})
	k.result.Findings = append(k.result.Findings, findings...)
	return err
}

// unaskedModels says aloud that nobody asked.
func unaskedModels(inst *config.Instance, why string) preflight.Finding {
	return preflight.Finding{
		Severity: preflight.Note, Code: preflight.CodeModelsUnprobed, Object: "Instance " + inst.Name,
		Message: fmt.Sprintf("models were not asked — %s: %s", why, strings.Join(inst.Models(), ", ")),
	}
}

// redacting takes values of the configuration out of a text: an endpoint may repeat a key that a Custodian put into a request.
func redacting(inst *config.Instance) func(string) string {
	var values []string
	add := func(value config.Secret) {
		if text := value.Reveal(); len(text) > 3 {
			values = append(values, text)
		}
	}
	for _, held := range inst.Secrets {
		add(held.Value)
	}
	for _, env := range inst.Harness.Env {
		add(env.Value)
	}
	if inst.Harness.Provider != nil {
		add(inst.Harness.Provider.APIKey)
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // the longest first: one may begin as another
	return func(text string) string {
		for _, value := range values {
			text = strings.ReplaceAll(text, value, "…")
		}
		return text
	}
}
