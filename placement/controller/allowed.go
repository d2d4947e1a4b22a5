package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/placement/v1alpha1"
)

// allowed asks what the author of a Sandbox may have. The operator makes the pod by its own rights, so what the API server would refuse to the
// author it would give to the operator: a Sandbox may ask for a pod of the Pod Security level "baseline", placed where its Instance's
// configuration says. nil when all is well.
func (r *sandboxes) allowed(ctx context.Context, box *v1alpha1.Sandbox) (*refusal, error) {
	namespace := new(corev1.Namespace)
	err := r.live.Get(ctx, client.ObjectKey{Name: box.Namespace}, namespace)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return nil, err
	}
	allowance, err := v1alpha1.ParseAllowance(namespace.Annotations) // without the right to read it, as if there were none
	if err != nil {
		return &refusal{v1alpha1.ReasonNotAllowed, fmt.Sprintf("namespace %s: %v — the next jr2 up writes it again", box.Namespace, err)}, nil
	}
	over := slices.Concat(beyondBaseline(box), lentRights(&box.Spec), allowance.Exceeded(&box.Spec))
	if len(over) == 0 {
		return nil, nil
	}
	return &refusal{v1alpha1.ReasonNotAllowed, "a Sandbox may not ask for this: " + strings.Join(over, "; ")}, nil
}

// beyondBaseline lets the judge of Pod Security judge the pod, without the volumes that the operator adds.
func beyondBaseline(box *v1alpha1.Sandbox) []string {
	asked := box.DeepCopy()
	asked.Spec.Repos = nil
	pod := Pod(asked, nil)
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return []string{fmt.Sprintf("the checks of Pod Security contradict each other: %v", err)}
	}
	baseline := api.LevelVersion{Level: api.LevelBaseline, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(baseline, &pod.ObjectMeta, &pod.Spec))
	if result.Allowed {
		return nil
	}
	return []string{fmt.Sprintf("it violates PodSecurity %q: %s", baseline.String(), result.ForbiddenDetail())}
}

// lentRights are what Pod Security lets pass and would lend the Sandbox what its author may not have: the token of an account, and the right to
// write into the repositories that all Sandboxes of a node share.
func lentRights(spec *v1alpha1.SandboxSpec) []string {
	var over []string
	for i, volume := range spec.Volumes {
		field := fmt.Sprintf("spec.volumes[%d]", i)
		if volume.Projected != nil {
			for j, source := range volume.Projected.Sources {
				if source.ServiceAccountToken != nil {
					over = append(over, fmt.Sprintf("%s.projected.sources[%d].serviceAccountToken: the token of an account", field, j))
				}
			}
		}
		if slices.ContainsFunc(spec.Repos, func(repo v1alpha1.SandboxRepo) bool { return repoVolume(repo.Key) == volume.Name }) {
			over = append(over, fmt.Sprintf("%s: %q is the name of a repository's volume", field, volume.Name))
		}
	}
	mounts := func(field string, of []corev1.VolumeMount) {
		for i, mount := range of {
			repo := slices.ContainsFunc(spec.Repos, func(repo v1alpha1.SandboxRepo) bool { return repoVolume(repo.Key) == mount.Name })
			if repo && !mount.ReadOnly {
				over = append(over, fmt.Sprintf("%s[%d].readOnly: a repository is shared, and mounted to be read", field, i))
			}
		}
	}
	mounts("spec.volumeMounts", spec.VolumeMounts)
	for i := range spec.Sidecars {
		mounts(fmt.Sprintf("spec.sidecars[%d].volumeMounts", i), spec.Sidecars[i].VolumeMounts)
	}
	for i := range spec.InitContainers {
		mounts(fmt.Sprintf("spec.initContainers[%d].volumeMounts", i), spec.InitContainers[i].VolumeMounts)
	}
	return over
}
