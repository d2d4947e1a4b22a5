package apply_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"jr2.dev/jr2/apply"
)

// A cut is what befalls a run at one of its requests.
type cut struct {
	at      int64  // from 1; 0 for none
	writes  bool   // only requests that may change something count
	arrived bool   // the server got the request, and the answer was lost
	instead func() // what others do right before the request; the run goes on. Nil for a run that is killed.
}

func (c cut) say() string {
	if c.writes {
		return fmt.Sprintf("write %d", c.at)
	}
	return fmt.Sprintf("request %d", c.at)
}

func (c cut) kills() bool { return c.at > 0 && c.instead == nil }

// cutOff is the configuration of the code under test, and says whether the cut was reached.
func (h *history) cutOff(c cut, kill func()) (*rest.Config, func() bool) {
	cfg := rest.CopyConfig(h.ours)
	var count atomic.Int64
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if c.writes && r.Method == http.MethodGet && count.Load() < c.at {
				return next.RoundTrip(r)
			}
			n := count.Add(1)
			if n == c.at && c.instead != nil {
				c.instead()
			}
			if !c.kills() || n < c.at {
				return next.RoundTrip(r)
			}
			if n == c.at && c.arrived {
				if response, err := next.RoundTrip(r); err == nil {
					_ = response.Body.Close()
				}
			}
			kill()
			return nil, errKilled
		})
	})
	return cfg, func() bool { return c.at > 0 && count.Load() >= c.at }
}

var errKilled = errors.New("the process is dead")

// options are those of a deal.
func (h *history) options(d deal) apply.Options {
	opts := apply.Options{
		Prune: d.prune, Adopt: d.adopt, AllowPrune: d.allowPrune, Concurrency: 4,
		Retry: apply.Retry{Limit: 700 * time.Millisecond}, Ready: apply.WaitOptions{Timeout: 700 * time.Millisecond},
	}
	if d.adoptFrom {
		opts.AdoptFrom = []string{h.other(d.side).id()}
	}
	if d.takes {
		opts.Conflicts.TakeFrom = []string{"kubectl", "helm", "kubectl-applies", "helm-applies", apply.DefaultFieldManager}
	}
	for _, s := range d.named {
		opts.PruneData = append(opts.PruneData, h.ref(s))
	}
	return apply.CheapSums(opts)
}

// ref is that of an object of a slot.
func (h *history) ref(s slot) apply.Ref {
	return apply.RefOf(h.manifest(s, wanted{}))
}

// set reads the manifests of a deal: from the files of a folder, each its own, where the set has one.
func (h *history) set(d deal) *apply.Set {
	h.t.Helper()
	var all []runtime.Object
	files := map[string]string{}
	for _, s := range slices.SortedFunc(maps.Keys(d.manifest), compareSlots) {
		o := h.manifest(s, d.manifest[s])
		all = append(all, o)
		text, err := yaml.Marshal(o.Object)
		h.must(err)
		files[strings.NewReplacer(" ", "-", "/", "-").Replace(h.say(s))+".yaml"] = string(text)
	}
	if d.side.folder == "" || len(files) == 0 {
		set, err := apply.NewSet(d.side.name, d.side.place, all...)
		h.must(err)
		return set
	}
	h.must(os.RemoveAll(d.side.folder))
	h.must(os.Mkdir(d.side.folder, 0o700))
	for name, text := range files {
		h.must(os.WriteFile(filepath.Join(d.side.folder, name), []byte(text), 0o600))
	}
	set, err := apply.Read(d.side.name, d.side.place, apply.Directory(d.side.folder))
	h.must(err)
	return set
}

// A ran is how a run ended.
type ran struct {
	plan    *apply.Plan
	outcome *apply.Outcome
	err     error
	met     bool // its cut was reached
}

// run carries a deal out. One that is not cut off is planned first.
func (h *history) run(ctx context.Context, d deal, c cut, byPlan bool) ran {
	h.t.Helper()
	opts := h.options(d)
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	if c.at > 0 {
		opts.Concurrency = 1 // so that no other request is on its way when it dies
	}
	cfg, reached := h.cutOff(c, kill)
	var r ran
	if d.withdraws {
		r.outcome, r.err = apply.Withdraw(ctx, cfg, d.side.name, d.side.place, opts)
		r.met = reached()
		return r
	}
	set := h.set(d)
	if !c.kills() {
		var err error
		if r.plan, err = apply.MakePlan(ctx, cfg, set, opts); err != nil {
			h.fault("no plan: %v", err) // it only looks
		}
	}
	if r.plan != nil && byPlan {
		r.outcome, r.err = r.plan.Apply(ctx, cfg)
	} else {
		r.outcome, r.err = apply.Apply(ctx, cfg, set, opts)
	}
	r.met = reached()
	return r
}

// explained says that the model knows why a run failed; what it can't explain is a fault.
func (h *history) explained(d deal, before, after view, err error) {
	for _, one := range leaves(err) {
		if why := h.whyUnexplained(d, before, after, one); why != "" {
			h.fault("the run failed, and %s: %v", why, one)
		}
	}
}

