package preflight

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"jr2.dev/jr2/config"
)

// A DeployKey is a Secret with which bound repositories are cloned over ssh, as it was seen.
type DeployKey struct {
	// Secret is the name that git.credentials gives as sshKey.
	Secret string
	// Repos are the repositories that share it, in walk order.
	Repos []config.Repo
	// There says that the namespace holds it. What is in it nobody looks at.
	There bool
	// Unseen is why nobody could look, when the caller may not; then There says nothing.
	Unseen error
}

// URLs are the addresses of its repositories, without passwords.
func (k DeployKey) URLs() []string {
	var urls []string
	for _, repo := range k.Repos {
		urls = append(urls, config.RedactURL(repo.URL))
	}
	return urls
}

// named is "repo A", or "repos A, B".
func (k DeployKey) named() string {
	if len(k.Repos) == 1 {
		return "repo " + k.URLs()[0]
	}
	return "repos " + strings.Join(k.URLs(), ", ")
}

// DeployKeys looks for the Secrets with which the repositories that Workflows bind are cloned over ssh (source: reference, 7.10), each once, in
// walk order. That the caller may not read one is kept with it; any other error ends the look.
func DeployKeys(ctx context.Context, secrets SecretGetter, inst *config.Instance, namespace string) ([]DeployKey, error) {
	reader := secretReader{ctx: ctx, secrets: secrets, namespace: namespace, seen: map[string]*corev1.Secret{}}
	keys, _ := boundKeys(inst)
	reader.see(keys)
	return keys, reader.err
}

// boundKeys sorts the repositories that are bound over ssh: those that share a Secret, and those that no entry of git.credentials gives one.
func boundKeys(inst *config.Instance) (keys []DeployKey, keyless []config.Repo) {
	at := map[string]int{}
	for _, repo := range inst.BoundRepos() {
		if repo.Scheme != "ssh" {
			continue
		}
		credential, _ := inst.Git.Credential(repo)
		name := credential.SecretName
		if name == "" {
			keyless = append(keyless, repo)
			continue
		}
		i, known := at[name]
		if !known {
			i = len(keys)
			at[name] = i
			keys = append(keys, DeployKey{Secret: name})
		}
		keys[i].Repos = append(keys[i].Repos, repo)
	}
	return keys, keyless
}

// see looks for each key, until an error that is not the lack of a right.
func (r *secretReader) see(keys []DeployKey) {
	for i := range keys {
		if r.err != nil {
			return
		}
		secret := r.get(keys[i].Secret)
		keys[i].There = secret != nil
		if apierrors.IsForbidden(r.err) {
			keys[i].Unseen, r.err = r.err, nil
		}
	}
}

// deployKeys are the findings: one for each Secret that is missing or can't be looked at, and one for each repository without any. None refuses: a
// converge asks for what is missing.
func (r *secretReader) deployKeys(inst *config.Instance) []Finding {
	var findings []Finding
	keys, keyless := boundKeys(inst)
	if r.err == nil {
		r.see(keys)
		for _, key := range keys {
			switch {
			case key.Unseen != nil:
				findings = append(findings, r.unseenDeployKey(key))
			case !key.There && r.err == nil:
				findings = append(findings, r.noDeployKey(key))
			}
		}
	}
	for _, repo := range keyless {
		findings = append(findings, withoutKey(repo))
	}
	return findings
}

func withoutKey(repo config.Repo) Finding {
	return Finding{
		Severity: Warn, Code: CodeDeployKeyUnnamed, Object: "Repo " + repo.Identity,
		Message: fmt.Sprintf("repo %s is cloned over ssh and no entry of git.credentials names an sshKey for it — the clone fails unless the host lets anybody in",
			config.RedactURL(repo.URL)),
		Fix: fmt.Sprintf("add { match: %q, sshKey: \"jr2-git-ssh\" } to git.credentials in jr2.config.ts", repo.Identity),
	}
}

func (r *secretReader) noDeployKey(key DeployKey) Finding {
	fix, verb := DeployKeyFix(r.namespace, key.Secret), "is"
	if len(key.Repos) > 1 {
		verb = "are"
	}
	return Finding{
		Severity: Warn, Code: CodeDeployKeyMissing, Object: "Secret " + r.namespace + "/" + key.Secret,
		Message: fmt.Sprintf("%s %s cloned with the deploy key in Secret %q, which does not exist in namespace %q — a converge asks where it is to come from; or make one and give its public half, %s.pub, to the host: %s",
			key.named(), verb, key.Secret, r.namespace, key.Secret, fix),
		Fix: fix,
	}
}

func (r *secretReader) unseenDeployKey(key DeployKey) Finding {
	return Finding{
		Severity: Note, Code: CodeNotLookedAt, Object: "Secret " + r.namespace + "/" + key.Secret,
		Message: fmt.Sprintf("nobody could say whether the deploy key of %s is there, so none is made: %v", key.named(), key.Unseen),
	}
}

// DeployKeyFix is the command that makes a deploy key and the Secret that holds it, leaves no private key in a file, and prints the public one, which is
// for the host of the repositories.
func DeployKeyFix(namespace, secret string) string {
	return fmt.Sprintf(`dir=$(mktemp -d) && ssh-keygen -q -t ed25519 -N '' -f "$dir/identity" && kubectl -n %s create secret generic %s --from-file="$dir" && cat "$dir/identity.pub" && rm -r "$dir"`,
		namespace, secret)
}
