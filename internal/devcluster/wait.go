package devcluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const pollEvery = 50 * time.Millisecond

// poll calls condition until it returns nil. Where the time runs out, the last error of condition says what was missing.
func poll(ctx context.Context, condition func(context.Context) error) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// pollWhile is poll that gives up as soon as one of the processes has ended: nothing will come of waiting then. A time-out
// is blamed on the first of them.
func pollWhile(ctx context.Context, running []*process, condition func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, p := range running {
		go func() {
			select {
			case <-p.done:
				cancel(p.ended())
			case <-ctx.Done():
			}
		}()
	}
	err := poll(ctx, condition)
	var component *ComponentError
	if err == nil || errors.As(err, &component) || errors.Is(err, context.Canceled) {
		if component != nil {
			return component
		}
		return err
	}
	return &ComponentError{Name: running[0].name, Err: err, Log: running[0].tail()}
}