func (h *history) whyUnexplained(d deal, before, after view, err error) string {
	seen := func(ref apply.Ref) (*sight, *thing) {
		for _, was := range before {
			if apply.RefOf(was.object) == ref {
				return was, h.things[was.uid]
			}
		}
		return nil, nil
	}
	var unowned *apply.UnownedError
	var owned *apply.OwnedError
	var conflict *apply.ConflictError
	var removal *apply.RemovalError
	var immutable *apply.ImmutableError
	var object *apply.ObjectError
	switch {
	case errors.As(err, &unowned):
		// A record that a stranger wrote for a copy may be believed by a write, and may have been forgotten by an earlier run: both are right.
		was, t := seen(unowned.Ref)
		if was == nil || h.mayTake(d, was, t) && (d.adopt || t.owner == d.side.id()) {
			return "the object is the set's, or may be adopted"
		}
	case errors.As(err, &owned):
		if was, t := seen(owned.Ref); was == nil || t.owner == d.side.id() || was.annotation != owned.Owner {
			return "the object is of no other set"
		}
	case errors.As(err, &conflict):
		was, t := seen(conflict.Ref)
		adopted := was != nil && was.object.GetKind() == "Secret" && t.owner != d.side.id() && !d.takes
		if was == nil || !t.touched && !adopted {
			return "no stranger wrote the object"
		}
	case errors.As(err, &removal):
		if !slices.ContainsFunc(after.sorted(), func(s *sight) bool { return s.deleting && s.held }) {
			return "nothing is held"
		}
	case errors.As(err, &immutable):
		if was, t := seen(immutable.Ref); was == nil || t.maker != stranger {
			return "the set made the object as it is"
		}
	case errors.As(err, &object):
		if was, _ := seen(object.Ref); was == nil || !was.deleting {
			return "the object is not being deleted"
		}
	case isAccident(err):
		if d.allowPrune || !d.prune {
			return "pruning is agreed to"
		}
		for _, was := range before {
			if now := after[was.uid]; now == nil || now.digest != was.digest || now.deleting != was.deleting {
				return "something was written"
			}
		}
	default:
		return "the model does not know why"
	}
	return ""
}

func isAccident(err error) bool {
	var accident *apply.AccidentError
	return errors.As(err, &accident)
}

// leaves are the errors that are joined in one.
func leaves(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, leaves(e)...)
		}
		return all
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// say of a deal in words.
func (h *history) sayDeal(d deal, c cut, byPlan bool) string {
	var b strings.Builder
	verb := "applies"
	if d.withdraws {
		verb = "is withdrawn"
	} else if byPlan {
		verb = "applies its plan"
	}
	fmt.Fprintf(&b, "set %s %s", d.side.name, verb)
	for _, flag := range []struct {
		on   bool
		text string
	}{
		{!d.prune && !d.withdraws, "without pruning"},
		{d.adopt, "adopting"},
		{d.adoptFrom, "adopting from the other set"},
		{d.takes, "taking fields"},
		{!d.allowPrune && !d.withdraws, "not agreeing to an accident"},
		{c.kills() && !c.arrived, "killed before " + c.say()},
		{c.kills() && c.arrived, "killed after " + c.say()},
		{c.instead != nil, "met at " + c.say()},
	} {
		if flag.on {
			b.WriteString(", " + flag.text)
		}
	}
	for _, s := range d.named {
		b.WriteString(", naming " + h.say(s))
	}
	if d.withdraws {
		return b.String()
	}
	b.WriteString(":")
	for _, s := range slices.SortedFunc(maps.Keys(d.manifest), compareSlots) {
		fmt.Fprintf(&b, " %s=%s;", h.say(s), sayWanted(d.manifest[s]))
	}
	return b.String()
}

func sayWanted(w wanted) string {
	text := fmt.Sprint("v", w.value)
	if w.keep > 0 {
		text += "+" + strings.Join(keepWordOf(w.keep), ": ")
	}
	if w.stray > 0 {
		text += fmt.Sprintf("+namespace %d", w.stray)
	}
	return text
}

func keepWordOf(n int) []string {
	word := keepWords()[n]
	return word[:]
}

// sayOutcome is what a run says that it did.
func (h *history) sayOutcome(r ran, c cut) string {
	var parts []string
	for _, o := range r.outcome.Objects {
		parts = append(parts, fmt.Sprintf("%s %s", o.Action, h.sayRef(o.Ref)))
	}
	if !r.met && c.at > 0 {
		parts = append(parts, "it was over by then")
	}
	if r.err != nil {
		parts = append(parts, "error: "+strings.ReplaceAll(r.err.Error(), "\n", " / "))
	}
	return strings.Join(parts, "; ")
}

func (h *history) sayRef(ref apply.Ref) string {
	o := &unstructured.Unstructured{}
	o.SetName(ref.Name)
	o.SetNamespace(ref.Namespace)
	for i, kind := range h.kinds {
		if kind.Group == ref.Group && kind.Kind == ref.Kind {
			if s, ok := h.slotOf(i, o); ok {
				return h.say(s)
			}
		}
	}
	return ref.String()
}
