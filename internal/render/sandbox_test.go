package render

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
)

// seats are the Sandboxes of golden files: one with the Kit's numbers, and one with everything.
func seats(t *testing.T) map[string]struct {
	in   Input
	seat SandboxSeat
} {
	memory, cpu, userMemory, userCPU := int64(8)<<30, int64(3000), int64(1)<<30, int64(500)
	repo := func(url string) config.Repo {
		address, err := config.ParseRepoURL(url)
		if err != nil {
			t.Fatal(err)
		}
		return config.Repo{URL: url, Scheme: address.Scheme, Identity: address.Identity, Key: address.Key}
	}
	return map[string]struct {
		in   Input
		seat SandboxSeat
	}{
		"sandbox-hold": {hold(t), SandboxSeat{
			Name: "ws-5e817334-x-0-61ru0u", Run: "5e817334", Workflow: "hold", Workspace: config.Workspace{Path: []string{}},
			Image: "registry.example.com/jr2-sandbox-my-instance-default:6389bdf72d50-amd64", Built: true,
			Repos: []config.Repo{repo("https://git.example.test/team/app.git")},
		}},
		"sandbox-review": {review(t), SandboxSeat{
			Name: "ws-5e817334-f-1-0-61ru0u", Run: "5e817334", Workflow: "review",
			Workspace: config.Workspace{Path: []string{"review", "F-1"}, Size: config.Limits{Memory: &memory, CPU: &cpu}, UserSize: config.Limits{Memory: &userMemory, CPU: &userCPU}},
			Image:     "registry.example.com/jr2-sandbox-review-toolbox:8f7a27452d4e-amd64", Built: true, User: "1200", UserImage: "registry.example.com/team/ide:1.4",
			Repos: []config.Repo{repo("https://git.example.test/team/service.git"), repo("git@git.example.test:team/handbook.git")},
		}},
	}
}

func TestGoldenSandboxes(t *testing.T) {
	for name, test := range seats(t) {
		box, err := Sandbox(test.in, test.seat)
		if err != nil {
			t.Fatal(err)
		}
		objects := []runtime.Object{box}
		for _, repo := range test.seat.Repos {
			objects = append(objects, Repo(test.in, repo))
		}
		got, file := manifest(t, objects), filepath.Join("testdata", name+".yaml")
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from what is rendered; look at git diff after: go test ./internal/render -update", file)
		}
		for _, secret := range []string{"literal-of-", test.in.SigningKey.Reveal(), SandboxToken(test.in.SigningKey, test.seat.Name).Reveal()} {
			if bytes.Contains(got, []byte(secret)) {
				t.Errorf("%s holds %q", name, secret)
			}
		}
	}
}

// TestSandboxNumbers are those of the Kit's Size and of the sample Instances.
func TestSandboxNumbers(t *testing.T) {
	limits := func(memory, cpu int64) config.Limits { return config.Limits{Memory: &memory, CPU: &cpu} }
	for name, test := range map[string]struct {
		workspace                          config.Workspace
		whole, harness, custodian, user, s string
	}{
		"the Kit's":        {config.Workspace{}, "2Gi/1", "1984Mi/950m", "64Mi/50m", "", "496Mi"},
		"the hold sample":  {config.Workspace{Size: limits(3<<30, 1500)}, "3Gi/1500m", "3008Mi/1450m", "64Mi/50m", "", "752Mi"},
		"the review's":     {config.Workspace{Size: limits(8<<30, 3000), UserSize: limits(1<<30, 500)}, "8Gi/3", "7104Mi/2450m", "64Mi/50m", "1Gi/500m", "1776Mi"},
		"the smallest one": {config.Workspace{Size: limits(320<<20, 51)}, "320Mi/51m", "256Mi/1m", "64Mi/50m", "", "64Mi"},
	} {
		seat := SandboxSeat{Name: "ws", Run: "r", Workflow: "w", Workspace: test.workspace, Image: "i:1", UserImage: "u:1"}
		box, err := Sandbox(hold(t), seat)
		if err != nil {
			t.Fatal(err)
		}
		text := func(r corev1.ResourceRequirements) string {
			memory, cpu := r.Limits[corev1.ResourceMemory], r.Limits[corev1.ResourceCPU]
			asked := r.Requests[corev1.ResourceMemory]
			if len(r.Limits) == 0 {
				return ""
			}
			if asked.Cmp(memory) != 0 {
				t.Errorf("%s: requests %v, limits %v", name, r.Requests, r.Limits)
			}
			return memory.String() + "/" + cpu.String()
		}
		disk := box.Spec.Resources.Requests[corev1.ResourceEphemeralStorage]
		for what, pair := range map[string][2]string{
			"the pod": {text(*box.Spec.PodResources), test.whole}, "the Harness": {text(box.Spec.Resources), test.harness},
			"the Custodian": {text(box.Spec.Sidecars[0].Resources), test.custodian}, "the User Container": {text(box.Spec.Sidecars[1].Resources), test.user},
			"/dev/shm": {box.Spec.SHMSize.String(), test.s}, "/work": {disk.String(), "10Gi"},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: %s has %s, want %s", name, what, pair[0], pair[1])
			}
		}
	}
	short := config.Workspace{Size: limits(319<<20, 1000)}
	if _, err := Sandbox(hold(t), SandboxSeat{Workspace: short, Image: "i:1"}); !errors.As(err, new(*config.SizeError)) {
		t.Errorf("319Mi: %v", err)
	}
	if _, err := Sandbox(hold(t), SandboxSeat{Workspace: config.Workspace{Size: limits(1<<30, 50)}, Image: "i:1"}); !errors.As(err, new(*config.SizeError)) {
		t.Errorf("50m: %v", err)
	}
}

