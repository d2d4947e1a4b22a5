package devcluster

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const adminUser = "devcluster-admin"

// ErrNoUser is returned for a user that Options did not name.
var ErrNoUser = errors.New("no such user in devcluster.Options")

// Kubeconfig is the path of a kubeconfig file for the admin with one context, Options.Context.
func (c *Cluster) Kubeconfig() string { return c.state.path(fileKubeconfig) }

// KubeconfigFor is Kubeconfig for one of Options.Users.
func (c *Cluster) KubeconfigFor(user string) (string, error) {
	i := slices.IndexFunc(c.options.Users, func(u User) bool { return u.Name == user })
	if i < 0 {
		return "", fmt.Errorf("%w: %s", ErrNoUser, user)
	}
	path := c.state.path(fmt.Sprintf("%s-user-%d", fileKubeconfig, i))
	return path, WriteKubeconfig(path, c.contextName(), c.configFor(user))
}

// ConfigFor is Config for one of Options.Users.
func (c *Cluster) ConfigFor(user string) (*rest.Config, error) {
	if !slices.ContainsFunc(c.options.Users, func(u User) bool { return u.Name == user }) {
		return nil, fmt.Errorf("%w: %s", ErrNoUser, user)
	}
	return c.configFor(user), nil
}

// WriteKubeconfig adds a context for the admin to the file and makes it the current one. Where the file exists, its other
// contexts stay.
func (c *Cluster) WriteKubeconfig(path, contextName string) error {
	return WriteKubeconfig(path, contextName, c.Config())
}

func (c *Cluster) contextName() string { return cmp.Or(c.options.Context, DefaultContext) }

func (c *Cluster) configFor(user string) *rest.Config {
	config := &rest.Config{
		Host:            "https://" + net.JoinHostPort(loopback, strconv.Itoa(c.state.APIPort)),
		BearerToken:     c.state.token(user),
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.state.path(fileCA)},
		QPS:             -1,
	}
	// Data, not a file: the configuration stays good when it is copied elsewhere.
	if ca, err := os.ReadFile(config.CAFile); err == nil {
		config.CAFile, config.CAData = "", ca
	}
	return config
}

// WriteKubeconfig adds a context to the file, as Cluster.WriteKubeconfig does, for any configuration.
func WriteKubeconfig(path, contextName string, config *rest.Config) error {
	all, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		all, err = clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return err
	}
	all.Clusters[contextName] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		CertificateAuthorityData: config.CAData,
		CertificateAuthority:     config.CAFile,
		InsecureSkipTLSVerify:    config.Insecure,
	}
	all.AuthInfos[contextName] = &clientcmdapi.AuthInfo{
		Token:                 config.BearerToken,
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Username:              config.Username,
		Password:              config.Password,
	}
	all.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName}
	all.CurrentContext = contextName
	data, err := clientcmd.Write(*all)
	if err != nil {
		return err
	}
	return writeFile(path, data)
}

// writeFiles writes what the components read when they start.
func (c *Cluster) writeFiles() error {
	tokens, err := c.tokenFile()
	if err != nil {
		return err
	}
	if err := writeFile(c.state.path(fileTokens), tokens); err != nil {
		return err
	}
	// Not added to the one of the last start: its context may have had another name.
	if err := os.Remove(c.Kubeconfig()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := c.WriteKubeconfig(c.Kubeconfig(), c.contextName()); err != nil {
		return err
	}
	if err := writeFile(c.state.path(filePolicy), []byte(auditPolicy)); err != nil {
		return err
	}
	return c.writeStages()
}

// tokenFile is what --token-auth-file reads: token, user, uid, groups.
func (c *Cluster) tokenFile() ([]byte, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	users := append([]User{{Name: adminUser, Groups: []string{"system:masters"}}}, c.options.Users...)
	for _, u := range users {
		if u.Name == "" {
			return nil, errors.New("a user in devcluster.Options has no name")
		}
		if err := w.Write([]string{c.state.token(u.Name), u.Name, "uid-" + u.Name, strings.Join(u.Groups, ",")}); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return out.Bytes(), w.Error()
}
