package jr2

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/preflight"
)

// pulls looks whether the nodes can pull what is new in this converge: images of the Kit, of Sandboxes and of users, with the credentials that
// their pods have. What the cluster's record names was pulled before, and nobody is asked about it again. It never stops a converge: what is
// found warns, and what nobody could see is kept in the result and not told.
func (c *converge) pulls(ctx context.Context) error { return c.pullsBut(ctx, nil) }

// pullsBut leaves out images that are yet to be built.
func (c *converge) pullsBut(ctx context.Context, unbuilt []string) error {
	known := slices.Concat(c.previous.Refs(), unbuilt)
	boxed := c.boxed()
	runs := slices.AppendSeq(c.record.Refs(), maps.Values(boxed))
	if !slices.ContainsFunc(runs, func(ref string) bool { return !slices.Contains(known, ref) }) {
		return nil
	}
	objs, err := c.pullers(ctx, boxed)
	if err != nil {
		c.result.Findings = append(c.result.Findings, preflight.Finding{
			Severity: preflight.Note, Code: preflight.CodeNotLookedAt, Object: "Instance " + c.inst.Name,
			Message: fmt.Sprintf("nobody could look whether the nodes can pull the images of the Instance: %v", err),
		})
		return nil
	}
	standIn := "Pod " + c.cluster.namespace + "/" + boxName
	for _, finding := range preflight.Pulls(ctx, objs, c.pullFacts(ctx, known)) {
		if finding.Object == standIn {
			finding.Object = "Instance " + c.inst.Name
			finding.Message = strings.Replace(finding.Message, standIn, "Sandboxes of "+c.inst.Name, 1)
		}
		if finding.Severity == preflight.Note {
			c.result.Findings = append(c.result.Findings, finding)
			continue
		}
		c.note(finding)
	}
	return nil
}

// pulls looks for what is there already: an image that is yet to be built is pushed before nodes pull it.
func (p *planning) pulls(ctx context.Context) error {
	var unbuilt []string
	if p.decision != nil {
		for _, image := range p.decision.Images {
			if slices.ContainsFunc(p.plan.Images, func(planned PlannedImage) bool { return planned.Ref == image.Ref && planned.Intent == WillBuild }) {
				unbuilt = append(unbuilt, image.PullRef())
			}
		}
	}
	return p.pullsBut(ctx, unbuilt)
}

func (c *converge) pullFacts(ctx context.Context, known []string) preflight.SetFacts {
	client := c.cluster.client
	local, err := c.cluster.localRegistry(ctx)
	if err != nil {
		local = images.LocalRegistry{} // then a registry of this machine says nothing about the nodes
	}
	return preflight.SetFacts{
		Nodes:   c.nodes,
		Pulled:  known,
		Images:  AskRegistries(*c.registries(), local),
		Secrets: func(namespace string) preflight.SecretGetter { return client.CoreV1().Secrets(namespace) },
		ServiceAccounts: func(namespace string) preflight.ServiceAccountGetter {
			return client.CoreV1().ServiceAccounts(namespace)
		},
	}
}

// pullers are the objects whose pods pull: those of the Kit's layers, and a pod that stands for all Sandboxes.
func (c *converge) pullers(ctx context.Context, boxed map[string]string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	brought, err := c.bringsOperator(ctx)
	if err != nil {
		return nil, err
	}
	if brought {
		set, _, err := operatorSet(c.input, c.opts.Adopt)
		if err != nil {
			return nil, err
		}
		all = append(all, set.Objects...)
	}
	with := *c
	with.input.SigningKey = config.NewSecret(standInKey) // what derives from it is in no pod
	set, _, err := with.instanceSet()
	if err != nil {
		return nil, err
	}
	all = append(all, set.Objects...)
	if len(boxed) == 0 {
		return all, nil
	}
	box, err := c.sandboxes(boxed)
	return append(all, box), err
}

// bringsOperator says whether the operator's pods will be those of this Kit: where another runs that is not older, its own stay.
func (c *converge) bringsOperator(ctx context.Context) (bool, error) {
	if !render.ManagesOperator(c.input) {
		return false, nil
	}
	deployed, err := c.knownOperator(ctx)
	if err != nil {
		return false, err
	}
	version := versionOf(deployed)
	if version == "" {
		return true, nil
	}
	order, err := render.CompareVersions(version, c.inst.KitVersion)
	return order < 0, err
}

// boxed are the images that a Sandbox of this Instance may run, by a name for people. What was loaded into the nodes is pulled by nobody.
func (c *converge) boxed() map[string]string {
	refs := map[string]string{}
	if !c.inst.ComposesSandbox() {
		return refs
	}
	refs["harness"], refs["custodian"] = c.record.Harness, c.record.Custodian
	if c.decision != nil && c.registry() != "" {
		for _, image := range c.decision.Images {
			refs[image.Name] = image.PullRef()
		}
	}
	for _, workflow := range c.inst.Workflows {
		for _, workspace := range workflow.Workspaces {
			at := strings.Join(append([]string{workflow.Name}, workspace.Path...), "/")
			for seat, ref := range map[string]string{"image": workspace.Image, "user": workspace.User} {
				if _, folder := config.ImageFolder(ref); ref != "" && !folder {
					refs[seat+" of "+at] = ref
				}
			}
		}
	}
	return refs
}

// boxName is that of a pod that nobody makes.
const boxName = "sandboxes"

// sandboxes is a pod with every image that a Sandbox may run, as the operator makes them: in the Instance's namespace, with its default service
// account, on the nodes of Sandboxes.
func (c *converge) sandboxes(boxed map[string]string) (*unstructured.Unstructured, error) {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: c.cluster.namespace, Name: boxName, Labels: map[string]string{names.LabelInstance: c.inst.Name}},
		Spec:       corev1.PodSpec{NodeSelector: c.inst.Sandbox.NodeSelector, Tolerations: c.inst.Sandbox.Tolerations},
	}
	for _, name := range slices.Sorted(maps.Keys(boxed)) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: boxed[name], ImagePullPolicy: corev1.PullIfNotPresent})
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	return &unstructured.Unstructured{Object: object}, err
}
