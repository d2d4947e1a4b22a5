package config_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"jr2.dev/jr2/config"
)

func TestPing(t *testing.T) {
	inst := load(t, samples+"ping")
	if inst.Name != "fx-ping" || inst.ComposesSandbox() || inst.ImageContexts() != nil || inst.BoundRepos() != nil {
		t.Errorf("ping has no Workspace: %+v", inst)
	}
	wf := inst.Workflows[0]
	if wf.Name != "ping" || wf.MachineID != "ping" || wf.HasDoor || len(wf.Agents)+len(wf.OpenParts)+len(wf.Workspaces) != 0 {
		t.Errorf("got %+v", wf)
	}
	if sizes, err := config.Sizes(inst); len(sizes) != 0 || err != nil {
		t.Errorf("sizes %v %v", sizes, err)
	}
	if inst.KitVersion != "0.3.0" || inst.DefaultImage != "" || inst.Namespace("") != "fx-ping" || inst.Namespace("x") != "x" {
		t.Errorf("got %+v", inst)
	}
}

func TestPingBuildsNoDefaultImage(t *testing.T) {
	inst := load(t, instance(t, "ping", map[string]string{"images/default/Dockerfile": "FROM scratch\n"}))
	if inst.DefaultImage == "" || inst.ImageContexts() != nil {
		t.Errorf("an image that nothing runs: %v", inst.ImageContexts())
	}
}

