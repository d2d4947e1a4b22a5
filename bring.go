package jr2

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/preflight"
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
	opts.Events, opts.Conflicts = c.tellApply, apply.Conflicts{TakeFrom: c.opts.TakeFrom}
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
		c.tell(Noted{Message: e.Ref.String() + ": " + e.Text})
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

// tokens makes the Instance's tokens once and keeps them: live Sandboxes hold tokens signed with the kept key.
func (c *converge) tokens(ctx context.Context) error {
	minted, err := apply.EnsureSecret(ctx, c.cluster.client, c.cluster.namespace, names.InstanceSecret, c.labels(), render.InstanceSecretKeys())
	if err != nil {
		return err
	}
	c.result.Changed += min(1, len(minted))
	if c.ran && slices.Contains(minted, names.KeySigningKey) {
		c.note(preflight.Finding{
			Severity: preflight.Warn, Code: preflight.CodeSigningKey, Object: "Secret " + c.cluster.namespace + "/" + names.InstanceSecret,
			Message: fmt.Sprintf("the signing key of this Instance was gone from Secret %s and a new one was made: live Sandboxes hold tokens of the old one and are refused from now on",
				names.InstanceSecret),
		})
	}
	secret, err := c.cluster.client.CoreV1().Secrets(c.cluster.namespace).Get(ctx, names.InstanceSecret, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read Secret %s/%s: %w", c.cluster.namespace, names.InstanceSecret, err)
	}
	c.input.SigningKey = config.NewSecret(string(secret.Data[names.KeySigningKey]))
	c.keepGitTokens(secret)
	return nil
}

// keepGitTokens lets the cluster's copy of a git token stand where the environment of this converge has none: a converge from another shell
// must not take the token away from the Instance. It is told, and so is a token that nobody has.
func (c *converge) keepGitTokens(secret *corev1.Secret) {
	kept := map[string]string{}
	for _, credential := range c.inst.Git.Credentials {
		name := credential.Token
		if name == "" || c.env[name] != "" || kept[name] != "" {
			continue
		}
		finding := preflight.Finding{Severity: preflight.Note, Code: preflight.CodeGitToken, Object: "Instance " + c.inst.Name}
		if value := secret.Data[name]; len(value) > 0 {
			kept[name] = string(value)
			finding.Message = fmt.Sprintf("git token %s is not set here — the one in Secret %s stays", name, names.InstanceSecret)
		} else {
			finding.Severity = preflight.Warn
			finding.Message = fmt.Sprintf("git token %s is not set, so repositories that match %q are cloned without one — set it in the shell or in .env", name, credential.Match)
			finding.Fix = "export " + name + "=..."
		}
		c.note(finding)
	}
	environ := c.input.Env
	c.input.Env = func(name string) (string, bool) {
		if value, ok := kept[name]; ok {
			return value, true
		}
		return environ(name)
	}
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
