package jr2

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/preflight"
)

// noteWaits tells what a quota has no room for now. A converge waits for it without an end, but for the Secret of its tokens, with which it ends. Each
// object was asked about alone: see quotaSums.
func (p *planning) noteWaits(plan *apply.Plan) {
	var words []string
	for _, step := range plan.Steps {
		if word := step.WaitsForQuota(); word != "" {
			words = append(words, word)
		}
	}
	for _, step := range plan.Steps {
		word := step.WaitsForQuota()
		if word == "" {
			continue
		}
		f := preflight.Finding{Severity: preflight.Warn, Code: preflight.CodeQuotaFull, Object: step.Ref.String(), Fix: "raise the quota, or make room in it"}
		what := "would wait for room"
		if mint := p.plan.Mint; mint != nil && mint.Secret == step.Ref {
			f.Severity, what = preflight.Refuse, "would be refused"
		}
		f.Message = fmt.Sprintf("%s %s: %s — %s", f.Object, what, word, f.Fix)
		others := slices.DeleteFunc(slices.Clone(words), func(other string) bool { return other == word })
		if fix := preflight.RaiseQuota(step.Ref.Namespace, word, others...); fix != "" {
			f.Fix = fix
			f.Message += ": " + fix
		}
		p.note(f)
	}
}

// quotaSums looks whether the quotas of the namespace have room for all that a converge makes there. What the plan leaves as it is counts already.
func (k *checking) quotaSums(ctx context.Context) error {
	if k.homeless || k.facts == nil {
		return nil
	}
	bounds, err := k.readBounds(ctx)
	if err != nil {
		return err
	}
	objs, err := k.outlined()
	if err != nil {
		return err
	}
	home := k.cluster.namespace
	objs = slices.DeleteFunc(objs, func(o *unstructured.Unstructured) bool { return o.GetNamespace() != home || !k.makes(apply.RefOf(o)) })
	arrivals := preflight.Arrivals{Namespace: home, Objects: objs, Also: k.alsoMade(), Quotas: bounds.Quotas, LimitRanges: bounds.LimitRanges}
	k.result.Findings = append(k.result.Findings, preflight.QuotaSums(arrivals, *k.facts)...)
	return nil
}

// makes says that the plan makes an object that is not there.
func (k *checking) makes(ref apply.Ref) bool {
	step, ok := k.planned(ref)
	return ok && (step.Intent == apply.WillCreate || step.WaitsForQuota() != "")
}

// alsoMade counts what a converge makes beside the objects of its sets: at least so many.
func (k *checking) alsoMade() corev1.ResourceList {
	secrets, maps := int64(len(k.plan.DeployKeys)), int64(0)
	if mint := k.plan.Mint; mint != nil && len(mint.Keys) == len(render.InstanceSecretKeys()) {
		secrets++
	}
	if made := func(layer PlannedLayer) bool {
		return layer.Name == layerInstance && layer.Plan.Count(apply.WillLeave) == 0
	}; slices.ContainsFunc(k.plan.Layers, made) {
		maps++ // the record of the set
	}
	if k.plan.Assembly.Publish {
		maps++ // the parts, of which there is one at least
		if k.plan.Assembly.Current == "" {
			maps++ // and the one that names the current one
		}
	}
	made := corev1.ResourceList{}
	for name, n := range map[corev1.ResourceName]int64{corev1.ResourceSecrets: secrets, "count/secrets": secrets, corev1.ResourceConfigMaps: maps, "count/configmaps": maps} {
		made[name] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	return made
}
