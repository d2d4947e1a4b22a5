package provision_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/placement/provision"
	"jr2.dev/jr2/placement/v1alpha1"
)

func ExampleCompose() {
	request, err := provision.Compose(provision.Composition{
		Instance: &config.Instance{Name: "my-instance", KitVersion: "0.3.0"},
		Workflow: "hold", Workspace: config.Workspace{Path: []string{"F-1"}},
		Run: "5e817334", Name: "ws-5e817334-f-1-0-61ru0u", SigningKey: config.NewSecret("key"),
		Images: provision.Images{Harness: "ghcr.io/snapwich/jr2-harness:0.3.0", Custodian: "docker.io/envoyproxy/envoy:v1", Sandbox: "registry.example.com/team/box:1"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	whole, harness := request.Sandbox.Spec.PodResources.Limits, request.Sandbox.Spec.Resources.Limits
	fmt.Println(request.Sandbox.Spec.Image, whole.Memory(), whole.Cpu(), "of which the Harness has", harness.Memory(), harness.Cpu())
	// Output: registry.example.com/team/box:1 2Gi 1 of which the Harness has 1984Mi 950m
}

// A program provisions a Sandbox and gives up after ten minutes without a place for it.
func ExampleProvision() {
	var cfg *rest.Config // of the caller
	var request provision.Request
	run := func(ctx context.Context) error {
		box, err := provision.Provision(ctx, cfg, request, provision.Options{
			PlacingDeadline: 10 * time.Minute,
			Events: func(e provision.Event) {
				if waiting, ok := e.(provision.Waiting); ok && !waiting.Changed {
					fmt.Printf("%s waits for %s — %s\n", waiting.Sandbox, waiting.What(), waiting.Message)
				}
			},
		})
		var lost *provision.LostError
		if errors.As(err, &lost) {
			fmt.Println(lost.Code(), lost.Wait) // sandbox_lost, and what it waited for last
		}
		if err != nil {
			return err // what never ran is deleted already
		}
		defer box.Teardown(context.WithoutCancel(ctx)) //nolint:errcheck // its idle timeout comes after
		fmt.Println("at", box.Sandbox.Status.Endpoint)
		return box.Watch(ctx)
	}
	_ = run
}

func ExampleWaitOf() {
	box := &v1alpha1.Sandbox{}
	box.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionScheduled, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonQuotaExceeded,
		Message: `pods "ws-1" is forbidden: exceeded quota: team-quota, requested: limits.memory=1Gi, used: limits.memory=2Gi, limited: limits.memory=512Mi`}}
	wait, _ := provision.WaitOf(box)
	fmt.Println(provision.StateOf(box), wait.On, wait.Outlook, wait.Quota.TooMuch())
	// Output: placing quota never [limits.memory]
}

func ExampleRunsOf() {
	box := v1alpha1.Sandbox{}
	box.Labels = map[string]string{v1alpha1.LabelRun: "5e817334", v1alpha1.LabelWorkflow: "hold"}
	for _, run := range provision.RunsOf([]v1alpha1.Sandbox{box}) {
		fmt.Printf("%s %s %q live %t\n", run.ID, run.Workflow, run.Placing, run.Live())
	}
	// Output: 5e817334 hold [""] live true
}

func ExampleStatus() {
	var cfg *rest.Config // of the caller
	look := func(ctx context.Context) error {
		run, err := provision.Status(ctx, cfg, "my-instance", "5e81")
		if err != nil {
			return err // *provision.UnknownRunError when there is none, or several
		}
		for _, waiting := range run.Waiting {
			fmt.Println(waiting.Child, waiting.On, waiting.Message, waiting.Since)
		}
		return nil
	}
	_ = look
}

func ExampleRuns() {
	var cfg *rest.Config // of the caller
	count := func(ctx context.Context) (waiting int, err error) {
		runs, err := provision.Runs(ctx, cfg, "my-instance")
		for _, run := range runs {
			if run.Placing != nil {
				waiting++
			}
		}
		return waiting, err
	}
	_ = count
}

// A process that took a Sandbox over from another one keeps it alive.
func ExampleLease() {
	var cfg *rest.Config      // of the caller
	var box *v1alpha1.Sandbox // as read
	keep := func(ctx context.Context) error {
		return provision.Lease(ctx, cfg, box, 0, func(err error) { fmt.Println("not renewed:", err) })
	}
	_ = keep
}
