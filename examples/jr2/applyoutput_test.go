package main

import (
	"testing"

	"jr2.dev/jr2/apply"
)

// TestWhatIsPrunedIsTold: what leaves is in no wave, and a deletion that has begun and waits for a finalizer is a change.
func TestWhatIsPrunedIsTold(t *testing.T) {
	s := newSession()
	p, err := newApplyPrinter("text", Streams{Out: s.out, Err: s.err})
	must(t, err)
	state := apply.Ref{Version: "v1", Kind: "PersistentVolumeClaim", Namespace: "demo", Name: "state"}
	p.applied(apply.WaveStarted{Phase: apply.Sync, Wave: 2, Objects: 1})
	p.applied(apply.Removed{Ref: state, Action: apply.Terminating, Why: "it is being deleted"})
	p.done(&apply.Outcome{Objects: []apply.ObjectResult{{Action: apply.Unchanged}, {Ref: state, Action: apply.Terminating}}})
	want := "  PersistentVolumeClaim demo/state terminating — it is being deleted\n" +
		"applied: 0 objects changed, 1 unchanged, 1 being deleted — all of the set is ready\n"
	if got := s.err.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
