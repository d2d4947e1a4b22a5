package narrate_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"jr2.dev/jr2/internal/event"
	"jr2.dev/jr2/internal/narrate"
)

// golden holds the lines of every event that has some, in each of its forms.
func golden() []struct {
	event event.Event
	lines string
} {
	return []struct {
		event event.Event
		lines string
	}{
		{event.EnvApplied{Names: []string{"JR2_REGISTRY", "JR2_GIT_TOKEN"}}, `→ .env: JR2_REGISTRY, JR2_GIT_TOKEN`},
		{event.Started{Instance: "app", Context: "shared", Namespace: "team-a"}, `jr2 up — instance "app" → context shared / namespace team-a`},
		{event.PlanStarted{Instance: "app", Context: "shared", Namespace: "team-a"}, `jr2 plan — instance "app" → context shared / namespace team-a`},
		{event.TypecheckStarted{}, `typecheck: tsc --noEmit (the instance's own compiler)`},
		{event.TypecheckSkipped{Reason: "the instance has no tsconfig.json"}, `typecheck: skipped — the instance has no tsconfig.json`},
		{event.Noted{Message: "the registry is slow"}, `warning: the registry is slow`},
		{event.Walked{Agents: []string{"ana", "bo"}, Workflows: []string{"hold", "ping"}}, `workflows: hold, ping — agents: ana, bo`},
		{event.Walked{}, `workflows: none — agents: none`},
		{event.KubernetesFound{Version: "v1.36.1", Floor: "1.35"}, `kubernetes: v1.36.1 (floor 1.35, ADR-0037)`},
		{event.PlatformsResolved{Platforms: []string{"linux/amd64"}, Nodes: 2, Skipped: []string{"s390x"}}, `platforms: linux/amd64 (from 2 schedulable node(s))
  skipping node arch s390x — the kit publishes no Kit image for it, so no pod there could run`},
		{event.PlatformsResolved{Platforms: []string{"linux/amd64", "linux/arm64"}, FromConfig: true},
			"platforms: linux/amd64, linux/arm64 (named by `platforms` in jr2.config.ts; the nodes were not read)"},
		{event.SandboxNodes{Names: []string{"a", "b"}, Excluded: []event.ExcludedNode{{Name: "c", Reason: "cordoned"}}}, `sandbox nodes: a, b`},
		{event.SandboxNodes{Excluded: []event.ExcludedNode{{Name: "c", Reason: "cordoned"}}}, `warning: no Sandbox node right now — a Sandbox stays Pending until one appears:
  c: cordoned
  a Sandbox lands where an ordinary pod lands; to admit a tainted or labeled node, set ` + "`sandbox: { nodeSelector, tolerations }`" + ` in jr2.config.ts (raw pod-spec shapes, ADR-0052).`},
		{event.SizeTooLarge{Memory: "3Gi", CPU: "1500m", Workflows: []string{"hold", "review"}},
			`warning: no Sandbox node right now has the allocatable for a Size of memory 3Gi, cpu 1500m (workflow "hold", "review") — its Sandbox stays Pending until one does`},
		{event.KitResolved{Version: "0.9.2", Home: "ghcr.io/kit", Custodian: "ghcr.io/kit/custodian:0.9.2"}, `images: installed kit — the published v0.9.2 Harness, operator and Orchestrator, pulled from ghcr.io/kit
  custodian: ghcr.io/kit/custodian:0.9.2`},
		{event.KitResolved{Version: "0.9.2", Home: "mirror/kit", Custodian: "mirror/kit/custodian:0.9.2", Mirrored: true}, `images: installed kit — the published v0.9.2 Harness, operator and Orchestrator, pulled from mirror/kit (kitRegistry)
  custodian: mirror/kit/custodian:0.9.2`},
		{event.PriorityClassesNamed{Control: "critical", Sandbox: "batch"}, `priority: the Instance's own — control "critical", sandbox "batch"`},
		{event.PriorityClassesNamed{Sandbox: "batch"}, `priority: the Instance's own — sandbox "batch"`},
		{event.NamespaceApplied{Name: "team-a", Action: "created"}, `namespace: "team-a" created`},
		{event.LockWaiting{Holder: "ana@laptop, process 7", Since: time.Date(2026, 2, 3, 5, 5, 6, 0, time.FixedZone("", 3600))},
			`waiting: ana@laptop, process 7 converges this Instance since 2026-02-03T04:05:06Z`},
		{event.LockWaiting{Holder: "ana", Fix: "kubectl delete lease l -n n"}, `waiting: ana converges this Instance since 0001-01-01T00:00:00Z
  when nobody of that name is at work: kubectl delete lease l -n n`},
		{event.ImagesNotNeeded{Reason: "no registered Machine makes a Sandbox"}, `sandbox images: none — no registered Machine makes a Sandbox`},
		{event.ImageFresh{Name: "default", Ref: "reg/app:1", Source: "record"}, `sandbox image "default": reg/app:1 is delivered already, says the record (--force rebuilds it)`},
		{event.ImageBuilding{Name: "default", Ref: "reg/app:1"}, `sandbox image "default": building reg/app:1`},
		{event.ImageUser{Name: "default"}, `  no USER declared — the pod's uid-1000 fallback applies`},
		{event.ImageUser{Name: "default", User: "node"}, `  USER node`},
		{event.ImagePushed{Name: "default", Registry: "reg", Platforms: []string{"linux/amd64"}}, `  push → reg`},
		{event.ImagePushed{Name: "default", Registry: "reg", Platforms: []string{"linux/amd64", "linux/arm64"}}, `  push → reg (one manifest list: linux/amd64, linux/arm64)`},
		{event.ImageLoaded{Name: "default", Cluster: "dev"}, `  load → every node of kind cluster dev`},
		{event.ImageFresh{Name: "default", Ref: "x:1", Source: "nodes"}, `sandbox image "default": x:1 is delivered already, say the nodes (--force rebuilds it)`},
		{event.Applied{Layer: "operator", Unchanged: 7}, `operator: unchanged (7 objects)`},
		{event.Applied{Layer: "operator", Unchanged: 5, Changes: []event.Change{{Action: "created", Object: "Service a/b"}, {Action: "replaced", Object: "Job a/c", Why: "its image moved"}}}, `operator: applied (2 changed, 5 unchanged)
  Service a/b created
  Job a/c replaced — its image moved`},
		{event.ApplyWaiting{Object: "Job a/c", Reason: "its pods end"}, `  Job a/c waits: its pods end`},
		{event.SecretHeld{Name: "TRACKER", Hosts: []string{"t.example.com:8443", "u.example.com:443"}, Source: `key "token" of Secret tracker`},
			`held secret TRACKER: for t.example.com:8443, u.example.com:443, from key "token" of Secret tracker`},
		{event.CertificateMade{Why: "there is none"}, `certificates: made the authority of held secrets (there is none)`},
		{event.CertificateMade{Host: "t.example.com:8443", Why: "a new authority"}, `certificates: made that of t.example.com:8443 (a new authority)`},
		{event.DeployKeyNeeded{Namespace: "team-a", Secret: "git-ssh", Repos: []string{"git@h.test:a.git", "git@h.test:b.git"}}, `deploy key: that of git@h.test:a.git, git@h.test:b.git belongs in Secret "git-ssh", which is not there yet
  warning: whoever may read Secrets in namespace "team-a" can read the private key there — let it open these repositories alone`},
		{event.DeployKeyMade{Secret: "git-ssh", Repos: []string{"git@h.test:a.git"}, Generated: true, PublicKey: "ssh-ed25519 AAAA jr2", Fingerprint: "SHA256:x"},
			"deploy key: generated SHA256:x in Secret \"git-ssh\" — add its public key to the deploy keys of git@h.test:a.git:\n  ssh-ed25519 AAAA jr2"},
		{event.DeployKeyMade{Secret: "git-ssh", Repos: []string{"git@h.test:a.git"}, Fingerprint: "SHA256:x"}, `deploy key: the key SHA256:x is in Secret "git-ssh", for git@h.test:a.git`},
		{event.DeployKeyReminder{Secret: "git-ssh", Repos: []string{"git@h.test:a.git", "git@h.test:b.git"}, PublicKey: "ssh-ed25519 AAAA jr2"},
			"deploy key: unless you did, add the public key of Secret \"git-ssh\" to the deploy keys of git@h.test:a.git and git@h.test:b.git, or to an account that may read them all:\n  ssh-ed25519 AAAA jr2"},
		{event.ModelsSkipped{Reason: "no Agent names a model"}, `models: none asked — no Agent names a model`},
		{event.ModelAsked{Model: "local/qwen", BaseURL: "http://10.0.0.7:11434/v1"}, `model "local/qwen": asking http://10.0.0.7:11434/v1 from a pod`},
		{event.ModelAnswered{Model: "local/qwen"}, `model "local/qwen": answers, and calls a tool`},
		{event.ModelAnswered{Model: "local/qwen", Code: "model-unknown"}, `model "local/qwen": model-unknown`},
		{event.OperatorLeftAlone{Deployed: "2.0.0", Kit: "1.9.0"}, `operator: v2.0.0 runs here, newer than this Kit's v1.9.0 — left alone`},
		{event.OperatorNotManaged{}, `operator: not managed — operator.manage is false in jr2.config.ts`},
		{event.RolloutWaiting{Layer: "operator", Message: "0 of 1 updated pods are ready"}, `  operator: 0 of 1 updated pods are ready`},
		{event.Verified{Layer: "operator", Selector: "app=x", Pods: 1, Image: "i@sha256:0"}, `operator: verified — 1 pod(s) run i@sha256:0`},
		{event.Verified{Layer: "repo cache", Selector: "app=jr2-repo-cache"}, `repo cache: WARNING — rollout succeeded but no pod matched app=jr2-repo-cache (nothing verified)`},
		{event.AssemblyPublishing{Hash: "0a1b2c3d4e5f"}, `assembly: publishing 0a1b2c3d4e5f (no current Assembly)`},
		{event.AssemblyPublishing{Hash: "0a1b2c3d4e5f", Previous: "f5e4d3c2b1a0"}, `assembly: publishing 0a1b2c3d4e5f (replaces f5e4d3c2b1a0)`},
		{event.AssemblyCurrent{Hash: "0a1b2c3d4e5f", Workflows: []string{"hold", "ping"}}, `assembly: 0a1b2c3d4e5f is current — workflows: hold, ping`},
		{event.WorkspacesOnOlderImages{Image: "reg/app:0", Count: 3}, `workspaces: 3 live on reg/app:0 — they keep it; new ones use this converge's images`},
		{event.ReposBound{Count: 2}, `repos: 2 bound — the Repo cache clones them`},
		{event.Converged{Changed: 3}, "converged — `jr2 run <workflow>` when ready"},
		{event.Converged{}, "nothing changed: no image built, no object written, no pod rolled\nconverged — `jr2 run <workflow>` when ready"},
		{event.DownStarted{Instance: "app", Context: "shared", Namespace: "team-a"}, `jr2 down — instance "app" → context shared / namespace team-a`},
		{event.DownStarted{Instance: "app", Context: "shared", Namespace: "team-a", All: true}, `jr2 down — instance "app" and the operator → context shared / namespace team-a`},
		{event.NamespaceDeleting{Name: "team-a"}, `namespace team-a: deleted — waiting until everything in it is gone`},
		{event.NamespaceHeld{Name: "team-a", Reason: "a finalizer"}, `  namespace team-a waits: a finalizer`},
		{event.NamespaceGone{Name: "team-a"}, `namespace team-a: gone`},
		{event.NamespaceStays{Name: "team-a", Why: "no converge made it", Others: event.Occupants{Objects: []string{"Deployment.apps team-a/web (kubectl)"}, More: 3, Unseen: []string{"secrets (may not be listed)"}}},
			`namespace team-a: stays — no converge made it
  stays: Deployment.apps team-a/web (kubectl)
  and 3 more
  nobody could look for secrets (may not be listed)`},
		{event.InstanceRemoved{Namespace: "team-a", Changes: []event.Change{{Action: "pruned", Object: "Service team-a/s"}}}, `instance: removed (1 object)
  Service team-a/s pruned`},
		{event.ObjectWaiting{Object: "Sandbox.core.jr2.dev team-a/x", Reason: "held by example.test/hold"}, `  Sandbox.core.jr2.dev team-a/x waits: held by example.test/hold`},
		{event.OperatorRemoved{Changes: []event.Change{{Action: "pruned", Object: "Namespace a"}, {Action: "kept", Object: "Role a/b", Why: "it is not ours"}}}, `operator: removed (1 object, 1 kept)
  Namespace a pruned
  Role a/b kept — it is not ours`},
		{event.LeftInPlace{What: []string{"the classes", "images"}}, `left in place: the classes; images`},
		{event.Removed{Instance: "app", Context: "shared"}, `removed — instance "app" is gone from shared`},
		{event.RunStarted{RunID: "5e81", Workflow: "hold", Instance: "app", Context: "shared", Namespace: "team-a"},
			`jr2 run — workflow "hold" of instance "app" as run 5e81 → context shared / namespace team-a`},
		{event.WorkspaceEntered{State: "placing"}, `  → active "placing"`},
		{event.WorkspaceEntered{Child: "F-1", State: "provisioning", Node: "a"}, `  → active "F-1/provisioning"`},
		{event.PlacingWaiting{On: "quota", For: "quota", Message: quotaWords}, "  placing: waits for quota — " + quotaWords},
		{event.PlacingWaiting{Child: "F-1", On: "quota", For: "quota", Message: quotaWords}, "  placing F-1: waits for quota — " + quotaWords},
		{event.PlacingWaiting{Child: "a/b", On: "node", For: "a node", Message: "0/1 nodes are available"}, `  placing a/b: waits for a node — 0/1 nodes are available`},
		{event.PlacingEnded{Seconds: 192, Placed: true}, `  placed: after 3m12s`},
		{event.PlacingEnded{Child: "F-1", Seconds: 2, Placed: true}, `  placed F-1: after 2s`},
		{event.PlacingEnded{Child: "F-1", Seconds: 60}, `  placing F-1: given up after 1m0s`},
		{event.WorkspaceHeld{Reason: "RepoPending", Message: "app is not on node a"}, `  provisioning: RepoPending — app is not on node a`},
		{event.WorkspaceHeld{Child: "F-1", Reason: "PodNotReady"}, `  provisioning F-1: PodNotReady`},
		{event.SandboxRemoved{Sandbox: "ws-1"}, `  ws-1 deleted — it never ran`},
		{event.SandboxRemoved{Sandbox: "ws-1", Ran: true}, `  ws-1 deleted — the run is over`},
	}
}

