package apply_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/devcluster"
)

// Random histories of two sets and of strangers around them, each step held against a model of who made what and who asked for what: nothing goes
// that its owner did not give up, nothing stays that had to go, and a run does what its plan said. JR2_HISTORIES says how many, JR2_HISTORIES_FROM
// where their seeds begin. -run 'TestHistories/seed=123$' repeats any one.
func TestHistories(t *testing.T) {
	t.Parallel()
	strange := clientAs(t, "stranger")
	if err := defineHistoryKinds(t.Context(), strange); err != nil {
		t.Fatal(err)
	}
	mark, err := shared.AuditMark()
	if err != nil {
		t.Fatal(err)
	}
	log := &deleteLog{mark: mark}
	t.Cleanup(func() { log.check(t) })
	for _, seed := range historySeeds(t) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			newHistory(t, seed).play(t.Context())
			log.check(t)
		})
	}
}

const (
	someHistories = 40
	ourAgent      = "jr2-histories"
)

func historySeeds(t *testing.T) []uint64 {
	number := func(name string, otherwise uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return otherwise
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	if run := flag.Lookup("test.run"); run != nil {
		if named := regexp.MustCompile(`seed=(\d+)`).FindStringSubmatch(run.Value.String()); named != nil {
			seed, err := strconv.ParseUint(named[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return []uint64{seed}
		}
	}
	from := number("JR2_HISTORIES_FROM", 1)
	seeds := make([]uint64, number("JR2_HISTORIES", someHistories))
	for i := range seeds {
		seeds[i] = from + uint64(i)
	}
	return seeds
}

// A deleteLog reads in the audit log how the code under test deletes.
type deleteLog struct {
	mu   sync.Mutex
	mark devcluster.AuditMark
}

// check: each delete names the UID that it means, so that it takes no object that has the name by then.
func (l *deleteLog) check(t *testing.T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events, mark, err := shared.AuditSince(context.WithoutCancel(t.Context()), l.mark)
	if err != nil {
		t.Fatal(err)
	}
	l.mark = mark
	for _, e := range events {
		if strings.HasPrefix(e.UserAgent, ourAgent) && (e.Verb == "deletecollection" || e.Verb == "delete" && e.PreconditionUID == "") {
			t.Errorf("a delete that names no UID: %v", e)
		}
	}
}

// A history is what happens to one part of a cluster.
type history struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	kinds  []historyKind
	places []string // the namespaces
	tag    string
	sides  []*side

	ours            *rest.Config // of the code under test
	strange, looker dynamic.Interface

	things map[types.UID]*thing
	told   []string
	faults []string
}

func clientAs(t *testing.T, agent string) dynamic.Interface {
	t.Helper()
	cfg := config(t)
	cfg.UserAgent, cfg.QPS = agent, -1
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 12)), things: map[types.UID]*thing{}}
	h.strange, h.looker, h.ours = clientAs(t, "stranger"), clientAs(t, "looker"), config(t)
	h.ours.UserAgent = ourAgent
	for range 2 {
		ns, err := typed(t).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{GenerateName: fmt.Sprintf("h%d-", seed)},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		h.places = append(h.places, ns.Name)
	}
	h.tag = h.places[0]
	h.kinds = historyKinds()
	h.random.Shuffle(len(h.kinds), func(i, j int) { h.kinds[i], h.kinds[j] = h.kinds[j], h.kinds[i] })
	h.kinds = h.kinds[:kindsOfAHistory]
	records := h.places[h.random.IntN(2)]
	for i, name := range []string{"a", "b"} {
		place := h.places[0]
		if i == 1 {
			place = records
		}
		s := &side{name: name, place: place, manifest: map[slot]wanted{}, said: map[slot]saying{}}
		if h.chance(50) {
			s.folder = filepath.Join(t.TempDir(), name)
		}
		h.sides = append(h.sides, s)
	}
	t.Cleanup(h.sweep)
	return h
}

// kindsOfAHistory are few, so that things meet.
const kindsOfAHistory = 5

func (h *history) other(s *side) *side {
	if h.sides[0] == s {
		return h.sides[1]
	}
	return h.sides[0]
}

func (h *history) chance(percent int) bool { return h.random.IntN(100) < percent }

// slots are all that there are.
func (h *history) slots() []slot {
	var all []slot
	for i, kind := range h.kinds {
		places := len(h.places)
		if kind.cluster {
			places = 1
		}
		for place := range places {
			all = append(all, slot{i, place, 0}, slot{i, place, 1})
		}
	}
	return all
}

// asks says that a set asks for an object.
func (h *history) asks(s slot) bool {
	return slices.ContainsFunc(h.sides, func(side *side) bool { _, ok := side.manifest[s]; return ok })
}

// play tells the history to its end.
func (h *history) play(ctx context.Context) {
	h.t.Helper()
	v := h.look(ctx)
	for n := range 6 + h.random.IntN(9) {
		switch roll := h.random.IntN(100); {
		case n == 0 && roll < 70 || roll < 52:
			v = h.applies(ctx, v)
		case roll < 94:
			v = h.intervenes(ctx, v)
		default:
			v = h.withdraws(ctx, v, h.sides[h.random.IntN(2)], h.cut(25))
		}
		h.hold()
	}
	h.ends(ctx, v)
	h.hold()
	if testing.Verbose() {
		h.t.Log(h.story())
	}
}

// hold ends a history in which a rule was broken.
func (h *history) hold() {
	h.t.Helper()
	if len(h.faults) > 0 {
		h.t.Fatalf("%s\n%s", h.story(), strings.Join(h.faults, "\n"))
	}
}

