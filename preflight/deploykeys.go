package preflight

import (
	"fmt"
	"slices"

	"jr2.dev/jr2/config"
)

// deployKeys looks for the keys of repositories that Workflows bind over ssh (source: reference, 7.10). One finding for each Secret, or
// for each repository that no entry of git.credentials gives a key.
func (r *secretReader) deployKeys(inst *config.Instance) []Finding {
	var findings []Finding
	var asked []string
	for _, repo := range inst.BoundRepos() {
		if repo.Scheme != "ssh" {
			continue
		}
		credential, _ := inst.Git.Credential(repo)
		name := credential.SecretName
		switch {
		case name == "":
			findings = append(findings, keyless(repo))
		case !slices.Contains(asked, name):
			asked = append(asked, name)
			if secret := r.get(name); secret == nil && r.err == nil {
				findings = append(findings, r.noDeployKey(name, repo))
			}
		}
	}
	return findings
}

func keyless(repo config.Repo) Finding {
	return Finding{
		Severity: Warn, Code: CodeDeployKeyUnnamed, Object: "Repo " + repo.Identity,
		Message: fmt.Sprintf("repo %s is cloned over ssh and no entry of git.credentials names an sshKey for it — the clone fails unless the host lets anybody in",
			repo.URL),
		Fix: fmt.Sprintf("git: { credentials: [{ match: %q, sshKey: \"jr2-git-ssh\" }] }", repo.Identity),
	}
}

func (r *secretReader) noDeployKey(name string, repo config.Repo) Finding {
	fix := fmt.Sprintf("kubectl -n %s create secret generic %s --from-file=identity=<path of a private key without a passphrase>", r.namespace, name)
	return Finding{
		Severity: Warn, Code: CodeDeployKeyMissing, Object: "Secret " + r.namespace + "/" + name,
		Message: fmt.Sprintf("repo %s is cloned with the deploy key in Secret %q, which does not exist in namespace %q, so the clone fails — create it: %s",
			repo.URL, name, r.namespace, fix),
		Fix: fix,
	}
}
