package preflight_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/preflight"
)

// Each model is asked by a pod that runs for seconds in the Instance's namespace and is removed.
func ExampleModelProbes_Models() {
	var client kubernetes.Interface                                  // of the caller
	var pod func(name string) (*corev1.Pod, []runtime.Object, error) // a Harness with its Custodian, and what the two read
	check := func(ctx context.Context, models []preflight.Model) error {
		probes := preflight.ModelProbes{Client: client.CoreV1(), Namespace: "team-a", Pod: pod}
		findings, err := probes.Models(ctx, models)
		for _, finding := range findings {
			fmt.Println(finding.Severity, finding.Message)
		}
		return err
	}
	_ = check
}

// The models of an Instance, as they are asked.
func ExampleModelsOf() {
	inst := &config.Instance{
		Workflows: []config.Workflow{{Name: "review", Agents: []config.Agent{
			{Name: "author", Model: "local/team/qwen"}, {Name: "critic", Model: "anthropic/claude-sonnet-4-6"}, {Name: "judge", Model: "google-vertex/gemini"},
		}}},
		Harness: config.Harness{Provider: &config.Provider{ID: "local", API: "openai-completions", BaseURL: "https://models.example.com/v1"}},
	}
	models, unasked := preflight.ModelsOf(inst)
	for _, model := range models {
		fmt.Println(model.API, model.BaseURL, model.ID)
	}
	for _, finding := range unasked {
		fmt.Println(finding.Severity, finding.Message)
	}
	// Output:
	// openai-completions https://models.example.com/v1 team/qwen
	// anthropic-messages https://api.anthropic.com claude-sonnet-4-6
	// note model "google-vertex/gemini" was not asked: a probe does not know how to ask its provider
}