// story is what happened until now, in words.
func (h *history) story() string {
	var b strings.Builder
	fmt.Fprintf(&b, "repeat it with: go test ./apply -run 'TestHistories/seed=%d$'\nnamespaces %v, records of set a in %s, of set b in %s\n",
		h.seed, h.places, h.sides[0].place, h.sides[1].place)
	for i, line := range h.told {
		fmt.Fprintf(&b, "%2d. %s\n", i+1, line)
	}
	return b.String()
}

func (h *history) tell(format string, args ...any) {
	h.told = append(h.told, fmt.Sprintf(format, args...))
}

// intervenes lets strangers do something.
func (h *history) intervenes(ctx context.Context, v view) view {
	h.t.Helper()
	acts := h.acts()
	for done := 1 + h.random.IntN(2); done > 0; {
		said := acts[h.random.IntN(len(acts))](ctx, v)
		if said == "" {
			continue
		}
		h.tell("a stranger %s", said)
		now := h.look(ctx)
		h.afterStranger(v, now)
		v = now
		done--
	}
	return v
}

// cut is one for some of the runs.
func (h *history) cut(percent int) cut {
	if !h.chance(percent) {
		return cut{}
	}
	c := h.anywhere()
	c.arrived = h.chance(50)
	return c
}

// anywhere is one of the requests of a run, rather one that writes.
func (h *history) anywhere() cut {
	if h.chance(60) {
		return cut{at: int64(1 + h.random.IntN(7)), writes: true}
	}
	return cut{at: int64(1 + h.random.IntN(20))}
}

// withdraws removes a set.
func (h *history) withdraws(ctx context.Context, v view, side *side, c cut) view {
	h.t.Helper()
	return h.carry(ctx, v, deal{side: side, withdraws: true, allowPrune: true}, c, false)
}

// carry runs a deal and holds what it did against the model.
func (h *history) carry(ctx context.Context, v view, d deal, c cut, byPlan bool) view {
	h.t.Helper()
	h.tell("%s", h.sayDeal(d, c, byPlan))
	step := len(h.told) - 1
	r := h.run(ctx, d, c, byPlan)
	h.told[step] += "\n      → " + h.sayOutcome(r, c)
	now := h.look(ctx)
	h.afterRun(d, v, now, r.err == nil && !r.met)
	d.side.refused = r.err != nil
	if r.met {
		return now
	}
	h.explained(d, v, now, r.err)
	if r.err == nil {
		h.tellsKept(d, v, r.outcome)
	}
	if r.plan != nil {
		h.samePlan(r, v, now)
	}
	return now
}

// races runs a deal while strangers are at work: right before one of its requests they do something.
func (h *history) races(ctx context.Context, v view, d deal, byPlan bool) view {
	h.t.Helper()
	c := h.anywhere()
	c.instead = func() {
		now := h.look(ctx)
		h.afterRun(d, v, now, false)
		v = h.intervenes(ctx, now)
	}
	h.tell("%s", h.sayDeal(d, c, byPlan))
	step := len(h.told) - 1
	r := h.run(ctx, d, c, byPlan)
	h.told[step] += "\n      → " + h.sayOutcome(r, c)
	now := h.look(ctx)
	h.afterRun(d, v, now, r.err == nil && !r.met)
	d.side.refused = r.err != nil
	return now
}

// ends lets go of everything and withdraws both sets.
func (h *history) ends(ctx context.Context, v view) {
	h.t.Helper()
	for h.one(v, func(s *sight, _ *thing) bool { return s.held }) != nil {
		h.tell("a stranger %s", h.letsGo(ctx, v))
		now := h.look(ctx)
		h.afterStranger(v, now)
		v = now
	}
	first := h.random.IntN(2)
	for _, i := range []int{first, 1 - first} {
		v = h.withdraws(ctx, v, h.sides[i], cut{})
		v = h.withdraws(ctx, v, h.sides[i], cut{}) // what Kubernetes held for a moment is forgotten by the next run
		if h.sides[i].refused {
			h.fault("the set %s can't be withdrawn", h.sides[i].name)
		}
		h.hold()
	}
	if _, wrong := h.survivors(v); len(wrong) > 0 {
		for _, uid := range wrong {
			h.fault("%s is left, and both sets are withdrawn", h.say(v[uid].slot))
		}
	}
	for _, side := range h.sides {
		h.recordsEnd(ctx, v, side)
	}
}

// recordsEnd: the records of a withdrawn set stay as long as something of it does.
func (h *history) recordsEnd(ctx context.Context, v view, side *side) {
	_, err := h.looker.Resource(recordResource).Namespace(side.place).Get(ctx, apply.InventoryName(side.name), metav1.GetOptions{})
	owns := h.one(v, func(s *sight, t *thing) bool { return t.owner == side.id() }) != nil
	if gone := apierrors.IsNotFound(err); gone == owns || !gone && err != nil {
		h.fault("the set %s has objects: %t; its records: %v", side.name, owns, err)
	}
}

// sweep removes what lives in no namespace of the history's own.
func (h *history) sweep() {
	ctx := context.WithoutCancel(h.t.Context())
	v, err := h.list(ctx)
	if err != nil {
		h.t.Error(err)
	}
	for _, s := range v.sorted() {
		if !h.kinds[s.kind].cluster {
			continue
		}
		at := h.client(s.slot)
		if s.held {
			_, err = at.Patch(ctx, s.object.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
		if deleteErr := at.Delete(ctx, s.object.GetName(), metav1.DeleteOptions{}); err != nil || deleteErr != nil && !s.deleting {
			h.t.Errorf("sweep %s: %v, %v", h.say(s.slot), err, deleteErr)
		}
	}
}
