package jr2_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"jr2.dev/jr2"
	"jr2.dev/jr2/placement/provision"
)

// A program provisions the Workspaces of a Workflow, as `jr2 run` does, and keeps them until its context ends.
func ExampleRun() {
	run := func(ctx context.Context) {
		result, err := jr2.Run(ctx, jr2.RunOptions{
			Workflow: "hold", Dir: "path/to/instance", PlacingDeadline: 10 * time.Minute, Hold: true, Events: jr2.Narrate(os.Stderr),
		})
		var lost *provision.LostError
		switch {
		case errors.As(err, &lost):
			fmt.Println(result.Code, lost.Wait) // sandbox_lost, and what it waited for last
		case err != nil:
			fmt.Fprintln(os.Stderr, jr2.NarrateError(err))
		default:
			fmt.Println(result.ID, result.Status)
		}
	}
	_ = run
}

func ExampleRuns() {
	marked := func(ctx context.Context) ([]string, error) {
		runs, err := jr2.Runs(ctx, jr2.RunsOptions{Namespace: "my-instance"})
		var ids []string
		for _, run := range runs {
			if run.Placing != nil {
				ids = append(ids, run.ID)
			}
		}
		return ids, err
	}
	_ = marked
}

func ExampleStatus() {
	why := func(ctx context.Context, id string) error {
		run, err := jr2.Status(ctx, jr2.RunsOptions{Namespace: "my-instance"}, id)
		if err != nil {
			return err
		}
		for _, waiting := range run.Waiting {
			fmt.Println(waiting.On, waiting.Message, "since", waiting.Since)
		}
		return nil
	}
	_ = why
}
