package config

import "strings"

// A RepoCredential is what a converge hands out for a repository.
type RepoCredential struct {
	Entry GitCredential
	// TokenEnv is the environment variable that holds the token, for https and http; empty for other schemes.
	TokenEnv string
	// SecretName is the Secret that the Repo object names: the one made from the token, or the deploy key. Empty means an
	// anonymous clone.
	SecretName string
}

// Match finds the entry for a repository identity: the longest prefix wins, "*" counts as length 0, equal lengths go to the first.
// false means that no entry admits it: a url that arrives as run input is then refused, one bound in code needs none.
func (g Git) Match(identity string) (GitCredential, bool) {
	best, length := GitCredential{}, -1
	for _, entry := range g.Credentials {
		n := len(entry.Match)
		if entry.Match == "*" {
			n = 0
		} else if !strings.HasPrefix(identity, entry.Match) {
			continue
		}
		if n > length {
			best, length = entry, n
		}
	}
	return best, length >= 0
}

// Credential finds what a bound repository is cloned with. https and http use the entry's token, ssh its deploy key; git:// and
// local paths use none.
func (g Git) Credential(repo Repo) (RepoCredential, bool) {
	entry, ok := g.Match(repo.Identity)
	if !ok {
		return RepoCredential{}, false
	}
	out := RepoCredential{Entry: entry}
	switch repo.Scheme {
	case "https", "http":
		if out.TokenEnv = entry.Token; entry.Token != "" {
			out.SecretName = TokenSecretName(entry.Match)
		}
	case "ssh":
		out.SecretName = entry.SSHKey
	}
	return out, true
}

// TokenSecretName is the name of the Secret that the Orchestrator derives from the token of an entry.
func TokenSecretName(match string) string { return "jr2-git-" + shortHash(match) }
