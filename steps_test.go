package jr2

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"jr2.dev/jr2/apply"
)

// TestStepsTellWhyTheyWereCutOff: a step that ends with its context says so and no more; a lost lock is told as one.
func TestStepsTellWhyTheyWereCutOff(t *testing.T) {
	cutOff := func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("operator: %w", ctx.Err())
	}
	unaware := func(context.Context) error { return nil }
	never := func(context.Context) error { panic("a step after the end") }

	lost, lose := context.WithCancelCause(t.Context())
	lose(fmt.Errorf("%w: taken by bo", apply.ErrLockLost))
	for text, cut := range map[string]func(context.Context) error{
		"the lock was lost: taken by bo: operator: context canceled": cutOff,
		"the lock was lost: taken by bo":                             unaware,
	} {
		if err := in(lost, []step{cut, never}); !errors.Is(err, apply.ErrLockLost) || err.Error() != text {
			t.Errorf("got %v, want %s", err, text)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := in(ended, []step{cutOff, never}); !errors.Is(err, context.Canceled) || err.Error() != "operator: context canceled" {
		t.Errorf("got %v", err)
	}
	broken := errors.New("broken")
	if err := in(t.Context(), []step{unaware, func(context.Context) error { return broken }, never}); err != broken {
		t.Errorf("got %v", err)
	}
}