// quotaWords are those of the source document, and what is printed is its line.
const quotaWords = `pods "ws-5e817334-x-0-61ru0u" is forbidden: exceeded quota: team-quota, requested: limits.memory=1Gi, used: limits.memory=2Gi, limited: limits.memory=512Mi`

// jsonOnly are the events that have no lines, and why.
func jsonOnly() map[string]string {
	return map[string]string{
		"BuildProgress": "a builder prints hundreds of lines; a build that fails shows its end",
	}
}

func TestLines(t *testing.T) {
	for _, test := range golden() {
		if got := strings.Join(narrate.Lines(test.event), "\n"); got != test.lines {
			t.Errorf("%T\ngot  %s\nwant %s", test.event, got, test.lines)
		}
	}
	for _, silent := range []event.Event{event.PlacingWaiting{For: "quota", Changed: true}, event.NamespaceApplied{Name: "a", Action: "created", Asked: true}, event.NamespaceApplied{Name: "a", Action: "unchanged"}, event.BuildProgress{Ref: "r", Status: "log", Line: "l"}, unknown{}, nil} {
		if lines := narrate.Lines(silent); lines != nil {
			t.Errorf("%T: got %q", silent, lines)
		}
	}
}

// unknown is an event of a later version.
type unknown struct{}

func (unknown) Type() string { return "unknown" }

