package jr2_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/preflight"
)

// A converge of an Instance that is a Go value, into a cluster that nobody serves: the error says what could not be done.
func ExampleConverge() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	result, err := jr2.Converge(ctx, jr2.Options{
		Instance: &config.Instance{Name: "app", KitVersion: config.DefaultKitVersion, Workflows: []config.Workflow{{Name: "ping"}}},
		Config:   &rest.Config{Host: "https://127.0.0.1:1"},
		Context:  "shared",
		Events:   jr2.Narrate(os.Stdout),
	})
	var unreachable *jr2.UnreachableError
	if errors.As(err, &unreachable) {
		fmt.Println(unreachable.Context, "does not answer;", len(result.Objects), "objects were applied to", result.Namespace)
	}
	// Output:
	// jr2 up — instance "app" → context shared / namespace app
	// workflows: ping — agents: none
	// shared does not answer; 0 objects were applied to app
}

// The zero Options converges the folder around the working directory into the current context.
func ExampleConverge_folder() {
	result, err := jr2.Converge(context.Background(), jr2.Options{Events: jr2.Narrate(os.Stderr), Yes: true})
	var refusal *jr2.Refusal
	switch {
	case errors.As(err, &refusal):
		for _, finding := range refusal.Findings {
			fmt.Println(finding.Code, finding.Object, finding.Fix)
		}
	case err != nil:
		fmt.Fprintln(os.Stderr, jr2.NarrateError(err))
	default:
		fmt.Println(result.Assembly, result.Changed)
	}
}

// A plan is shown, somebody agrees, and the converge does that or nothing.
func ExampleMakePlan() {
	ctx, opts := context.Background(), jr2.Options{Dir: "path/to/instance", Yes: true}
	plan, err := jr2.MakePlan(ctx, opts)
	if err != nil || plan.Err() != nil {
		fmt.Fprintln(os.Stderr, jr2.NarrateError(errors.Join(err, plan.Err())))
		return
	}
	if plan.Changes() == 0 {
		return
	}
	fmt.Print(plan)
	opts.Plan = plan
	_, err = jr2.Converge(ctx, opts)
	var moved *jr2.MovedError
	if errors.As(err, &moved) {
		fmt.Println("not any more:", moved.Moved)
	}
}

func ExampleCheck() {
	report, err := jr2.Check(context.Background(), jr2.Options{Dir: "path/to/instance"}, preflight.Choice{})
	if err != nil {
		fmt.Fprintln(os.Stderr, jr2.NarrateError(err))
		return
	}
	fmt.Print(report)
	for _, finding := range report.Findings {
		if finding.Severity == preflight.Refuse {
			fmt.Println("to do:", finding.Fix)
		}
	}
}

// What an admin gives a platform's own user, so that it converges and can do no more.
func ExampleMinimalRoles() {
	roles, err := jr2.MinimalRoles(context.Background(), jr2.Options{Dir: "path/to/instance"}, "system:serviceaccount:platform:converger")
	if err != nil {
		fmt.Fprintln(os.Stderr, jr2.NarrateError(err))
		return
	}
	fmt.Print(roles) // kubectl apply -f -
}

func ExampleNarrate() {
	tell := jr2.Narrate(os.Stdout)
	tell(jr2.KubernetesFound{Version: "v1.36.1", Floor: "1.35"})
	tell(jr2.Converged{Changed: 3})
	// Output:
	// kubernetes: v1.36.1 (floor 1.35, ADR-0037)
	// converged — `jr2 run <workflow>` when ready
}

func ExampleNarrateError() {
	fmt.Println(jr2.NarrateError(jr2.ErrNoContext))
	fmt.Println(jr2.NarrateError(&jr2.UnansweredError{FirstContact: jr2.FirstContact{
		Instance: "app", Context: "shared", What: `create namespace "app"`,
	}}))
	// Output:
	// error: no kube context — give one with --context, or make a cluster first, for example with: kind create cluster
	// first contact: deploy instance "app" to context shared (create namespace "app")? — not a tty; pass --yes to proceed non-interactively
}

func ExampleMarshalEvent() {
	line, err := jr2.MarshalEvent(jr2.AssemblyCurrent{Hash: "0a1b2c3d4e5f", Workflows: []string{"ping"}})
	fmt.Println(string(line), err)
	// Output: {"type":"assemblyCurrent","hash":"0a1b2c3d4e5f","workflows":["ping"]} <nil>
}

func ExampleAccepts() {
	fmt.Println(jr2.Accepts("y\n"), jr2.Accepts(" Yes "), jr2.Accepts(""), jr2.Accepts("yeah"))
	// Output: true true false false
}

func ExampleFirstContact_Question() {
	first := jr2.FirstContact{Instance: "app", Context: "shared", What: `create namespace "team-a"`}
	fmt.Printf("%q\n", first.Question())
	// Output: "first contact: deploy instance \"app\" to context shared (create namespace \"team-a\")? [y/N] "
}

// A publisher for another home than the Instance's namespace.
func ExampleClusterPublisher() {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	publisher := jr2.ClusterPublisher(client, "assemblies", map[string]string{"team": "a"})
	_, err = jr2.Converge(context.Background(), jr2.Options{Dir: "path/to/instance", Publisher: publisher})
	if err != nil {
		fmt.Println(err)
	}
}

// What would be removed from the Docker Engine of this machine.
func ExampleGC() {
	swept, err := jr2.GC(context.Background(), jr2.GCOptions{
		Config: &rest.Config{Host: "https://127.0.0.1:1"}, DryRun: true, // a cluster that does not answer: nothing may be removed
	})
	fmt.Println(swept == nil, strings.HasPrefix(err.Error(), "nothing was swept, because what https://127.0.0.1:1 needs could not be read"))
	// Output: true true
}
