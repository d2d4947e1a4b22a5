package main

import (
	"errors"
	"fmt"

	"jr2.dev/jr2/placement/provision"
)

// stopped is how a run ends that the user ended.
type stopped struct{ err error }

func (s stopped) Error() string {
	if left := (*provision.UndeletedError)(nil); errors.As(s.err, &left) {
		return fmt.Sprintf("stopped — what never ran could not be deleted, so it goes with its idle timeout, as what ran: %v", left.Cleanup)
	}
	return "stopped — what never ran is deleted, what ran stays until its idle timeout"
}

func (s stopped) Unwrap() error { return s.err }
