package jr2

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/render"
)

// Names of the sets that a converge applies, each the identity of what lives and dies together.
const (
	setNamespace = "jr2-namespace"
	setPriority  = "jr2-priority-classes"
	setOperator  = "jr2-operator"
	setInstance  = "jr2-instance"
)

// apply brings one set into the cluster, tells what changed and keeps it for the result.
func (c *converge) apply(ctx context.Context, layer string, set *apply.Set, opts apply.Options) error {
	outcome, err := c.applyQuietly(ctx, set, opts)
	told := Applied{Layer: layer, Unchanged: outcome.Count(apply.Unchanged)}
	for _, object := range outcome.Objects {
		if object.Action != apply.Unchanged {
			told.Changes = append(told.Changes, Change{Action: string(object.Action), Object: object.Ref.String(), Why: object.Why})
		}
	}
	if err == nil || len(told.Changes) > 0 {
		c.tell(told)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", layer, err)
	}
	return nil
}

func (c *converge) applyQuietly(ctx context.Context, set *apply.Set, opts apply.Options) (*apply.Outcome, error) {
	opts.Events = c.tellApply
	outcome, err := apply.Apply(ctx, c.cluster.config, set, opts)
	c.result.Objects = append(c.result.Objects, outcome.Objects...)
	c.result.Changed += outcome.Changed()
	return outcome, err
}

// tellApply tells what makes an apply wait; what it did is told when it is done.
func (c *converge) tellApply(e apply.Event) {
	switch e := e.(type) {
	case apply.Waiting:
		c.tell(ApplyWaiting{Object: e.Ref.String(), Reason: e.Reason})
	case apply.Retrying:
		c.tell(ApplyWaiting{Object: e.Ref.String(), Reason: string(e.Class) + ": " + e.Err.Error()})
	case apply.Warned:
		c.tell(Noted{Message: e.Text})
	}
}

// rollout waits for a layer and looks at what its pods run.
func (c *converge) rollout(ctx context.Context, layer render.Layer) error {
	workload := apply.Workload{Kind: layer.Kind, Namespace: layer.Namespace, Name: layer.Object}
	_, err := apply.WaitRollout(ctx, c.cluster.client, workload, apply.RolloutOptions{
		Timeout: layer.Timeout,
		Events: func(e apply.Event) {
			if progress, ok := e.(apply.Progress); ok && !progress.Status.Done {
				c.tell(RolloutWaiting{Layer: layer.Name, Message: progress.Status.Message})
			}
		},
	})
	if err != nil {
		return err
	}
	verified, err := apply.Verify(ctx, c.cluster.client, apply.Layer{
		Name: layer.Name, Namespace: layer.Namespace, Selector: layer.Selector, Container: layer.Container, Image: layer.Image,
	})
	if err != nil {
		return err
	}
	c.tell(Verified{Layer: layer.Name, Selector: layer.Selector, Pods: verified.Pods, Image: layer.Image})
	return nil
}

// priorityClasses applies the classes that the configuration leaves out: before the first pod that names one.
func (c *converge) priorityClasses(ctx context.Context) error {
	var classes []runtime.Object
	for _, class := range render.PriorityClasses(c.input) {
		classes = append(classes, class)
	}
	if len(classes) == 0 {
		return nil
	}
	set, err := apply.NewSet(setPriority, c.cluster.namespace, classes...)
	if err != nil {
		return err
	}
	return c.apply(ctx, "priority classes", set, apply.Options{Shared: true})
}

// operator applies the operator that all Instances of the cluster share, unless a newer one runs.
func (c *converge) operator(ctx context.Context) error {
	if !render.ManagesOperator(c.input) {
		c.tell(OperatorNotManaged{})
		return nil
	}
	deployed, err := c.deployedOperator(ctx)
	if err != nil {
		return err
	}
	if deployed != "" {
		order, err := render.CompareVersions(deployed, c.inst.KitVersion)
		if err != nil {
			return fmt.Errorf("the operator in %s: %w", names.OperatorNamespace, err)
		}
		if order > 0 {
			c.tell(OperatorLeftAlone{Deployed: deployed, Kit: c.inst.KitVersion})
			return nil
		}
	}
	objects, err := render.Operator(c.input)
	if err != nil {
		return err
	}
	set, err := apply.NewSet(setOperator, names.OperatorNamespace, objects...)
	if err != nil {
		return err
	}
	if err := c.applyOperator(ctx, set); err != nil {
		return err
	}
	return c.rollout(ctx, render.OperatorLayer(c.input))
}

// applyOperator applies again when another Instance changed the operator's inventory meanwhile: the lock is the Instance's, and the operator
// belongs to all. Each converge of the cluster can be in the way once and then finds nothing to change.
func (c *converge) applyOperator(ctx context.Context, set *apply.Set) error {
	for tries := 0; ; tries++ {
		err := c.apply(ctx, "operator", set, apply.Options{Prune: true})
		if tries == 10 || !errors.Is(err, apply.ErrInventoryMoved) {
			return err
		}
	}
}

// deployedOperator returns the version of the operator in the cluster, or "" when none is there or it has no version.
func (c *converge) deployedOperator(ctx context.Context) (string, error) {
	deployments := c.cluster.client.AppsV1().Deployments(names.OperatorNamespace)
	deployment, err := deployments.Get(ctx, names.OperatorDeployment, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the operator's Deployment: %w", err)
	}
	return deployment.Labels[names.LabelVersion], nil
}

// tokens makes the Instance's tokens once and keeps them: live Sandboxes hold tokens signed with the kept key.
func (c *converge) tokens(ctx context.Context) error {
	minted, err := apply.EnsureSecret(ctx, c.cluster.client, c.cluster.namespace, names.InstanceSecret, c.labels(), render.InstanceSecretKeys())
	if err != nil {
		return err
	}
	c.result.Changed += min(1, len(minted))
	secret, err := c.cluster.client.CoreV1().Secrets(c.cluster.namespace).Get(ctx, names.InstanceSecret, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read Secret %s/%s: %w", c.cluster.namespace, names.InstanceSecret, err)
	}
	c.input.SigningKey = config.NewSecret(string(secret.Data[names.KeySigningKey]))
	return nil
}

// objects applies everything that the Instance needs in its namespace, and removes what it no longer needs.
func (c *converge) objects(ctx context.Context) error {
	objects, err := render.Instance(c.input)
	if err != nil {
		return err
	}
	if render.NeedsRepoCache(c.input) {
		objects = append(objects, render.RepoCache(c.input)...)
	}
	if render.NeedsInstanceHarness(c.input) {
		harness, err := render.InstanceHarness(c.input)
		if err != nil {
			return err
		}
		objects = append(objects, harness...)
	}
	set, err := apply.NewSet(setInstance, c.cluster.namespace, objects...)
	if err != nil {
		return err
	}
	return c.apply(ctx, "instance", set, apply.Options{Prune: true})
}

func (c *converge) orchestrator(ctx context.Context) error {
	return c.rollout(ctx, render.OrchestratorLayer(c.input))
}

func (c *converge) repoCache(ctx context.Context) error {
	if !render.NeedsRepoCache(c.input) {
		return nil
	}
	return c.rollout(ctx, render.RepoCacheLayer(c.input))
}

func (c *converge) instanceHarness(ctx context.Context) error {
	if !render.NeedsInstanceHarness(c.input) {
		return nil
	}
	return c.rollout(ctx, render.InstanceHarnessLayer(c.input))
}