func TestHold(t *testing.T) {
	inst := load(t, instance(t, "hold", nil))
	wf := inst.Workflows[0]
	if wf.Name != "hold" || wf.MachineID != "workspace" || !wf.HasDoor || len(wf.Agents) != 0 || !inst.ComposesSandbox() {
		t.Errorf("got %+v", wf)
	}
	images := inst.ImageContexts()
	if len(images) != 1 || images[0].Name != "default" || !images[0].Default || images[0].Dir != inst.DefaultImage {
		t.Errorf("got %+v", images)
	}
	want := []config.Repo{{URL: "https://git.example.test/team/app.git", Scheme: "https", Identity: "git.example.test/team/app", Key: "app-b62af562"}}
	if got := inst.BoundRepos(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	credential, ok := inst.Git.Credential(want[0])
	if !ok || credential.SecretName != "jr2-git-845ed3f3" || credential.TokenEnv != "JR2_GIT_TOKEN" {
		t.Errorf("got %+v %v", credential, ok)
	}
	sizes, err := config.Sizes(inst)
	if err != nil || len(sizes) != 1 {
		t.Fatal(sizes, err)
	}
	size := sizes[0]
	wantSize(t, size, "3Gi", "machine", "1500m", "machine", "3008Mi", "1450m", "752Mi")
	if size.Workflow != "hold" || size.User.Memory != nil {
		t.Errorf("got %+v", size)
	}
}

func wantSize(t *testing.T, s config.WorkspaceSize, want ...string) {
	t.Helper()
	got := []string{config.FormatMemory(s.Size.Memory), s.MemorySource, config.FormatCPU(s.Size.CPU), s.CPUSource,
		config.FormatMemory(s.Harness.Memory), config.FormatCPU(s.Harness.CPU), config.FormatMemory(s.SharedMemory)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReview(t *testing.T) {
	inst := load(t, samples+"review")
	if names := inst.WorkflowNames(); !reflect.DeepEqual(names, []string{"review"}) {
		t.Errorf("workflows %v", names)
	}
	const model = "anthropic/claude-sonnet-4-6"
	wantAgents := []config.Agent{
		{Path: []string{}, Name: "author", Model: model, Access: "write", ThinkingLevel: "medium"},
		{Path: []string{}, Name: "critic", Model: model, Access: "read", ThinkingLevel: "high"},
	}
	wf := inst.Workflows[0]
	if !reflect.DeepEqual(wf.Agents, wantAgents) || !wf.HasDoor {
		t.Errorf("got %+v", wf)
	}
	if !reflect.DeepEqual(inst.Models(), []string{model}) || !reflect.DeepEqual(inst.AgentNames(), []string{"author", "critic"}) || inst.NeedsInstanceHarness() {
		t.Errorf("models %v, agents %v", inst.Models(), inst.AgentNames())
	}
	toolbox := filepath.Join(inst.Root, "workflows", "toolbox")
	images := inst.ImageContexts()
	if len(images) != 1 || images[0].Dir != toolbox || images[0].Name != "toolbox" || images[0].Key != "file://"+toolbox || images[0].Default {
		t.Errorf("got %+v", images)
	}
	if got := inst.AssemblyURL(images[0].Key); got != "file:///instance/workflows/toolbox" {
		t.Errorf("in the Assembly: %s", got)
	}
	if wf.Workspaces[0].User != "registry.example.com/team/ide:1.4" || len(inst.OpenParts()) != 0 {
		t.Errorf("got %+v", wf.Workspaces[0])
	}
	var lines []string
	for _, repo := range inst.BoundRepos() {
		credential, _ := inst.Git.Credential(repo)
		lines = append(lines, strings.Join([]string{repo.Identity, repo.Ref, repo.Key, credential.SecretName}, " "))
	}
	if !reflect.DeepEqual(lines, []string{
		"git.example.test/team/service main service-ee4be143 jr2-git-845ed3f3",
		"git.example.test/team/handbook stable handbook-5e3beee0 jr2-git-ssh",
	}) {
		t.Errorf("repos %q", lines)
	}
	sizes, err := config.Sizes(inst)
	if err != nil {
		t.Fatal(err)
	}
	wantSize(t, sizes[0], "8Gi", "machine", "3", "machine", "7104Mi", "2450m", "1776Mi")
	if config.FormatMemory(*sizes[0].User.Memory) != "1Gi" || config.FormatCPU(*sizes[0].User.CPU) != "500m" {
		t.Errorf("user split %+v", sizes[0].User)
	}
}

func TestSeedInstance(t *testing.T) {
	ping, err := os.ReadFile(samples + "ping/workflows/ping.ts")
	if err != nil {
		t.Fatal(err)
	}
	inst := load(t, instance(t, "hold", map[string]string{"workflows/ping.ts": string(ping), "workflows/_x.ts": "throw 1", "workflows/x.d.ts": "throw 1",
		"workflows/x.tsx": "throw 1", "workflows/deep/x.ts": "throw 1"}))
	if got := strings.Join(inst.WorkflowNames(), ", "); got != "hold, ping" {
		t.Errorf("workflows: %s", got)
	}
}

func TestModulesDoNotDependOnThePlace(t *testing.T) {
	one, two := load(t, instance(t, "review", nil)), load(t, instance(t, "review", nil))
	if one.Root == two.Root || !reflect.DeepEqual(one.Modules, two.Modules) {
		t.Error("the same folder in two places gives two Assemblies")
	}
	var names []string
	for _, module := range one.Modules {
		names = append(names, module.Name)
		text := string(module.Source)
		if strings.Contains(text, one.Root) {
			t.Errorf("%s names the folder's place", module.Name)
		}
		if !strings.Contains(text, "\"@jr2/orchestrator\"") {
			t.Errorf("%s does not import from @jr2/orchestrator:\n%s", module.Name, text)
		}
	}
	if !reflect.DeepEqual(names, []string{"jr2.config", "review"}) {
		t.Errorf("modules %v", names)
	}
	if text := string(one.Modules[1].Source); !strings.Contains(text, "file:///instance/workflows/_review.ts") {
		t.Errorf("import.meta has no place in the Assembly:\n%s", text)
	}
}

func TestWalkUpAndNoRoot(t *testing.T) {
	inst := load(t, filepath.Join(samples, "review", "workflows", "toolbox"))
	if inst.Name != "fx-review" {
		t.Error(inst.Name)
	}
	_, err := config.Load(context.Background(), config.LoadOptions{Dir: t.TempDir()})
	if _, ok := err.(*config.NotFoundError); !ok {
		t.Errorf("got %v", err)
	}
	_, err = config.FindRoot("/does/not/exist")
	if _, ok := err.(*config.NotFoundError); !ok {
		t.Errorf("got %v", err)
	}
}

func TestKitVersion(t *testing.T) {
	pinned := `{"dependencies":{"@jr2/orchestrator":"1.2.3"}}`
	for name, c := range map[string]struct {
		files map[string]string
		given string
		want  string
	}{
		"installed":  {map[string]string{"package.json": pinned, "node_modules/@jr2/orchestrator/package.json": `{"version":"1.2.4"}`}, "9.9.9", "1.2.4"},
		"exact":      {map[string]string{"package.json": pinned}, "9.9.9", "1.2.3"},
		"dev":        {map[string]string{"package.json": `{"devDependencies":{"@jr2/orchestrator":"1.2.3-rc.1"}}`}, "", "1.2.3-rc.1"},
		"range":      {map[string]string{"package.json": `{"dependencies":{"@jr2/orchestrator":"^1.2.3"}}`}, "9.9.9", "9.9.9"},
		"nothing":    {map[string]string{"package.json": "{}"}, "", config.DefaultKitVersion},
		"no package": {map[string]string{"package.json": ""}, "", config.DefaultKitVersion},
	} {
		t.Run(name, func(t *testing.T) {
			inst, err := config.Load(context.Background(), config.LoadOptions{Dir: instance(t, "ping", c.files), KitVersion: c.given})
			if err != nil || inst.KitVersion != c.want {
				t.Errorf("got %v %v, want %s", inst, err, c.want)
			}
		})
	}
}
