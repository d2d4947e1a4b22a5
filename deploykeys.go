package jr2

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/sshkey"
	"jr2.dev/jr2/preflight"
)

// A chosenKey is a missing deploy key and what was chosen for it.
type chosenKey struct {
	DeployKeyRequest
	pair *sshkey.Pair // nil for one that is to be generated
}

// chooseDeployKeys asks, for each Secret of a deploy key that is missing, where the key is to come from (source: reference, 7.10). It comes before the
// first write, so that a declined question changes nothing, and a key that was given is read and checked here.
func (c *converge) chooseDeployKeys(ctx context.Context) error {
	requests, err := c.missingDeployKeys(ctx)
	if err != nil || len(requests) == 0 {
		return err
	}
	if c.opts.DeployKey == nil && !c.opts.Yes {
		return &DeployKeyError{Requests: requests, Homeless: c.homeless, Err: ErrNobodyAsked}
	}
	for _, request := range requests {
		c.tell(DeployKeyNeeded(request))
		source := DeployKeySource{Generate: true}
		if c.opts.DeployKey != nil {
			if source, err = c.opts.DeployKey(ctx, request); err != nil {
				return err
			}
		}
		pair, err := source.read(ctx)
		if err != nil {
			return &DeployKeyError{Requests: []DeployKeyRequest{request}, Homeless: c.homeless, Err: err}
		}
		c.chosen = append(c.chosen, chosenKey{request, pair})
	}
	return nil
}

// missingDeployKeys are the keys that are not in the namespace. One that may not be looked at is not among them: it may be there.
func (c *converge) missingDeployKeys(ctx context.Context) ([]DeployKeyRequest, error) {
	keys, err := c.deployKeys(ctx)
	if err != nil {
		return nil, err
	}
	var missing []DeployKeyRequest
	for _, key := range keys {
		if !key.There && key.Unseen == nil {
			missing = append(missing, DeployKeyRequest{Namespace: c.cluster.namespace, Secret: key.Secret, Repos: key.URLs()})
		}
	}
	return missing, nil
}

// deployKeys looks once, for who asks what rights are needed and for who asks what is missing.
func (c *converge) deployKeys(ctx context.Context) ([]preflight.DeployKey, error) {
	if c.keys == nil {
		keys, err := preflight.DeployKeys(ctx, c.cluster.client.CoreV1().Secrets(c.cluster.namespace), c.inst, c.cluster.namespace)
		if err != nil {
			return nil, err
		}
		c.keys = &keys
	}
	return *c.keys, nil
}

// makeDeployKeys writes what was chosen. A key is generated only here: one that nobody stored was told to nobody.
func (c *converge) makeDeployKeys(ctx context.Context) error {
	for _, chosen := range c.chosen {
		generated := chosen.pair == nil
		if generated {
			pair, err := sshkey.Generate("jr2/" + chosen.Namespace + "/" + chosen.Secret)
			if err != nil {
				return err
			}
			chosen.pair = pair
		}
		kept, err := c.keepDeployKey(ctx, chosen)
		if err != nil {
			return fmt.Errorf("keep the deploy key in Secret %s: %w", chosen.Secret, err)
		}
		if !kept {
			c.tell(Noted{Message: fmt.Sprintf("Secret %s came while this converge was asked for a deploy key — it stays as it is, and no other key was made", chosen.Secret)})
			continue
		}
		made := DeployKeyMade{
			Namespace: chosen.Namespace, Secret: chosen.Secret, Repos: chosen.Repos, Generated: generated, Fingerprint: chosen.pair.Fingerprint,
		}
		if generated {
			made.PublicKey = chosen.pair.Public
		}
		c.result.DeployKeys = append(c.result.DeployKeys, made)
		c.result.Changed++
		c.tell(made)
	}
	return nil
}

