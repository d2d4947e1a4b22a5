package event

// DeployKeyNeeded says that the Secret of a deploy key is not in the namespace, and that a converge is about to ask where the key comes from. Whoever may read Secrets
// of the namespace can read it there.
type DeployKeyNeeded struct {
	Namespace string `json:"namespace"`
	Secret    string `json:"secret"`
	// Repos are the urls of the repositories that are cloned with it, as Workflows bind them, without passwords.
	Repos []string `json:"repos"`
}

// DeployKeyMade says that a deploy key is in its Secret. The private key is no part of it.
type DeployKeyMade struct {
	Namespace string   `json:"namespace"`
	Secret    string   `json:"secret"`
	Repos     []string `json:"repos"`
	// Generated says that the pair is new, so that the hosts of the repositories do not know it.
	Generated bool `json:"generated,omitempty"`
	// PublicKey is the line of authorized_keys of a pair that was generated; empty for a key that was given.
	PublicKey string `json:"publicKey,omitempty"`
	// Fingerprint is "SHA256:…".
	Fingerprint string `json:"fingerprint"`
}

// DeployKeyReminder says, at the end of the converge that generated it, to which repositories a public key has to be added.
type DeployKeyReminder struct {
	Namespace string   `json:"namespace"`
	Secret    string   `json:"secret"`
	Repos     []string `json:"repos"`
	PublicKey string   `json:"publicKey"`
}

func (DeployKeyNeeded) Type() string   { return "deployKeyNeeded" }
func (DeployKeyMade) Type() string     { return "deployKeyMade" }
func (DeployKeyReminder) Type() string { return "deployKeyReminder" }
