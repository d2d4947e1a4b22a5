package jr2

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/images"
	"jr2.dev/jr2/internal/assembly"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/provision"
)

// recall reads what the last converge left: which images it delivered, and the key that tokens derive from.
func (r *workflowRun) recall(ctx context.Context) error {
	if len(r.workflow.Workspaces) == 0 {
		return nil
	}
	core := r.cluster.client.CoreV1()
	stored, err := core.ConfigMaps(r.cluster.namespace).Get(ctx, names.ImagesConfig, metav1.GetOptions{})
	if err != nil {
		return r.unread("ConfigMap", names.ImagesConfig, err)
	}
	if r.record, err = images.ParseRecord([]byte(stored.Data[names.ImagesKey])); err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", r.cluster.namespace, names.ImagesConfig, err)
	}
	secret, err := core.Secrets(r.cluster.namespace).Get(ctx, names.InstanceSecret, metav1.GetOptions{})
	if err != nil {
		return r.unread("Secret", names.InstanceSecret, err)
	}
	if r.key = config.NewSecret(string(secret.Data[names.KeySigningKey])); !r.key.Present() {
		return r.notConverged("Secret " + names.InstanceSecret + " holds no " + names.KeySigningKey)
	}
	return nil
}

func (r *workflowRun) unread(kind, name string, err error) error {
	if apierrors.IsNotFound(err) {
		return r.notConverged("it has no " + kind + " " + name)
	}
	return fmt.Errorf("read %s %s/%s: %w", kind, r.cluster.namespace, name, err)
}

// compare warns when the folder says something else than what was converged: the Orchestrator would run that.
func (r *workflowRun) compare(ctx context.Context) error {
	r.digests = map[string]string{}
	for _, found := range r.inst.ImageContexts() {
		digest, err := images.ContextDigest(ctx, found.Dir)
		if err != nil {
			return err
		}
		r.digests[found.Dir] = digest
	}
	here, err := assembly.Build(r.inst, r.contextDigests())
	if err != nil {
		return err
	}
	there, found, err := r.publisher().Current(ctx)
	switch {
	case apierrors.IsForbidden(err) || errors.Is(err, assembly.ErrInvalid): // it is a hint
	case err != nil:
		return fmt.Errorf("assembly: %w", err)
	case found && there != here.Hash:
		r.tell(Noted{Message: fmt.Sprintf("this Instance (assembly %s) is not the one that was converged (%s) — `jr2 up` brings it", here.Hash, there)})
	}
	return nil
}

// compose makes the Sandbox of each Workspace.
func (r *workflowRun) compose(context.Context) error {
	if len(r.workflow.Workspaces) == 0 {
		r.tell(Noted{Message: fmt.Sprintf("workflow %q makes no Workspace, so nothing is provisioned", r.workflow.Name)})
		return nil
	}
	bundle, err := r.inst.CABundle()
	if err != nil {
		return err
	}
	for i, workspace := range r.workflow.Workspaces {
		refs, err := r.imagesOf(workspace)
		if err != nil {
			return err
		}
		request, err := provision.Compose(provision.Composition{
			Instance: r.inst, Namespace: r.cluster.namespace, Workflow: r.workflow.Name, Workspace: workspace, Run: r.result.ID,
			Name: provision.SandboxName(r.result.ID, workspace.Path, i), Images: refs, Repos: r.opts.Repos, SigningKey: r.key, CABundle: bundle,
		})
		if err != nil {
			return err
		}
		r.requests = append(r.requests, request)
	}
	return nil
}

// imagesOf are the refs of a Workspace as the last converge delivered them.
func (r *workflowRun) imagesOf(workspace config.Workspace) (provision.Images, error) {
	refs := provision.Images{Harness: r.record.Harness, Custodian: r.record.Custodian}
	var err error
	if refs.Sandbox, refs.Built, refs.User, err = r.imageOf(workspace.Image, true); err != nil {
		return refs, err
	}
	refs.UserContainer, _, _, err = r.imageOf(workspace.User, false)
	return refs, err
}

// imageOf finds the ref of an image: a folder's by its content, images/default where a Harness names none, any other as it stands.
func (r *workflowRun) imageOf(image string, harness bool) (ref string, built bool, user string, err error) {
	if name, off := r.opts.Bundle.Refused(image); off {
		_, err := r.opts.Bundle.Ref(name)
		return "", false, "", err
	}
	key := ""
	dir, folder := config.ImageFolder(image)
	switch {
	case folder:
		key = r.digests[dir]
	case image == "" && harness && r.inst.DefaultImage != "":
		key = images.DefaultKey
	default:
		return image, false, "", nil
	}
	ref = r.record.Sandbox[key]
	if ref == "" {
		return "", true, "", r.notConverged(fmt.Sprintf("no image of %s, as it is now, was delivered", orText(dir, r.inst.DefaultImage)))
	}
	return ref, true, r.record.SandboxUser[key], nil
}

func orText(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// tellProvision turns what package provision tells into the events of a run. It is called for several Workspaces at once.
func (r *workflowRun) tellProvision(e provision.Event) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	about := provision.AboutOf(e)
	switch e := e.(type) {
	case provision.Entered:
		r.tell(WorkspaceEntered{Child: about.Child, Sandbox: about.Sandbox, State: string(e.State), Node: e.Node})
	case provision.Waiting:
		r.tell(PlacingWaiting{Child: about.Child, Sandbox: about.Sandbox, On: e.On, For: e.What(), Message: e.Message, Since: e.Since.UTC(),
			Never: e.Outlook == provision.Never, Changed: e.Changed})
	case provision.WaitEnded:
		r.tell(PlacingEnded{Child: about.Child, Sandbox: about.Sandbox, Seconds: int(e.Waited.Seconds()), Placed: e.Placed})
	case provision.Held:
		r.tell(WorkspaceHeld{Child: about.Child, Sandbox: about.Sandbox, Reason: e.Reason, Message: e.Message})
	case provision.Removed:
		r.tell(SandboxRemoved{Child: about.Child, Sandbox: about.Sandbox})
	case provision.Unheeded:
		r.tell(Noted{Message: fmt.Sprintf("nobody has looked at Sandbox %s for %s — does the operator run? (kubectl -n %s get deployment %s)",
			about.Sandbox, e.For, names.OperatorNamespace, names.OperatorDeployment)})
	case provision.LeaseUnrenewed:
		r.tell(Noted{Message: "the lease of " + about.Sandbox + " could not be renewed: " + e.Err.Error()})
	}
}