// TestSandboxSeats: who runs the pod is what the image declares, and uid 1000 with a home where a built one declares nothing.
func TestSandboxSeats(t *testing.T) {
	for name, test := range map[string]struct {
		seat     SandboxSeat
		fallback bool
		refused  bool
	}{
		"a built image":            {SandboxSeat{Built: true}, true, false},
		"with a USER":              {SandboxSeat{Built: true, User: "1200"}, false, false},
		"with a USER and a group":  {SandboxSeat{Built: true, User: "1200:1200"}, false, false},
		"with a name":              {SandboxSeat{Built: true, User: "node"}, false, true},
		"with root":                {SandboxSeat{Built: true, User: "0"}, false, true},
		"with root and a group":    {SandboxSeat{Built: true, User: "0:5"}, false, true},
		"an image of somebody":     {SandboxSeat{}, false, false},
		"somebody's with any USER": {SandboxSeat{User: "root"}, false, false},
	} {
		test.seat.Name, test.seat.Image = "ws", "i:1"
		box, err := Sandbox(hold(t), test.seat)
		if test.refused {
			if !errors.As(err, new(*ImageUserError)) || !strings.HasPrefix(err.Error(), "refusing: image i:1 declares USER "+test.seat.User) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		home := slices.ContainsFunc(box.Spec.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == fallbackHome })
		uid := box.Spec.SecurityContext != nil && *box.Spec.SecurityContext.RunAsUser == 1000
		env := slices.ContainsFunc(box.Spec.Env, func(e corev1.EnvVar) bool { return e.Name == "HOME" })
		if home != test.fallback || uid != test.fallback || env != test.fallback {
			t.Errorf("%s: home %t, uid 1000 %t, HOME %t", name, home, uid, env)
		}
	}
}

// TestSandboxTokens differ by name, and from that of the Instance Harness.
func TestSandboxTokens(t *testing.T) {
	key := config.NewSecret("key")
	if SandboxToken(key, "a").Reveal() == SandboxToken(key, "b").Reveal() || SandboxToken(key, "a").Reveal() == SandboxToken(config.NewSecret("other"), "a").Reveal() {
		t.Error("two tokens are one")
	}
	if SandboxToken(key, "a").Reveal() == HarnessToken(key).Reveal() {
		t.Error("a Sandbox has the Instance Harness's token")
	}
}

// TestRepo: the credential is the entry's that admits the repository.
func TestRepo(t *testing.T) {
	in := review(t)
	for url, want := range map[string]string{"https://example.org/a": config.TokenSecretName("*"), "git@example.org:a": "jr2-git-ssh", "git://example.org/a": "", "https://example.com/a": ""} {
		address, err := config.ParseRepoURL(url)
		if err != nil {
			t.Fatal(err)
		}
		repo := Repo(in, config.Repo{URL: url, Scheme: address.Scheme, Identity: address.Identity, Key: address.Key})
		got := ""
		if repo.Spec.SecretRef != nil {
			got = repo.Spec.SecretRef.Name
		}
		if got != want || repo.Name != address.Key || repo.Labels[names.LabelBound] != "" || repo.Annotations[names.AnnotationIdentity] != address.Identity {
			t.Errorf("%s: secret %q, %+v", url, got, repo.ObjectMeta)
		}
	}
	in.Instance.Workflows[0].Workspaces[0].Repos = []config.RepoSlot{{Slot: "a", State: config.SlotBound, URL: "https://example.org/a.git"}}
	if repo := Repo(in, config.Repo{URL: "https://example.org/a", Identity: "example.org/a", Key: "a"}); repo.Labels[names.LabelBound] != "true" {
		t.Errorf("a bound one: %v", repo.Labels)
	}
}
