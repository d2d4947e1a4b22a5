package provision

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/quota"
	"jr2.dev/jr2/placement/v1alpha1"
)

// write makes the token's Secret, then the Repos that are missing, then the Sandbox, which owns the Secret then.
func (p *provision) write(ctx context.Context) error {
	if err := p.roomFor(ctx, p.writeToken); err != nil {
		return err
	}
	for _, repo := range p.request.Repos {
		if err := p.roomFor(ctx, func(ctx context.Context) error { return p.client.ensureRepo(ctx, repo) }); err != nil {
			return err
		}
	}
	if err := p.roomFor(ctx, p.writeSandbox); err != nil {
		return err
	}
	return p.ownToken(ctx)
}

func (p *provision) writeToken(ctx context.Context) error {
	if !p.request.Token.Present() {
		return nil
	}
	labels := maps.Clone(p.request.Sandbox.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[names.LabelToken] = p.about.Sandbox
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: p.about.Sandbox + names.TokenSuffix, Namespace: p.client.namespace, Labels: labels},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{names.SandboxTokenName: []byte(p.request.Token.Reveal())},
	}
	secrets := p.client.typed.CoreV1().Secrets(p.client.namespace)
	err := persist(ctx, func() error {
		made, err := secrets.Create(ctx, secret, metav1.CreateOptions{})
		if err == nil {
			p.secret, p.tokenMade = made.UID, true
		}
		return err
	})
	if !apierrors.IsAlreadyExists(err) {
		return wrap(err, "write", "Secret", secret.Name)
	}
	there, err := secrets.Get(ctx, secret.Name, metav1.GetOptions{})
	if err != nil {
		return wrap(err, "read", "Secret", secret.Name)
	}
	if there.Labels[names.LabelToken] != p.about.Sandbox || string(there.Data[names.SandboxTokenName]) != p.request.Token.Reveal() {
		return &ExistsError{"Secret", p.client.namespace, secret.Name}
	}
	p.secret = there.UID
	return nil
}

// ensureRepo makes a Repo that is not there.
func (c *client) ensureRepo(ctx context.Context, repo *v1alpha1.Repo) error {
	repo = repo.DeepCopy()
	if repo.Annotations == nil {
		repo.Annotations = map[string]string{}
	}
	repo.Annotations[names.AnnotationLastAttached] = now()
	err := persist(ctx, func() error {
		_, err := c.repos.Create(ctx, repo, metav1.CreateOptions{})
		return err
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return wrap(err, "write", "Repo", repo.Name)
}

// writeSandbox creates the Sandbox, or takes one that an earlier try of the same request made.
func (p *provision) writeSandbox(ctx context.Context) error {
	box := p.request.Sandbox.DeepCopy()
	box.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "Sandbox"}
	if box.Annotations == nil {
		box.Annotations = map[string]string{}
	}
	p.written = now()
	box.Annotations[v1alpha1.AnnotationKeepalive] = p.written
	tries := 0
	err := persist(ctx, func() error {
		tries++
		made, err := p.client.sandboxes.Create(ctx, box, metav1.CreateOptions{})
		if err == nil {
			p.Sandbox = made
		}
		return err
	})
	if !apierrors.IsAlreadyExists(err) {
		p.unsure = err != nil && (ctx.Err() != nil || away(err))
		return wrap(err, "write", "Sandbox", box.Name)
	}
	there, err := p.client.sandboxes.Get(ctx, box.Name, metav1.GetOptions{})
	if err != nil {
		return wrap(err, "read", "Sandbox", box.Name)
	}
	if !p.ours(there, tries > 1) {
		return &ExistsError{"Sandbox", p.client.namespace, box.Name}
	}
	p.Sandbox, p.Adopted = there, tries == 1
	return nil
}

// ours says that a Sandbox of the name is the one that was asked for: by its run, Workflow and path or, when the answer to its create was
// lost, by the lease that was written with it.
func (p *provision) ours(there *v1alpha1.Sandbox, lostAnswer bool) bool {
	asked := p.request.Sandbox
	if lostAnswer && there.Annotations[v1alpha1.AnnotationKeepalive] == p.written && p.written != "" {
		return true
	}
	return asked.Labels[v1alpha1.LabelRun] != "" &&
		there.Labels[v1alpha1.LabelRun] == asked.Labels[v1alpha1.LabelRun] &&
		there.Labels[v1alpha1.LabelWorkflow] == asked.Labels[v1alpha1.LabelWorkflow] &&
		there.Annotations[v1alpha1.AnnotationChild] == asked.Annotations[v1alpha1.AnnotationChild]
}

// ownToken makes the Sandbox the owner of its token, so that both go together.
func (p *provision) ownToken(ctx context.Context) error {
	if p.secret == "" {
		return nil
	}
	name := p.about.Sandbox + names.TokenSuffix
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.secret, "ownerReferences": []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion().String(), Kind: "Sandbox", Name: p.Sandbox.Name, UID: p.Sandbox.UID,
	}}}})
	if err != nil {
		return err
	}
	err = persist(ctx, func() error {
		_, err := p.client.typed.CoreV1().Secrets(p.client.namespace).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
		return err
	})
	return wrap(err, "write the owner of", "Secret", name)
}

// roomFor tries a write until no quota refuses it: the objects of a Sandbox count too, not only its pod. It is tried again after as long as
// it has been refused, 1 s to 30 s, and as soon as a quota of the namespace changes.
func (p *provision) roomFor(ctx context.Context, write func(context.Context) error) error {
	err := write(ctx)
	if _, refused := refusedByQuota(err); !refused {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	changed := p.client.quotaChanges(watching)
	began := time.Now()
	for {
		message, refused := refusedByQuota(err)
		if !refused {
			return err
		}
		if err := p.waits.see(p, quotaWait(message, began)); err != nil {
			return err
		}
		timer := time.NewTimer(min(max(time.Since(began), time.Second), 30*time.Second))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
		err = write(ctx)
	}
}

// refusedByQuota gives the quota's own words.
func refusedByQuota(err error) (string, bool) {
	if !apierrors.IsForbidden(err) {
		return "", false
	}
	message := statusMessage(err)
	_, ok := quota.ParseRefusal(message)
	return message, ok
}

// quotaChanges says when a quota of the namespace was changed. It never does where this user may not look at them.
func (c *client) quotaChanges(ctx context.Context) <-chan struct{} {
	changed := make(chan struct{}, 1)
	tell := func(watch.Event) {
		select {
		case changed <- struct{}{}:
		default: // one is enough
		}
	}
	quotas := c.typed.CoreV1().ResourceQuotas(c.namespace)
	list := func(options metav1.ListOptions) (string, error) {
		all, err := quotas.List(ctx, options)
		if err != nil {
			return "", err
		}
		tell(watch.Event{}) // it may have changed before the list was read
		return all.ResourceVersion, nil
	}
	go listAndWatch(ctx, metav1.ListOptions{}, list, quotas.Watch, tell) //nolint:errcheck // the timer is there as well
	return changed
}

// wrap says what a failed request was about. It is nil for no error.
func wrap(err error, did, kind, name string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %s: %w", did, kind, name, err)
}
