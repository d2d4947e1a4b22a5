package preflight_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"jr2.dev/jr2/preflight"
)

func finding(code string) preflight.Finding {
	return preflight.Finding{Severity: preflight.Warn, Code: code, Object: "x", Message: code}
}

func finds(name string, codes ...string) preflight.Check {
	return preflight.NewCheck(name, func(context.Context) ([]preflight.Finding, error) {
		var all []preflight.Finding
		for _, code := range codes {
			all = append(all, finding(code))
		}
		return all, nil
	}, codes...)
}

func codesOf(findings []preflight.Finding) string {
	var codes []string
	for _, f := range findings {
		codes = append(codes, f.Code)
	}
	return strings.Join(codes, " ")
}

// The list is in the order of the checks, whichever ends first, and no more look at once than allowed.
func TestRunKeepsTheOrderOfTheChecks(t *testing.T) {
	var now, most atomic.Int32
	second := make(chan struct{})
	slow := preflight.NewCheck("slow", func(context.Context) ([]preflight.Finding, error) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		<-second
		return []preflight.Finding{finding("first")}, nil
	}, "first")
	quick := preflight.NewCheck("quick", func(context.Context) ([]preflight.Finding, error) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		close(second)
		return []preflight.Finding{finding("second")}, nil
	}, "second")
	got, err := preflight.Run(t.Context(), []preflight.Check{slow, quick, finds("third", "third", "fourth")}, preflight.RunOptions{Limit: 2})
	if err != nil || codesOf(got) != "first second third fourth" || most.Load() > 2 {
		t.Errorf("got %s, %v, %d at once", codesOf(got), err, most.Load())
	}
}

// A check of a caller's that is at fault is told as one that could not look, whatever its fault is, and keeps no other from looking.
func TestRunOutlivesAFaultyCheck(t *testing.T) {
	var unset *faultyCheck
	panics := func(context.Context) ([]preflight.Finding, error) { panic("no such key") }
	for name, check := range map[string]preflight.Check{
		"nil": nil, "a nil pointer": unset, "no function": preflight.NewCheck("empty", nil, "a"), "a panic": preflight.NewCheck("panics", panics, "a"),
		"an error": preflight.NewCheck("lost", func(context.Context) ([]preflight.Finding, error) { return nil, errors.New("no answer") }, "a"),
	} {
		for _, choice := range []preflight.Choice{{}, {Only: []string{"a", "good"}}} {
			got, err := preflight.Run(t.Context(), []preflight.Check{check, finds("good", "good")}, preflight.RunOptions{Choice: choice})
			if err != nil || codesOf(got) != preflight.CodeNotLookedAt+" good" || !strings.Contains(got[0].Message, "nobody could look: ") {
				t.Errorf("%s: got %+v, %v", name, got, err)
			}
		}
	}
}

// What a caller's check leaves out does not make its finding pass unseen: one that nobody weighed refuses, one without a code goes by the check's name.
func TestRunFillsInWhatFindingsLeaveOut(t *testing.T) {
	t.Parallel()
	kept := []preflight.Finding{{Message: "a"}, {Severity: "WARN", Code: "b"}, {Severity: preflight.Note, Code: "c"}, {Severity: preflight.Warn}}
	sloppy := preflight.NewCheck("freeze", func(context.Context) ([]preflight.Finding, error) { return kept, nil })
	got, err := preflight.Run(t.Context(), []preflight.Check{sloppy}, preflight.RunOptions{})
	want := []preflight.Finding{
		{Severity: preflight.Refuse, Code: "freeze", Message: "a"}, {Severity: preflight.Refuse, Code: "b"}, {Severity: preflight.Note, Code: "c"},
		{Severity: preflight.Warn, Code: "freeze"},
	}
	if err != nil || !slices.Equal(got, want) || kept[0].Code != "" {
		t.Errorf("got %+v, %v", got, err)
	}
	if refused := preflight.Refused(got); refused == nil || refused.Error() != "a\n" {
		t.Errorf("got %v", refused)
	}
	chosen, err := preflight.Run(t.Context(), []preflight.Check{sloppy}, preflight.RunOptions{Choice: preflight.Choice{Only: []string{"freeze"}}})
	if err != nil || codesOf(chosen) != "freeze freeze" {
		t.Errorf("chosen: %+v, %v", chosen, err)
	}
}

type faultyCheck struct{ name string }

func (c *faultyCheck) Name() string                                      { return c.name }
func (c *faultyCheck) Codes() []string                                   { return nil }
func (c *faultyCheck) Look(context.Context) ([]preflight.Finding, error) { return nil, nil }

// A choice runs only the checks that can come to what it takes, and "nobody looked" is no silence.
func TestRunChooses(t *testing.T) {
	asked := []string{}
	named := func(name string, err error, codes ...string) preflight.Check {
		return preflight.NewCheck(name, func(context.Context) ([]preflight.Finding, error) {
			asked = append(asked, name)
			return []preflight.Finding{finding(codes[0])}, err
		}, codes...)
	}
	broken := errors.New("the server is on fire")
	checks := []preflight.Check{named("a", nil, "a", "b"), named("c", broken, "c"), named("d", nil, "d", preflight.CodeNotLookedAt)}
	for _, tt := range []struct {
		choice      preflight.Choice
		asked, want string
	}{
		{preflight.Choice{}, "a c d", "a c not-looked-at d"},
		{preflight.Choice{Only: []string{"b"}}, "a", ""},
		{preflight.Choice{Only: []string{"c"}}, "c", "c not-looked-at"},
		{preflight.Choice{Skip: []string{"a"}}, "a c d", "c not-looked-at d"},
		{preflight.Choice{Skip: []string{"a", "b"}}, "c d", "c not-looked-at d"},
		{preflight.Choice{Skip: []string{"c", preflight.CodeNotLookedAt}}, "a d", "a d"},
		{preflight.Choice{Only: []string{"a", "c"}, Skip: []string{"c"}}, "a", "a"},
	} {
		asked = nil
		got, err := preflight.Run(t.Context(), checks, preflight.RunOptions{Choice: tt.choice, Limit: 1})
		if err != nil || codesOf(got) != tt.want || strings.Join(asked, " ") != tt.asked {
			t.Errorf("%+v: asked %v, got %s, %v", tt.choice, asked, codesOf(got), err)
		}
		for _, f := range got {
			if f.Code == preflight.CodeNotLookedAt && (f.Severity != preflight.Note || f.Message != "c: nobody could look: the server is on fire") {
				t.Errorf("got %+v", f)
			}
		}
	}
}

// Checks that ended before the context did are told, and those that the end cut off are neither fine nor "could not look".
func TestRunIsCutOff(t *testing.T) {
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cut := preflight.NewCheck("cut", func(ctx context.Context) ([]preflight.Finding, error) {
		cancel(stop)
		return nil, ctx.Err()
	}, "cut")
	got, err := preflight.Run(ctx, []preflight.Check{finds("before", "before"), cut, finds("after", "after")}, preflight.RunOptions{Limit: 1})
	if !errors.Is(err, stop) || codesOf(got) != "before" {
		t.Errorf("got %s, %v", codesOf(got), err)
	}
	if slices.ContainsFunc(got, func(f preflight.Finding) bool { return f.Code == preflight.CodeNotLookedAt }) {
		t.Error("a check that was cut off is told as one that could not look")
	}
}
