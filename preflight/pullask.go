package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"

	"golang.org/x/sync/errgroup"

	"jr2.dev/jr2/placement"
)

// A pull is one image of one workload that a kubelet would pull, with what it has to do that.
type pull struct {
	w       *workload
	used    imageUse
	secrets []*pullSecret
	// unread says why nobody knows all Secrets that the pods name.
	unread string
	with   []credential
	*pullQuestion
}

// A pullQuestion is an image and the credentials to ask with, which several workloads may have in common.
type pullQuestion struct {
	answer ImageFacts
	err    error
	// own is what the caller's own credentials get, asked where the others get nothing.
	own      ImageFacts
	ownAsked bool
}

// pullsOf asks the registries about each image that the pods of the set will pull.
func (l *setLook) pullsOf(ctx context.Context) []*pull {
	var pulls []*pull
	names := map[*workload]*pullNames{}
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, w := range l.workloads {
		uses := l.pulled(w)
		if len(uses) == 0 {
			continue
		}
		of := &pullNames{}
		names[w] = of
		group.Go(func() error {
			*of = l.pullNames(ctx, w)
			return nil
		})
		for _, used := range uses {
			pulls = append(pulls, &pull{w: w, used: used})
		}
	}
	group.Wait() //nolint:errcheck // what went wrong is in the names
	var keys []secretKey
	for _, p := range pulls {
		for _, name := range names[p.w].names {
			keys = append(keys, secretKey{p.w.namespace, name})
		}
	}
	secrets := l.readPullSecrets(ctx, keys)
	for _, p := range pulls {
		p.unread = names[p.w].unread
		for _, name := range names[p.w].names {
			p.secrets = append(p.secrets, secrets[secretKey{p.w.namespace, name}])
		}
	}
	l.ask(ctx, pulls)
	return pulls
}

// pulled are the images that kubelets will pull for a workload, as the API server let its pod in, where it was asked.
func (l *setLook) pulled(w *workload) []imageUse {
	if w.replicas == 0 {
		return nil
	}
	var all []imageUse
	for _, used := range byImage(imagesOf(w.runs())) {
		switch {
		case readable(used.image) != nil, placeholderName(used.image) != "": // which is told as such
		case used.policy == corev1.PullNever, slices.Contains(l.facts.Pulled, used.image):
		case used.policy == corev1.PullIfNotPresent && l.everywhere(w, used.image):
		default:
			all = append(all, used)
		}
	}
	return all
}

// everywhere says whether all nodes on which the pod can land list the image as theirs. A node lists fifty at most, so one that does not may
// have it too.
func (l *setLook) everywhere(w *workload, image string) bool {
	if len(l.facts.Nodes) == 0 {
		return false
	}
	answers, want, some := l.explain(w).Nodes, nodeName(image), false
	for i := range l.facts.Nodes {
		if answers[i].Answer == placement.Never {
			continue
		}
		if some = true; !lists(&l.facts.Nodes[i], want) {
			return false
		}
	}
	return some
}

func lists(node *corev1.Node, want string) bool {
	for _, image := range node.Status.Images {
		for _, name := range image.Names {
			if name == want {
				return true
			}
		}
	}
	return false
}

// ask asks each different question once, several at a time.
func (l *setLook) ask(ctx context.Context, pulls []*pull) {
	questions := map[string]*pullQuestion{}
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, p := range pulls {
		var err error
		if p.with, err = credentialsFor(ctx, p.secrets, p.used.image); err != nil {
			p.pullQuestion = &pullQuestion{err: err}
			continue
		}
		key := p.key()
		question := questions[key]
		if question == nil {
			question = &pullQuestion{}
			questions[key] = question
			group.Go(func() error {
				question.ask(ctx, l.facts.Images, p.used.image, p.with)
				return nil
			})
		}
		p.pullQuestion = question
	}
	group.Wait() //nolint:errcheck // each answer carries its own
}

// key is equal for equal questions. It holds passwords and is never said.
func (p *pull) key() string {
	var key strings.Builder
	fmt.Fprintf(&key, "%q", p.used.image)
	for _, c := range p.with {
		fmt.Fprintf(&key, " %q %q", c.user, c.password)
	}
	return key.String()
}

// ask tries the credentials in turn, as a kubelet does: one that has some does not ask without. Where none helps, the caller's own say more about
// the image.
func (q *pullQuestion) ask(ctx context.Context, images imageAsker, image string, with []credential) {
	as := []authn.Authenticator{authn.Anonymous}
	if len(with) > 0 {
		as = nil
	}
	for _, c := range with {
		as = append(as, c.authenticator())
	}
	for i, one := range as {
		answer, err := images(ctx, image, one)
		if err != nil {
			q.err = err
			return
		}
		if i == 0 || answer.found() || answer.Missing { // found says most, missing more than denied
			q.answer = answer
		}
		if answer.found() {
			return
		}
	}
	if own, err := images(ctx, image, nil); err == nil {
		q.own, q.ownAsked = own, true
	}
}

// readable says whether the pods' credentials, or none, are enough.
func (q *pullQuestion) readable() bool { return q.err == nil && q.answer.found() }

// learned is the most that is known about the image, by whatever credentials.
func (q *pullQuestion) learned() imageAnswer {
	if q.ownAsked && !q.readable() {
		return imageAnswer{q.own, q.err}
	}
	return imageAnswer{q.answer, q.err}
}

// found says whether the registry showed the image.
func (f ImageFacts) found() bool { return !f.Missing && f.Denied == nil }
