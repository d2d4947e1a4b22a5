package config_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"jr2.dev/jr2/config"
)

// Load reads a folder and says what a converge needs to know about it.
func ExampleLoad() {
	inst, err := config.Load(context.Background(), config.LoadOptions{
		Dir: "../examples/instances/review",
		Env: map[string]string{"JR2_REGISTRY": "registry.example.com/team"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(inst.Name, *inst.Registry, inst.WorkflowNames(), inst.AgentNames())
	for _, repo := range inst.BoundRepos() {
		fmt.Println(repo.Key, repo.Identity)
	}
	// Output:
	// fx-review registry.example.com/team [review] [author critic]
	// service-ee4be143 git.example.test/team/service
	// handbook-5e3beee0 git.example.test/team/handbook
}

// An Instance can be a Go value; Validate holds it to the rules of a folder.
func ExampleValidate() {
	inst := &config.Instance{Name: "Team A"}
	fmt.Println(config.Validate(inst))
	// Output:
	// the Instance at name: "Team A" is no DNS label — name: a DNS label (lower-case letters, digits and "-", at most 63), because it becomes a namespace and part of image names
}

func ExampleSizes() {
	memory, err := config.ParseMemory("1.5Gi")
	if err != nil {
		fmt.Println(err)
		return
	}
	inst := &config.Instance{Workflows: []config.Workflow{{
		Name:       "hold",
		Workspaces: []config.Workspace{{Size: config.Limits{Memory: &memory}}},
	}}}
	sizes, err := config.Sizes(inst)
	for _, s := range sizes {
		fmt.Println("memory", config.FormatMemory(s.Size.Memory), s.MemorySource, "cpu", config.FormatCPU(s.Size.CPU), s.CPUSource)
		fmt.Println("Harness", config.FormatMemory(s.Harness.Memory), config.FormatCPU(s.Harness.CPU))
	}
	fmt.Println(err)
	// Output:
	// memory 1536Mi machine cpu 1 kit
	// Harness 1472Mi 950m
	// <nil>
}

func ExampleMergeEnv() {
	file := config.ParseDotEnv("JR2_REGISTRY=registry.example.com/team\nexport JR2_GIT_TOKEN='t0ken' # never printed\n")
	merged, applied := config.MergeEnv(file, map[string]string{"JR2_GIT_TOKEN": ""})
	fmt.Println(strings.Join(applied, ", "))
	fmt.Printf("%q %v\n", merged["JR2_GIT_TOKEN"], file[1].Value)
	// Output:
	// JR2_REGISTRY
	// "" ****
}

func ExampleOpenPart_Fix() {
	part := config.OpenPart{Path: []string{"review"}, Kind: config.OpenRepo, Slot: "target"}
	fmt.Println(part.Describe())
	fmt.Println(part.Fix("nightly-review"))
	// Output:
	// Repo Slot "target" at "review"
	// export const machine = customize(nightlyReview, { actors: { review: { repos: { target: "<url>" } } } })
}

func ExampleFindRoot() {
	_, err := config.FindRoot("/")
	var none *config.NotFoundError
	fmt.Println(errors.As(err, &none))
	// Output: true
}

func ExampleCheckHeldSecrets() {
	inst := &config.Instance{Name: "a", Secrets: []config.HeldSecret{{Name: "DB_KEY", Value: config.NewSecret("hush "), Hosts: []string{"db.test"}}}}
	err := config.CheckHeldSecrets(inst)
	var field *config.FieldError
	errors.As(err, &field)
	fmt.Println(field.Path, field.Problem)
	// Output: secrets[0].value starts or ends with a blank
}

func ExampleParseRepoURL() {
	for _, url := range []string{"https://Git.example.test/team/app.git", "git@git.example.test:team/app"} {
		a, err := config.ParseRepoURL(url)
		fmt.Println(a.Scheme, a.Identity, a.Key, err)
	}
	// Output:
	// https git.example.test/team/app app-b62af562 <nil>
	// ssh git.example.test/team/app app-b62af562 <nil>
}
