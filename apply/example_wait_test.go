package apply_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jr2.dev/jr2/apply"
)

func ExampleWaitReady() {
	refs := []apply.Ref{
		{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "conf"}, // ready without a look
		{Group: "batch", Version: "v1", Kind: "Job", Namespace: "default", Name: "migrate"},
	}
	err := apply.WaitReady(context.Background(), shared.Config(), refs, apply.WaitOptions{Timeout: time.Minute, Events: func(e apply.Event) {
		if e, ok := e.(apply.Waiting); ok {
			fmt.Println(e.Ref, "waits since", e.Since, "for", e.Reason)
		}
	}})
	var unready *apply.UnreadyError
	if errors.As(err, &unready) {
		fmt.Println(unready.Ref, "-", unready.Verdict)
	}
	// Output: Job.batch default/migrate - it does not exist
}
