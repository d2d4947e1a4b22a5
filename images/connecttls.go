package images

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moby/buildkit/client"
)

func (o ConnectOptions) tls() ([]client.ClientOpt, error) {
	ca, cert, key := o.CACert, o.Cert, o.Key
	if o.TLSDir != "" {
		if ca != "" || cert != "" || key != "" {
			return nil, errors.New("TLSDir and CACert, Cert or Key exclude each other")
		}
		var err error
		if ca, cert, key, err = tlsFiles(o.TLSDir); err != nil {
			return nil, err
		}
	}
	var out []client.ClientOpt
	if ca != "" {
		out = append(out, client.WithServerConfig(o.ServerName, ca))
	} else if o.ServerName != "" || cert != "" {
		out = append(out, client.WithServerConfigSystem(o.ServerName))
	}
	if cert != "" || key != "" {
		out = append(out, client.WithCredentials(cert, key))
	}
	return out, nil
}

// tlsFiles finds the three files of a folder.
//
// Source: BuildKit, cmd/buildctl/common (resolveTLSFilesFromDir).
func tlsFiles(dir string) (ca, cert, key string, err error) {
	for _, file := range []struct {
		into  *string
		names [2]string
	}{{&ca, [2]string{"ca.pem", "ca.crt"}}, {&cert, [2]string{"cert.pem", "tls.crt"}}, {&key, [2]string{"key.pem", "tls.key"}}} {
		for _, name := range file.names {
			path := filepath.Join(dir, name)
			if _, err := os.Stat(path); err == nil {
				*file.into = path
				break
			} else if !os.IsNotExist(err) {
				return "", "", "", err
			}
		}
		if *file.into == "" {
			return "", "", "", fmt.Errorf("%s holds neither %s nor %s", dir, file.names[0], file.names[1])
		}
	}
	return ca, cert, key, nil
}