// TestEveryEventIsTold reads the source of the events: a new one needs lines here, or a reason why it has none.
func TestEveryEventIsTold(t *testing.T) {
	told := jsonOnly()
	for _, test := range golden() {
		name := reflect.TypeOf(test.event).Name()
		if _, silent := jsonOnly()[name]; silent {
			t.Errorf("%s has lines and is said to have none", name)
		}
		told[name] = "has lines"
	}
	declared := events(t)
	for _, name := range declared {
		if told[name] == "" {
			t.Errorf("the event %s has no lines and is not among those without", name)
		}
	}
	for name := range told {
		if !slices.Contains(declared, name) {
			t.Errorf("there is no event %s", name)
		}
	}
}

// events are the types of package event that have the method Type.
func events(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../event/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("the source of the events: %v, %v", files, err)
	}
	var names []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if method, ok := declaration.(*ast.FuncDecl); ok && method.Recv != nil && method.Name.Name == "Type" {
				names = append(names, method.Recv.List[0].Type.(*ast.Ident).Name)
			}
		}
	}
	return names
}

func TestTo(t *testing.T) {
	var out bytes.Buffer
	tell := narrate.To(&out)
	for _, e := range []event.Event{event.TypecheckStarted{}, event.BuildProgress{}, event.Converged{}} {
		tell(e)
	}
	const want = "typecheck: tsc --noEmit (the instance's own compiler)\nnothing changed: no image built, no object written, no pod rolled\nconverged — `jr2 run <workflow>` when ready\n"
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
	narrate.To(broken{})(event.Converged{}) // a pipe that nobody reads stops nothing
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// refusal says several things.
type refusal []string

func (r refusal) Error() string      { return strings.Join(r, "\n") }
func (r refusal) Messages() []string { return slices.Clone(r) }

func TestError(t *testing.T) {
	for want, err := range map[string]error{
		"error: no kube context":                              errors.New("no kube context"),
		"refusing: shared is old":                             errors.New("refusing: shared is old"),
		"refusing: does not compile\n  a(1,1): error TS1":     errors.New("refusing: does not compile\n  a(1,1): error TS1"),
		"first contact: deploy? — not a tty":                  errors.New("first contact: deploy? — not a tty"),
		"error: namespace: refusing: is no start of a line":   errors.New("namespace: refusing: is no start of a line"),
		"error: the rollout failed\n\n  pod a\n\n  timed out": errors.New("the rollout failed\n\npod a\n\ntimed out"),
		"error: Secret a\nerror: Secret b":                    refusal{"Secret a", "Secret b"},
		"refusing: one\nerror: Secret b":                      fmt.Errorf("checks: %w", refusal{"refusing: one", "Secret b"}),
	} {
		if got := narrate.Error(err); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
