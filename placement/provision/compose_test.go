package provision_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/provision"
	"jr2.dev/jr2/placement/v1alpha1"
)

func composition() provision.Composition {
	return provision.Composition{
		Instance: &config.Instance{Name: "my-instance", KitVersion: "0.3.0", Git: config.Git{Credentials: []config.GitCredential{{Match: "git.example.test/", Token: "T"}}}},
		Workflow: "hold", Run: "5e817334", Name: "ws-5e817334-x-0-61ru0u", SigningKey: config.NewSecret("key"),
		Images: provision.Images{Harness: "ghcr.io/snapwich/jr2-harness:0.3.0", Custodian: "docker.io/envoyproxy/envoy:v1"},
		Workspace: config.Workspace{Path: []string{}, Repos: []config.RepoSlot{
			{Slot: "app", State: config.SlotBound, URL: "https://git.example.test/team/app.git"}, {Slot: "again", State: config.SlotBound, URL: "git@git.example.test:team/app"}}},
	}
}

func TestCompose(t *testing.T) {
	request, err := provision.Compose(composition())
	if err != nil {
		t.Fatal(err)
	}
	box := request.Sandbox
	if box.Namespace != "my-instance" || box.Spec.Image != "ghcr.io/snapwich/jr2-harness:0.3.0" || box.Labels[v1alpha1.LabelRun] != "5e817334" || box.Labels[v1alpha1.LabelWorkflow] != "hold" {
		t.Errorf("%+v", box.ObjectMeta)
	}
	if child, there := box.Annotations[v1alpha1.AnnotationChild]; child != "" || !there {
		t.Errorf("child %q, %t", child, there)
	}
	if len(request.Repos) != 1 || len(box.Spec.Repos) != 1 || box.Spec.Repos[0].URL != "https://git.example.test/team/app.git" {
		t.Errorf("two spellings of one repository are %+v", box.Spec.Repos)
	}
	if !request.Token.Present() || strings.Contains(request.Token.String(), request.Token.Reveal()) {
		t.Error("no token, or one that prints")
	}
}

// TestComposeHolds: a secret that is held is in the pod as its stand-in, and its value nowhere.
func TestComposeHolds(t *testing.T) {
	c := composition()
	c.Instance.Secrets = []config.HeldSecret{{Name: "SEARCH_KEY", Value: config.NewSecret("the value"), Hosts: []string{"search.example.test"}}}
	composed, err := provision.Compose(c)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(composed.Sandbox)
	if err != nil || strings.Contains(string(text), "the value") || !strings.Contains(string(text), `{"name":"SEARCH_KEY","value":"`+config.StandIn("SEARCH_KEY")+`"}`) || !strings.Contains(string(text), `"jr2-held-tls"`) {
		t.Errorf("%v: %s", err, text)
	}
}

func TestComposeRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*provision.Composition)
		is   func(error) bool
		says string
	}{
		"no Instance":         {func(c *provision.Composition) { c.Instance = nil }, request, "no Instance"},
		"no refs":             {func(c *provision.Composition) { c.Images.Custodian = "" }, request, "refs of the Kit's images"},
		"no name":             {func(c *provision.Composition) { c.Name = "" }, request, "no name"},
		"the Harness's name":  {func(c *provision.Composition) { c.Name = "jr2-instance-harness" }, request, "the Instance Harness's name"},
		"no run":              {func(c *provision.Composition) { c.Run = "" }, request, "a run id is not given"},
		"a name that is none": {func(c *provision.Composition) { c.Workflow = "a b" }, request, `"a b" can't be the name of a workflow`},
		"no key":              {func(c *provision.Composition) { c.SigningKey = config.Secret{} }, func(err error) bool { return err != nil }, "signing key"},
		"a slot without a url": {func(c *provision.Composition) {
			c.Workspace.Repos[0] = config.RepoSlot{Slot: "app", State: config.SlotPerRun}
		}, slot, "per run"},
		"a url that is none":  {func(c *provision.Composition) { c.Repos = map[string]string{"app": "./x"} }, request, `Repo Slot "app"`},
		"a url nobody admits": {func(c *provision.Composition) { c.Repos = map[string]string{"app": "https://elsewhere.test/x"} }, request, "no entry of git.credentials admits elsewhere.test/x"},
		"a Size too small": {func(c *provision.Composition) { memory := int64(1) << 20; c.Workspace.Size.Memory = &memory }, func(err error) bool {
			return errors.As(err, new(*config.SizeError))
		}, "256Mi"},
	} {
		c := composition()
		test.edit(&c)
		if _, err := provision.Compose(c); !test.is(err) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := composition()
	c.Repos = map[string]string{"app": "https://git.example.test/other"}
	if composed, err := provision.Compose(c); err != nil || composed.Sandbox.Spec.Repos[0].URL != "https://git.example.test/other" {
		t.Errorf("an admitted url: %v", err)
	}
}

func request(err error) bool { return errors.As(err, new(*provision.RequestError)) }
func slot(err error) bool    { return errors.As(err, new(*provision.SlotError)) }

// TestSandboxPodIsWhatRoomCounts: the pod that runs asks for what placement.SandboxPod asks for.
func TestSandboxPodIsWhatRoomCounts(t *testing.T) {
	composed, err := provision.Compose(composition())
	if err != nil {
		t.Fatal(err)
	}
	shape := placement.SandboxPod("my-instance", placement.KitShare(), placement.Rules{})
	spec := composed.Sandbox.Spec
	for name, want := range shape.Spec.Resources.Requests {
		if got := spec.PodResources.Requests[name]; got.Cmp(want) != 0 {
			t.Errorf("%s: %s, and room counts %s", name, got.String(), want.String())
		}
	}
	for name, want := range shape.Spec.Containers[0].Resources.Requests {
		if got := spec.Resources.Requests[name]; got.Cmp(want) != 0 {
			t.Errorf("%s of the Harness: %s, and room counts %s", name, got.String(), want.String())
		}
	}
}

func TestSandboxName(t *testing.T) {
	for _, test := range []struct {
		run    string
		path   []string
		number int
		form   string
	}{
		{"5e817334aabb", nil, 0, `^ws-5e817334-x-0-[0-9a-f]{6}$`},
		{"5e817334aabb", []string{"Review", "F 1"}, 3, `^ws-5e817334-review-f-1-3-[0-9a-f]{6}$`},
		{"RUN_9", []string{"a very long slot key that goes on and on"}, 12, `^ws-run-9-a-very-long-slot-key-12-[0-9a-f]{6}$`},
		{"", []string{"___"}, 0, `^ws-x-x-0-[0-9a-f]{6}$`},
	} {
		name := provision.SandboxName(test.run, test.path, test.number)
		if !regexp.MustCompile(test.form).MatchString(name) || len(name) > 49 {
			t.Errorf("%q, want %s", name, test.form)
		}
	}
	if a, b := provision.NewRun(), provision.NewRun(); len(a) != 32 || a == b {
		t.Errorf("run ids %q, %q", a, b)
	}
}
