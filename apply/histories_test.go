package apply_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Random histories of two sets and of strangers around them, each step held against a model of who made what and who
// asked for what: nothing goes that its owner did not give up, nothing stays that had to go, and a run does what its
// plan said. JR2_HISTORIES says how many, JR2_HISTORIES_FROM where their seeds begin. -run 'TestHistories/seed=123$'
// repeats any one.
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
