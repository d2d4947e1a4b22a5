package jr2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/render"
	"jr2.dev/jr2/preflight"
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
	outcome, err := apply.Apply(ctx, c.cluster.config, set, c.applying(opts))
	c.result.Objects = append(c.result.Objects, outcome.Objects...)
	c.result.Changed += outcome.Changed()
	return outcome, err
}

// applying adds what the caller wants of every apply.
func (c *converge) applying(opts apply.Options) apply.Options {
	opts.Retry = c.retry
	opts.Events, opts.Conflicts = c.tellApply, apply.Conflicts{TakeFrom: c.opts.TakeFrom}
	return opts
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
	set, opts, err := c.prioritySet()
	if err != nil || len(set.Objects) == 0 {
		return err
	}
	return c.apply(ctx, layerPriority, set, opts)
}

// tokens makes the Instance's tokens once and keeps them: live Sandboxes hold tokens signed with the kept key.
func (c *converge) tokens(ctx context.Context) error {
	minted, err := apply.EnsureSecret(ctx, c.cluster.client, c.cluster.namespace, names.InstanceSecret, render.InstanceSecretKeys(),
		apply.SecretOptions{Labels: c.labels(), Adopt: c.opts.Adopt})
	if err != nil {
		return err
	}
	c.result.Changed += min(1, len(minted))
	c.noteSigningKey(minted, "a new one was made: live Sandboxes hold tokens of the old one and are refused from now on")
	secret, err := c.cluster.client.CoreV1().Secrets(c.cluster.namespace).Get(ctx, names.InstanceSecret, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read Secret %s/%s: %w", c.cluster.namespace, names.InstanceSecret, err)
	}
	c.useTokens(secret)
	return nil
}

// useTokens takes what the cluster keeps of the Instance's tokens.
func (c *converge) useTokens(secret *corev1.Secret) {
	c.input.SigningKey = config.NewSecret(string(secret.Data[names.KeySigningKey]))
	c.keepGitTokens(secret)
}

// noteSigningKey warns that the key is made for an Instance that had one.
func (c *converge) noteSigningKey(minted []string, then string) {
	if c.ran && slices.Contains(minted, names.KeySigningKey) {
		c.note(preflight.Finding{
			Severity: preflight.Warn, Code: preflight.CodeSigningKey, Object: "Secret " + c.cluster.namespace + "/" + names.InstanceSecret,
			Message: fmt.Sprintf("the signing key of this Instance was gone from Secret %s and %s", names.InstanceSecret, then),
		})
	}
}

// keepGitTokens lets the cluster's copy of a git token stand where the environment of this converge has none: a converge from another shell
// must not take the token away from the Instance. It is told, and so is a token that nobody has.
func (c *converge) keepGitTokens(secret *corev1.Secret) {
	kept := map[string]string{}
	for _, credential := range c.inst.Git.Credentials {
		name := credential.Token
		if name == "" || c.env[name] != "" && !isPlaceholder(c.env[name]) || kept[name] != "" {
			continue
		}
		finding := preflight.Finding{Severity: preflight.Note, Code: preflight.CodeGitToken, Object: "Instance " + c.inst.Name}
		if value := string(secret.Data[name]); value != "" && !isPlaceholder(value) {
			kept[name] = value
			finding.Message = fmt.Sprintf("git token %s is not set here — the one in Secret %s stays", name, names.InstanceSecret)
		} else {
			finding.Severity = preflight.Warn
			finding.Message = fmt.Sprintf("git token %s is not set, so repositories that match %q are cloned without one — set it in the shell or in .env", name, credential.Match)
			finding.Fix = "echo '" + name + "=...' >> .env"
		}
		c.note(finding)
	}
	environ := c.input.Env
	c.input.Env = func(name string) (string, bool) {
		if value, ok := kept[name]; ok {
			return value, true
		}
		value, ok := environ(name)
		if slices.ContainsFunc(c.inst.Git.Credentials, func(g config.GitCredential) bool { return g.Token == name }) && isPlaceholder(value) {
			return "", false
		}
		return value, ok
	}
}

// isPlaceholder says that a value only stands for one: it was copied from a fix or a manual as it stood. No token is so short or has such brackets.
func isPlaceholder(value string) bool {
	return value == "..." || strings.HasPrefix(value, "<") && strings.HasSuffix(value, ">")
}

// objects applies everything that the Instance needs in its namespace, and removes what it no longer needs.
func (c *converge) objects(ctx context.Context) error {
	set, opts, err := c.instanceSet()
	if err != nil {
		return err
	}
	return c.apply(ctx, layerInstance, set, opts)
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
