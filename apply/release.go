package apply

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// A release is one content of a set, for which each of its hooks runs once. The inventory keeps the last one, so that a run that was cut
// off is continued and not begun again.
type release struct {
	Number int    `json:"number"`
	Salt   string `json:"salt"`
	Sum    string `json:"sum"`
	// Done lists the hooks that succeeded, as hookRun.String has them, sorted.
	Done []string `json:"done,omitempty"`
}

// openRelease decides whether the set's content is that of the last release, or a new one. A set without hooks has none.
func (r *run) openRelease() error {
	r.inv.release = r.inv.release.clone()
	if !slices.ContainsFunc(r.orders, func(o order) bool { return o.pos.isHook() }) {
		r.inv.release = nil
		return nil
	}
	next := release{Number: 1, Salt: rand.Text()}
	if last := r.inv.release; last != nil {
		sum, err := r.sum(last.Salt)
		if err != nil {
			return err
		}
		if sum == last.Sum && (r.opts.Hooks != HooksAlways || r.unfinished(last)) {
			return nil
		}
		next.Number = last.Number + 1
	}
	var err error
	if next.Sum, err = r.sum(next.Salt); err != nil {
		return err
	}
	r.inv.release = &next
	return nil
}

// unfinished says that a hook of the release is still to run. Those of SyncFail may never.
func (r *run) unfinished(rel *release) bool {
	for _, o := range r.orders {
		for _, p := range o.pos.phases {
			if p != SyncFail && !rel.done(hookRun{o.ref, p}) {
				return true
			}
		}
	}
	return false
}

// sumWork is how often the sum of a set with a Secret is hashed: some hundredths of a second. The inventory can be read by people who
// can't read Secrets, and a plain hash of a short value gives it away to one who guesses.
const sumWork = 100_000

// sum is the hash of all that is asked for.
func (r *run) sum(salt string) (string, error) {
	var b strings.Builder
	work := 1
	for i, o := range r.orders {
		b.WriteString(o.ref.String() + " " + r.asked[i] + "\n")
		if o.isSecret() {
			work = r.opts.sumWork
		}
	}
	key, err := pbkdf2.Key(sha256.New, b.String(), []byte(salt), work, 16)
	return hex.EncodeToString(key), err
}

func (rel *release) clone() *release {
	if rel == nil {
		return nil
	}
	c := *rel
	c.Done = slices.Clone(rel.Done)
	return &c
}

// mark is what a hook carries that is made for this release. The number alone would come again: after a release without hooks, or when the
// inventory was lost.
func (rel *release) mark(h hookRun) string {
	return fmt.Sprintf("%d %s %s", rel.Number, h.phase, rel.Salt[:min(8, len(rel.Salt))])
}

func (rel *release) done(h hookRun) bool {
	return rel != nil && slices.Contains(rel.Done, h.String())
}

func (rel *release) finish(h hookRun) {
	if !rel.done(h) {
		rel.Done = append(rel.Done, h.String())
		slices.Sort(rel.Done)
	}
}

// without is the release with the hook's runs to do again.
func (rel *release) without(ref Ref) *release {
	c := rel.clone()
	c.Done = slices.DeleteFunc(c.Done, func(done string) bool { return strings.HasSuffix(done, " "+ref.String()) })
	return c
}