// keepDeployKey creates the Secret, which replaces nothing. What somebody made meanwhile stays, whatever is in it; kept says that the key that is there is
// this one, also when the answer to its create was lost.
func (c *converge) keepDeployKey(ctx context.Context, chosen chosenKey) (kept bool, err error) {
	secrets := c.cluster.client.CoreV1().Secrets(chosen.Namespace)
	private := []byte(chosen.pair.Private.Reveal())
	for range deployKeyAttempts {
		_, err = secrets.Create(ctx, c.deployKeySecret(chosen.Secret, private, []byte(chosen.pair.Public+"\n")), metav1.CreateOptions{FieldManager: authorityManager})
		if err == nil {
			return true, nil
		}
		there, unread := secretIfAny(ctx, secrets, chosen.Secret)
		switch {
		case unread != nil:
			return false, errors.Join(err, unread)
		case there != nil:
			return string(there.Data[names.DeployKeyPrivate]) == string(private), nil
		case !apierrors.IsAlreadyExists(err):
			return false, err
		}
	}
	return false, err
}

func (c *converge) deployKeySecret(name string, private, public []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: c.labels()}, Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{names.DeployKeyPrivate: private, names.DeployKeyPublic: public},
	}
}

// deployKeyAttempts bounds how often a Secret that was there for a create and gone for a look is tried again.
const deployKeyAttempts = 8

// remindOfDeployKeys tells, as the last words of a converge, however it ends, which public keys a person has to bring to the hosts of the repositories
// (source: reference, 7.10). A later converge has nothing to remind of.
func (c *converge) remindOfDeployKeys() {
	for _, key := range c.result.DeployKeys {
		if key.Generated {
			c.tell(DeployKeyReminder{Namespace: key.Namespace, Secret: key.Secret, Repos: key.Repos, PublicKey: key.PublicKey})
		}
	}
}

// deployKeyRights adds what a deploy key needs: a look, and a create where it is missing. Where the look is not allowed a converge makes none and
// says so, which refuses nobody; roles that do allow it.
func (c *converge) deployKeyRights(ctx context.Context, r *rights) {
	keys, err := c.deployKeys(ctx)
	if err != nil {
		return // the look itself comes to the same error, and tells it
	}
	for _, key := range keys {
		what := "the deploy key of " + strings.Join(key.URLs(), ", ")
		if key.Unseen == nil || c.unseen {
			r.need(what, "", "secrets", c.cluster.namespace, key.Secret, "get")
		}
		if !key.There && (key.Unseen == nil || c.unseen) {
			r.need(what, "", "secrets", c.cluster.namespace, key.Secret, "create")
		}
	}
}

// chooseDeployKeys says which would be made.
func (p *planning) chooseDeployKeys(ctx context.Context) error {
	requests, err := p.missingDeployKeys(ctx)
	for _, request := range requests {
		p.plan.DeployKeys = append(p.plan.DeployKeys, PlannedDeployKey{
			Secret: request.Secret, Repos: request.Repos, Generate: p.opts.Yes && p.opts.DeployKey == nil,
		})
	}
	return err
}

// movedDeployKeys names the deploy keys when two plans make other ones. Where they come from is the answer to a question, and no part of it.
func movedDeployKeys(was, now []PlannedDeployKey) []string {
	secrets := func(keys []PlannedDeployKey) string {
		var all []string
		for _, key := range keys {
			all = append(all, key.Secret)
		}
		return strings.Join(all, " ")
	}
	if secrets(was) == secrets(now) {
		return nil
	}
	return []string{"the deploy keys"}
}

// write tells which key is made, for a person.
func (k PlannedDeployKey) write(b *strings.Builder) {
	how := "make Secret %s from the source that is chosen then (--yes: an ed25519 key pair), for %s"
	if k.Generate {
		how = "generate an ed25519 key pair in Secret %s, for %s"
	}
	say(b, "deploy key: "+how, k.Secret, strings.Join(k.Repos, ", "))
}
