package jr2

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/preflight"
)

// reachTimeout bounds the first request: a cluster that does not answer is told soon.
const reachTimeout = 10 * time.Second

func (c *converge) connect(context.Context) error { return c.cluster.dial() }

func (c *converge) floor(ctx context.Context) error {
	reach, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	server, err := c.cluster.version(reach)
	if err != nil {
		return c.cluster.unreached(err)
	}
	c.server, c.result.Kubernetes = server.GitVersion, server.GitVersion
	findings, err := preflight.Floor(c.cluster.context, server)
	if err != nil {
		return err
	}
	if err := preflight.Refused(findings); err != nil {
		return err
	}
	c.tell(KubernetesFound{Version: server.GitVersion, Floor: preflight.KubernetesFloor})
	return nil
}

// home finds out whose the namespace is.
func (c *converge) home(ctx context.Context) error {
	namespace, err := c.cluster.readNamespace(ctx)
	if err != nil {
		return err
	}
	home, findings := preflight.Ownership(c.cluster.context, c.cluster.namespace, c.inst.Name, namespace)
	c.found, c.homeless, c.seen = home, namespace == nil, namespace
	return preflight.Refused(findings)
}

// contact asks, when the namespace is nobody's, whether this Instance may have it. Yes agrees to one that is made and to one in which nothing is; to one
// with something of others in it AdoptNamespace does, or somebody who was asked and heard what it holds.
func (c *converge) contact(ctx context.Context) error {
	if !c.found.FirstContact {
		return nil
	}
	first, agreed := FirstContact{Instance: c.inst.Name, Context: c.cluster.context, What: c.found.What}, c.opts.Yes
	if c.found.There {
		holds, err := c.othersInHome(ctx)
		if err != nil {
			return err
		}
		first.Holds = holds
		agreed = c.opts.AdoptNamespace || c.opts.Yes && holds.None()
		if c.opts.AdoptNamespace && !holds.None() {
			c.note(c.occupied(holds))
		}
	}
	if agreed {
		return nil
	}
	c.asked = true
	if c.opts.Confirm == nil {
		if !first.Holds.None() {
			return &OccupiedError{FirstContact: first}
		}
		return &UnansweredError{FirstContact: first}
	}
	agreed, err := c.opts.Confirm(ctx, first)
	if err != nil {
		return err
	}
	if !agreed {
		return ErrDeclined
	}
	return nil
}

// Accepts says whether an answer to FirstContact.Question agrees: "y" or "yes" in any case; everything else declines.
func Accepts(answer string) bool {
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	}
	return false
}

func (c *converge) podLevelResources(ctx context.Context) error {
	return c.podLevelResourcesIn(ctx, c.cluster.namespace)
}

// podLevelResourcesIn tells a dry run that failed as a note: it proves nothing (source: reference, 3.7).
func (c *converge) podLevelResourcesIn(ctx context.Context, namespace string) error {
	findings, err := c.probePodLevelResources(ctx, namespace)
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		c.note(preflight.Finding{
			Severity: preflight.Note, Code: preflight.CodePodLevelResources, Object: "cluster " + c.cluster.context,
			Message: "pod-level resources could not be probed, so a Workspace's Size may not hold: " + err.Error(),
		})
	}
	return preflight.Refused(findings)
}

// probePodLevelResources tries again for some seconds where the failure ends by itself, such as a service account that a new namespace
// does not have yet. A quota that refuses the probe may do so for ever.
func (c *converge) probePodLevelResources(ctx context.Context, namespace string) (findings []preflight.Finding, err error) {
	pods := c.cluster.client.CoreV1().Pods(namespace)
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Steps: 9}
	waited := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		findings, err = c.podFeatures(ctx, pods)
		class := apply.Classify(err)
		return !class.Retryable() || class == apply.ClassQuotaWait, nil
	})
	if ctx.Err() != nil {
		return nil, waited
	}
	return findings, err
}

// unreadBundle takes the place of a CA bundle that a check could not read, so that the other looks have objects to look at.
const unreadBundle = "could not be read"

// secrets looks at everything that the configuration names beside itself: Secrets and ConfigMaps of the namespace, the CA bundle, held values. A
// check hears of all that refuses, a converge ends with it.
func (c *converge) secrets(ctx context.Context) error {
	bundle, bundleErr := c.inst.CABundle()
	c.input.CABundle, c.input.Env = bundle, c.environ
	if bundleErr != nil {
		if !c.whole {
			return bundleErr
		}
		c.input.CABundle = []byte(unreadBundle)
	}
	findings, err := preflight.NamedSecrets(ctx, c.cluster.client.CoreV1().Secrets(c.cluster.namespace), c.inst, c.cluster.namespace)
	if err == nil {
		var held []preflight.Finding
		held, err = c.heldFindings(ctx)
		findings = append(findings, held...)
	}
	if c.whole {
		about := "Instance " + c.inst.Name
		findings = slices.Concat(findingsOf(bundleErr, about), findings, findingsOf(err, about))
		err = nil
	}
	refused := preflight.Refused(findings)
	if !c.whole && (refused != nil || err != nil) {
		return cmp.Or(refused, err)
	}
	for _, finding := range append(findings, literalSecrets(c.inst)...) {
		asked := finding.Code == preflight.CodeDeployKeyMissing && !c.whole // of a key that this converge makes, or a plan tells
		if finding.Severity != preflight.Refuse && !asked {
			c.note(finding)
		}
	}
	return refused
}

// literalSecrets warns of values that travel in the Assembly because they are written into the configuration.
func literalSecrets(inst *config.Instance) []preflight.Finding {
	var findings []preflight.Finding
	for _, path := range inst.LiteralSecrets() {
		findings = append(findings, preflight.Finding{
			Severity: preflight.Warn, Code: preflight.CodeLiteralSecret, Object: "Instance " + inst.Name,
			Message: path + " stands literally in jr2.config.ts, which travels to the cluster in a ConfigMap — read it from process.env, or name a Secret with valueFrom",
			Fix:     "move the value of " + path + " to .env and read it from process.env",
		})
	}
	return findings
}
