package devcluster

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// What is where in a cluster's directory.
const (
	fileState      = "state.json"
	fileCA         = "ca.crt"
	fileCAKey      = "ca.key"
	fileServerCert = "apiserver.crt"
	fileServerKey  = "apiserver.key"
	fileAccountKey = "sa.key"
	fileTokens     = "tokens.csv"
	fileKubeconfig = "kubeconfig"
	fileStages     = "stages.yaml"
	filePodLog     = "pod.log"
	fileAudit      = "audit.jsonl"
	filePolicy     = "audit-policy.yaml"
	dirEtcd        = "etcd"
	dirNodes       = "nodes"
)

// state is what a cluster keeps between two starts.
type state struct {
	*workdir `json:"-"`

	// APIPort stays the same so that a kubeconfig stays valid.
	APIPort int `json:"apiPort"`
	// Tokens are by user name.
	Tokens map[string]string `json:"tokens"`
}

// openState takes the directory and reads what is there.
func openState(dir string) (*state, error) {
	w, err := openWorkdir(dir)
	if err != nil {
		return nil, err
	}
	s := &state{workdir: w}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *state) load() error {
	data, err := os.ReadFile(s.path(fileState))
	if err == nil {
		err = json.Unmarshal(data, s)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the cluster in %s: %w", s.dir, err)
	}
	if s.Tokens == nil {
		s.Tokens = map[string]string{}
	}
	return ensureKeys(s.dir)
}

func (s *state) save() error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return writeFile(s.path(fileState), data)
}

// token returns the user's token and makes it the first time.
func (s *state) token(user string) string {
	if s.Tokens[user] == "" {
		s.Tokens[user] = rand.Text()
	}
	return s.Tokens[user]
}
