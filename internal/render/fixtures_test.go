package render

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/config"
)

func text(s string) *string { return &s }

// kitFor resolves the published Kit.
func kitFor(t *testing.T, version string) Kit {
	t.Helper()
	kit, err := KitOf(version, nil)
	if err != nil {
		t.Fatal(err)
	}
	return kit
}

func inputFor(t *testing.T, inst *config.Instance) Input {
	t.Helper()
	return Input{
		Instance: inst, Kit: kitFor(t, inst.KitVersion),
		ImageMap:   "{\n  \"harness\": \"ghcr.io/snapwich/jr2-harness:0.3.0\"\n}",
		SigningKey: config.NewSecret("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="),
	}
}

// ping is the least Instance: one Workflow, no Agent, no Workspace.
func ping(t *testing.T) Input {
	return inputFor(t, &config.Instance{
		Name: "ping", KitVersion: "0.3.0",
		Workflows: []config.Workflow{{Name: "ping", MachineID: "ping"}},
	})
}

// hold makes Sandboxes, on nodes of their own and under classes of the cluster.
func hold(t *testing.T) Input {
	return inputFor(t, &config.Instance{
		Name: "my-instance", KitVersion: "0.3.0",
		Sandbox: config.Sandbox{
			NodeSelector: map[string]string{"pool": "agents"},
			Tolerations:  []corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpEqual, Value: "agents", Effect: corev1.TaintEffectNoSchedule}},
		},
		PriorityClasses: config.PriorityClasses{Control: text("platform-critical"), Sandbox: text("batch-low")},
		Workflows: []config.Workflow{
			{Name: "hold", MachineID: "hold", Workspaces: []config.Workspace{{}}},
			{Name: "ping", MachineID: "ping"},
		},
	})
}

// review uses everything: Agents with and without a Workspace, a provider, held secrets, an environment, a CA bundle, git tokens.
func review(t *testing.T) Input {
	in := inputFor(t, &config.Instance{
		Name: "review", KitVersion: "0.3.0",
		Git: config.Git{Credentials: []config.GitCredential{
			{Match: "*", Token: "JR2_GIT_TOKEN", SSHKey: "jr2-git-ssh"}, {Match: "github.com/org/", Token: "UNSET"}, {Match: "example.com/"}}},
		Secrets: []config.HeldSecret{
			{Name: "SEARCH_KEY", Value: config.NewSecret("literal-of-search"), Hosts: []string{"search.example.com"}},
			{Name: "TRACKER", ValueFrom: &config.SecretKeyRef{Name: "tracker", Key: "token"}, Hosts: []string{"t.example.com:8443"},
				Headers: []string{"x-token"}, Paths: []string{"/api/"}},
		},
		Harness: config.Harness{
			Provider: &config.Provider{ID: "gw", API: "openai-completions", BaseURL: "https://Models.Example.com/v1", APIKey: config.NewSecret("literal-of-provider"),
				ContextWindow: 200000, Models: map[string]config.ModelLimits{"big": {MaxTokens: 8192}}},
			Catalog: map[string]config.Catalog{"anthropic": {BaseURL: "https://gw.example.com/anthropic"}},
			Env: []config.HarnessEnv{
				{Name: "LOG_LEVEL", Value: config.NewSecret("literal-of-log-level")},
				{Name: "REGION", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: "place"}, Key: "region"}}},
				// The kit's own value of this name comes later and wins.
				{Name: "JR2_MENU_ONLY", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			},
			EnvFrom:  []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "flags"}}}},
			CABundle: "ca.pem",
		},
		Workflows: []config.Workflow{{
			Name: "review", MachineID: "review",
			Agents: []config.Agent{
				{Name: "author", Path: []string{}, Model: "gw/big", Access: "write"},
				{Name: "triage", Path: []string{"triage"}, Model: "gw/big", Access: "none"},
			},
			Workspaces: []config.Workspace{{Image: "file:///src/review/images/tools/"}},
		}},
	})
	in.Namespace = "team-review"
	in.CABundle = []byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
	in.Env = func(name string) (string, bool) {
		value, ok := map[string]string{"JR2_GIT_TOKEN": "literal-of-git"}[name]
		return value, ok
	}
	in.Certificates = StandInCertificates(in)
	return in
}
