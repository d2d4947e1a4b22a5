package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/config"
)

// problemAt validates a Go value and wants a FieldError there whose problem holds a word; an empty path wants none.
func problemAt(t *testing.T, inst *config.Instance, path, word string) {
	t.Helper()
	inst.Name = "x"
	err := config.Validate(inst)
	if path == "" {
		if err != nil {
			t.Errorf("got %v", err)
		}
		return
	}
	var field *config.FieldError
	if !errors.As(err, &field) || field.Path != path || !strings.Contains(field.Problem, word) || field.Hint == "" {
		t.Errorf("got %v, want %s: … %s …", err, path, word)
	}
}

// TestTokenNames: the Orchestrator has its tokens as its environment, so some names are not free.
func TestTokenNames(t *testing.T) {
	for name, word := range map[string]string{
		"JR2_GIT_TOKEN": "", "JR2_GITHUB_TOKEN": "", "TEAM_TOKEN": "", "GIT_TOKEN": "", "gitlab_token": "", "NPM_TOKEN": "", "_T1": "",
		"JR2_INSTANCE_TOKEN": "Kit's own", "JR2_SIGNING_KEY": "Kit's own", "JR2_INSTANCE_HARNESS_TOKEN": "Kit's own", "JR2_NAMESPACE": "Kit's own",
		"JR2_ASSEMBLY": "Kit's own", "JR2_SANDBOX_TOKEN": "Kit's own", "JR2_": "Kit's own",
		"PATH": "process", "HOME": "process", "LD_PRELOAD": "process", "NODE_OPTIONS": "process", "KUBERNETES_SERVICE_HOST": "process", "https_proxy": "process",
		"NO_PROXY": "process", "SSL_CERT_DIR": "process", "NODE_EXTRA_CA_CERTS": "process", "GIT_SSH_COMMAND": "process", "GIT_CONFIG_COUNT": "process",
		"1TOKEN": "is no name", "A-B": "is no name", "a.b": "is no name", "A=B": "is no name", "A\nB": "is no name", "Ä": "is no name",
		"ghp_0123456789abcdefghij0123": "looks like a token", "github_pat_0123456789abcdefghij": "looks like a token",
	} {
		path := "git.credentials[1].token"
		if word == "" {
			path = ""
		}
		inst := &config.Instance{Git: config.Git{Credentials: []config.GitCredential{{Match: "*"}, {Match: "h.test/", Token: name}}}}
		problemAt(t, inst, path, word)
		if err := config.Validate(inst); err != nil && strings.Contains(word, "token") && strings.Contains(err.Error(), name) {
			t.Errorf("the token is shown: %v", err)
		}
	}
}

// TestReferredNames: what the configuration refers to has a name that an object or key can have.
func TestReferredNames(t *testing.T) {
	secret := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	env := func(from corev1.EnvVarSource) *config.Instance {
		return &config.Instance{Harness: config.Harness{Env: []config.HarnessEnv{{Name: "A", ValueFrom: &from}}}}
	}
	from := func(source corev1.EnvFromSource) *config.Instance {
		return &config.Instance{Harness: config.Harness{EnvFrom: []corev1.EnvFromSource{source}}}
	}
	heldBy := func(ref config.SecretKeyRef) *config.Instance {
		return &config.Instance{Secrets: []config.HeldSecret{{Name: "A", ValueFrom: &ref}}}
	}
	secretKey := func(name, key string) *config.Instance {
		return env(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: secret(name), Key: key}})
	}
	for _, c := range []struct {
		inst       *config.Instance
		path, word string
	}{
		{secretKey("a.b-c", "K_1.x"), "", ""},
		{secretKey("A_b", "k"), "harness.env[0].valueFrom.secretKeyRef.name", "no name of a Secret"},
		{secretKey("", "k"), "harness.env[0].valueFrom.secretKeyRef.name", "is empty"},
		{secretKey("a", ""), "harness.env[0].valueFrom.secretKeyRef.key", "is empty"},
		{secretKey("a", "a/b"), "harness.env[0].valueFrom.secretKeyRef.key", "no key of a Secret"},
		{secretKey("a", ".."), "harness.env[0].valueFrom.secretKeyRef.key", "no key of a Secret"},
		{secretKey(strings.Repeat("a", 254), "k"), "harness.env[0].valueFrom.secretKeyRef.name", "at most 253"},
		{env(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: secret("a b"), Key: "k"}}), "harness.env[0].valueFrom.configMapKeyRef.name", "ConfigMap"},
		{env(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}}), "harness.env[0].valueFrom.fieldRef.fieldPath", "is empty"},
		{env(corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{}}), "harness.env[0].valueFrom.fileKeyRef", "volume"},
		{from(corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: secret("a")}, Prefix: "P_"}), "", ""},
		{from(corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: secret("A")}}), "harness.envFrom[0].secretRef.name", "Secret"},
		{from(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: secret("-a")}}), "harness.envFrom[0].configMapRef.name", "ConfigMap"},
		{from(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: secret("a")}, Prefix: "1 "}), "harness.envFrom[0].prefix", "begins no name"},
		{from(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: secret("a")}, Prefix: "JR2_"}), "harness.envFrom[0].prefix", "Kit's own"},
		{heldBy(config.SecretKeyRef{Name: "a/b", Key: "k"}), "secrets[0].valueFrom.secretKeyRef.name", "Secret"},
		{heldBy(config.SecretKeyRef{Name: "ab", Key: "k\n"}), "secrets[0].valueFrom.secretKeyRef.key", "no key"},
		{&config.Instance{Git: config.Git{Credentials: []config.GitCredential{{Match: "*", SSHKey: "Deploy"}}}}, "git.credentials[0].sshKey", "no name of a Secret"},
		{deployKey("jr2-instance"), "git.credentials[0].sshKey", "a Secret of the Kit"},
		{deployKey("jr2-held-secrets"), "git.credentials[0].sshKey", "a Secret of the Kit"},
		{deployKey("jr2-held-tls"), "git.credentials[0].sshKey", "a Secret of the Kit"},
		{deployKey("jr2-held-ca"), "git.credentials[0].sshKey", "a Secret of the Kit"},
		{deployKey("jr2-harness-env"), "git.credentials[0].sshKey", "a Secret of the Kit"},
		{deployKey("jr2-git-ssh"), "", ""},
	} {
		problemAt(t, c.inst, c.path, c.word)
	}
}

