package devcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"jr2.dev/jr2/internal/devcluster/build"
)

// DockerEnv names the environment variable that says where Docker Engine's executables are: dockerd, containerd and its shim, with the
// folders of Debian's packages docker.io and containerd. Default: docker in the cache of package build, where .ci/deps.sh puts them.
const DockerEnv = "JR2_DOCKER_DIR"

// ErrNoDocker is the cause where a Docker Engine can't run here: not Linux, not root, or its executables are not there.
var ErrNoDocker = errors.New("no Docker Engine here")

// DockerOptions say what engine to start. The zero value works.
type DockerOptions struct {
	// Reach are addresses on this machine's loopback ("127.0.0.1:PORT"), such as a Registry's, that the engine reaches under the same
	// address: it has a network of its own.
	Reach []string
	// CacheDir holds the executables that are built. Default: see build.Cache.
	CacheDir string
	// Log takes progress of the executables' build. Default: silent.
	Log func(line string)
}

// A Dockerd is a Docker Engine that is a child of this process, in a network and a mount namespace of its own.
type Dockerd struct {
	// Host is what DOCKER_HOST takes: unix://….
	Host string

	dir       *workdir
	socketDir string
	spawner   *spawner
	process   *process
	listeners []net.Listener
	closing   sync.Once
}

// StartDockerd starts an engine and returns when it takes calls. ctx bounds the start, Close ends it with all that runs in it.
func StartDockerd(ctx context.Context, options DockerOptions) (*Dockerd, error) {
	if err := CanBuildkit(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoDocker, err)
	}
	packages, err := dockerDir()
	if err != nil {
		return nil, err
	}
	cache := &build.Cache{Dir: options.CacheDir, Log: options.Log}
	runc, err := cache.Ensure(ctx, build.Runc())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoDocker, err)
	}
	d := &Dockerd{spawner: newSpawner()}
	if d.dir, err = openWorkdir(""); err != nil {
		d.spawner.close()
		return nil, err
	}
	path := []string{filepath.Join(packages, "usr", "bin"), filepath.Join(packages, "usr", "sbin"), runc, os.Getenv("PATH")}
	if err := d.start(ctx, options, path); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// dockerDir is where the engine's packages are unpacked.
func dockerDir() (string, error) {
	dir := os.Getenv(DockerEnv)
	if dir == "" {
		root, err := (&build.Cache{}).Root()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(root, "docker")
	}
	if _, err := os.Stat(filepath.Join(dir, "usr", "sbin", "dockerd")); err != nil {
		return "", fmt.Errorf("%w: %w (.ci/deps.sh fetches it, %s names another place)", ErrNoDocker, err, DockerEnv)
	}
	return dir, nil
}

func (d *Dockerd) start(ctx context.Context, options DockerOptions, path []string) error {
	var err error
	if d.socketDir, err = os.MkdirTemp("", "devcluster-"); err != nil { // the address of a socket has room for about 100 bytes
		return err
	}
	config := d.dir.path("daemon.json") // else it reads the machine's own
	if err := writeFile(config, []byte("{}")); err != nil {
		return err
	}
	socket := filepath.Join(d.socketDir, "docker.sock")
	d.Host = "unix://" + socket
	d.process, err = d.spawner.runNetworked(d.dir.dir, "dockerd", "env", "PATH="+strings.Join(path, string(os.PathListSeparator)), "dockerd",
		"--host", d.Host, "--data-root", d.dir.path("data"), "--exec-root", d.dir.path("exec"), "--pidfile", d.dir.path("dockerd.pid"),
		"--config-file", config, "--iptables=false", "--ip-masq=false", "--ip-forward=false")
	if err != nil {
		return err
	}
	if d.listeners, err = listenIn(d.process, options.Reach); err != nil {
		return err
	}
	for i, listener := range d.listeners {
		address := options.Reach[i]
		go forward(listener, func() (net.Conn, error) { return net.Dial("tcp", address) })
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	return pollWhile(ctx, []*process{d.process}, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/_ping", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("the engine's ping: %s", response.Status)
		}
		return nil
	})
}

// Close ends the engine and removes its images.
func (d *Dockerd) Close() error {
	var err error
	d.closing.Do(func() {
		for _, listener := range d.listeners {
			listener.Close() //nolint:errcheck // nobody is left to be told
		}
		if d.process != nil {
			d.process.stop(10 * time.Second)
		}
		d.spawner.close()
		if d.socketDir != "" {
			err = os.RemoveAll(d.socketDir)
		}
		err = errors.Join(err, d.dir.close())
	})
	return err
}