func deployKey(secret string) *config.Instance {
	return &config.Instance{Git: config.Git{Credentials: []config.GitCredential{{Match: "*", SSHKey: secret}}}}
}

func TestHarnessEnvNames(t *testing.T) {
	env := func(variables ...config.HarnessEnv) *config.Instance {
		return &config.Instance{Harness: config.Harness{Env: variables}}
	}
	value := config.NewSecret("v")
	problemAt(t, env(config.HarnessEnv{Name: "PATH", Value: value}, config.HarnessEnv{Name: "B", Value: config.NewSecret("two\nlines")}), "", "")
	problemAt(t, env(config.HarnessEnv{Name: "A", Value: value}, config.HarnessEnv{Name: "A", Value: value}), "harness.env[1].name", "twice")
	problemAt(t, env(config.HarnessEnv{Name: "JR2_MENU_ONLY", Value: value}), "harness.env[0].name", "Kit's own")
	problemAt(t, env(config.HarnessEnv{Name: "A", Value: config.NewSecret("a\x00b")}), "harness.env[0].value", "NUL")
	problemAt(t, env(config.HarnessEnv{Name: "A B", Value: value}), "harness.env[0].name", "no name")
}

// TestTolerationRules are those of the API server.
func TestTolerationRules(t *testing.T) {
	seconds := int64(0)
	for _, c := range []struct {
		toleration corev1.Toleration
		at, word   string
	}{
		{corev1.Toleration{Operator: "Exists"}, "", ""},
		{corev1.Toleration{Key: "example.test/pool", Value: "a_b.c", Effect: "NoExecute", TolerationSeconds: &seconds}, "", ""},
		{corev1.Toleration{Key: "a b", Operator: "Exists"}, ".key", "no key of a taint"},
		{corev1.Toleration{Key: "a/b/c", Operator: "Exists"}, ".key", "no key of a taint"},
		{corev1.Toleration{Key: strings.Repeat("k", 64), Operator: "Exists"}, ".key", "63"},
		{corev1.Toleration{Key: "a", Value: "b c"}, ".value", "no value of a taint"},
		{corev1.Toleration{Key: "a", Operator: "Equal", Value: "-b"}, ".value", "no value of a taint"},
		{corev1.Toleration{Key: "a", Operator: "Exists", Value: "b"}, ".value", "Exists"},
		{corev1.Toleration{Key: "a", Operator: "In"}, ".operator", "Exists or Equal"},
		{corev1.Toleration{Operator: "Equal"}, ".operator", "no key"},
		{corev1.Toleration{Key: "a", Effect: "noschedule"}, ".effect", "NoSchedule"},
		{corev1.Toleration{Key: "a", TolerationSeconds: &seconds}, ".effect", "NoExecute"},
		{corev1.Toleration{Key: "a", Effect: "NoSchedule", TolerationSeconds: &seconds}, ".effect", "NoExecute"},
	} {
		path := ""
		if c.word != "" {
			path = "sandbox.tolerations[1]" + c.at
		}
		problemAt(t, &config.Instance{Sandbox: config.Sandbox{Tolerations: []corev1.Toleration{{Operator: "Exists"}, c.toleration}}}, path, c.word)
	}
}

// TestRegistries: a registry is what an image reference starts with.
func TestRegistries(t *testing.T) {
	for text, word := range map[string]string{
		"": "", "r.test": "", "r.test/team/x": "", "r.test:5000": "", "localhost:1/a": "", "team": "", "[::1]:5000/x": "", "r.test/team/": "",
		"https://r.test": "no scheme", "r.test/team:v1": "no tag", "r.test/x@sha256:" + strings.Repeat("a", 64): "no digest", "me:pw@r.test/x": "user or a password",
		"r.test:0/x": "port", "r.test:65536": "port", "r.test:5000000/x": "port", "r.test:v1": "port", "r.test:/x": "port", "r.test/Team": "lowercase", "r test": "no blanks", "r.test//x": "no prefix", "/": "no prefix",
		"r.test/a:b/c": "tag", "r.test/x\n": "no blanks", "-r.test/x": "no prefix", "r.test/" + strings.Repeat("a", 300): "no prefix", "https://me:pw@r.test": "user or a password",
	} {
		for _, field := range []string{"registry", "kitRegistry"} {
			inst := &config.Instance{}
			if field == "registry" {
				inst.Registry = &text
			} else {
				inst.KitRegistry = &text
			}
			path := field
			if word == "" {
				path = ""
			}
			problemAt(t, inst, path, word)
			if err := config.Validate(inst); err != nil && (strings.Contains(err.Error(), "pw") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("got %v", err)
			}
		}
	}
	_, err := configured(t, `export default { registry: "r.test/team:v1" };`, nil)
	if err == nil || !strings.Contains(fmt.Sprint(err), "jr2.config.ts at registry: ") {
		t.Errorf("at load: %v", err)
	}
}
