package devcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"jr2.dev/jr2/internal/devcluster/build"
)

// Paths inside a node.
const (
	inside           = "/run/devcluster"
	containerdSocket = "/run/containerd/containerd.sock"
)

var errPoweredOff = errors.New("the node is powered off")

// nodeBinaries are the directories of a node's executables.
type nodeBinaries struct{ kubelet, containerd, runc, cni string }

func ensureNodeBinaries(ctx context.Context, options Options) (nodeBinaries, error) {
	cache := &build.Cache{Dir: options.CacheDir, Log: options.Log}
	var bins nodeBinaries
	for _, want := range []struct {
		dir  *string
		tool build.Tool
	}{{&bins.runc, build.Runc()}, {&bins.cni, build.CNI()}, {&bins.containerd, build.Containerd()}, {&bins.kubelet, build.Kubelet()}} {
		dir, err := cache.Ensure(ctx, want.tool)
		if err != nil {
			return nodeBinaries{}, fmt.Errorf("%w: %w", ErrNoRealNode, err)
		}
		*want.dir = dir
	}
	return bins, nil
}

// machineScript is the first process of a node: it makes the node's view of the machine and then waits for orphans.
//
// The node's root is this machine's, so that the kubelet finds the tools that it calls, with the directories that a node writes to
// on top: its own. Kernel settings that hold for the whole machine are files of its own too: the kubelet sets them to what
// suits it. Mounts end with the namespace.
const machineScript = `set -e
dir=$1 name=$2 cgroups=$3 kubelet=$4 containerd=$5 runc=$6 cni=$7
export dir name kubelet containerd runc cni hierarchies=$8 etc=$dir/etc
for file in $cgroups; do echo 0 >"$file"; done
exec unshare --cgroup /bin/sh -ec '
echo "$name" >/proc/sys/kernel/hostname
mount --make-rprivate /
root=$dir/root
mkdir -p "$root" "$dir/etc" "$dir/kubelet" "$dir/containerd" "$dir/log" "$dir/sysctl"
mount --rbind / "$root"
mount -t proc proc "$root/proc"
for setting in kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes vm/overcommit_memory vm/panic_on_oom; do
	[ -e "/proc/sys/$setting" ] || continue
	copy=$dir/sysctl/${setting##*/}
	cat "/proc/sys/$setting" >"$copy"
	mount --bind "$copy" "$root/proc/sys/$setting"
done
mount -t sysfs sysfs "$root/sys"
if [ -n "$hierarchies" ]; then
	mount -t tmpfs -o mode=755 cgroup "$root/sys/fs/cgroup"
	printf "%s\n" "$hierarchies" | while read -r hierarchy options; do
		mkdir "$root/sys/fs/cgroup/$hierarchy"
		mount -t cgroup -o "$options" cgroup "$root/sys/fs/cgroup/$hierarchy"
	done
else
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
	mkdir -p "$root/sys/fs/cgroup/init"
	echo 0 >"$root/sys/fs/cgroup/init/cgroup.procs"
	for controller in $(cat "$root/sys/fs/cgroup/cgroup.controllers"); do
		echo "+$controller" >"$root/sys/fs/cgroup/cgroup.subtree_control" || true
	done
fi
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
mount -t tmpfs -o mode=755 run "$root/run"
mount -t tmpfs -o mode=755 lib "$root/var/lib"
mkdir -p "$root/var/lib/kubelet" "$root/var/lib/containerd" "$root/run/devcluster/old"
mount --bind "$dir/kubelet" "$root/var/lib/kubelet"
mount --bind "$dir/containerd" "$root/var/lib/containerd"
mount --bind "$dir/log" "$root/var/log"
for part in etc kubelet containerd runc cni; do
	mkdir -p "$root/run/devcluster/$part"
	eval "from=\$$part"
	mount --bind "$from" "$root/run/devcluster/$part"
done
cd "$root"
pivot_root . run/devcluster/old
cd /
umount -l /run/devcluster/old
mount --make-rshared /
echo >/run/devcluster/etc/ready
while :; do sleep 5; done
'`

// startMachine starts the node's first process, and its network.
func (n *RealNode) startMachine(ctx context.Context) error {
	n.mu.Lock()
	on, closed := n.machine != nil, n.closed
	n.mu.Unlock()
	if closed {
		return errClosed
	}
	if on {
		return errors.New("it is on")
	}
	// A machine has no cgroups of its last start; the kubelet would take them for containers that it can't ask about.
	if err := errors.Join(n.cgroups.remove(), n.cgroups.create()); err != nil {
		return err
	}
	if err := os.RemoveAll(n.dir.path("etc/ready")); err != nil {
		return err
	}
	machine, err := n.spawner.runMachine(n.dir.dir, "machine", machineScript, n.dir.dir, n.Name, n.cgroups.join(),
		n.bins.kubelet, n.bins.containerd, n.bins.runc, n.bins.cni, n.cgroups.mounts())
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.machine = machine
	n.mu.Unlock()
	n.cluster.watch(machine)
	if err := n.connect(ctx, machine); err != nil {
		return err
	}
	return pollWhile(ctx, []*process{machine}, func(context.Context) error {
		_, err := os.Stat(n.dir.path("etc/ready"))
		return err
	})
}

// command is what runs a command inside the node: it joins the node's cgroups and namespaces first.
func (n *RealNode) command(name string, args ...string) (string, []string, error) {
	n.mu.Lock()
	machine := n.machine
	n.mu.Unlock()
	if machine == nil {
		return "", nil, errPoweredOff
	}
	script := fmt.Sprintf(`for file in $1; do echo 0 >"$file"; done; shift
exec nsenter --target %d --mount --uts --ipc --net --pid --cgroup --wd=/ env TMPDIR=/tmp HOME=/root \
	PATH=%[2]s/containerd:%[2]s/runc:"$PATH" "$@"`, machine.cmd.Process.Pid, inside)
	return "/bin/sh", append([]string{"-ec", script, "sh", n.cgroups.joinInside(), name}, args...), nil
}

// runInside starts a component in the node.
func (n *RealNode) runInside(name string, args ...string) (*process, error) {
	shell, all, err := n.command(name, args...)
	if err != nil {
		return nil, err
	}
	return n.spawner.run(n.dir.dir, filepath.Base(name), shell, all...)
}

func (n *RealNode) startContainerd(ctx context.Context) error {
	containerd, err := n.runInside(inside+"/containerd/containerd", "--config", inside+"/etc/containerd.toml")
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.containerd = containerd
	// What is in the node's mount namespace is seen from here below the root of a process in there.
	socket := fmt.Sprintf("/proc/%d/root%s", n.machine.cmd.Process.Pid, containerdSocket)
	n.mu.Unlock()
	n.cluster.watch(containerd)
	return pollWhile(ctx, []*process{containerd}, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// forwardKubelet lets this machine reach the kubelet: the API server dials it for logs and exec.
func (n *RealNode) forwardKubelet() error {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return err
	}
	n.forwarder = listener
	n.kubeletPort = listener.Addr().(*net.TCPAddr).Port
	go forward(listener, func() (net.Conn, error) {
		n.mu.Lock()
		machine := n.machine
		n.mu.Unlock()
		if machine == nil {
			return nil, errPoweredOff
		}
		return dialIn(machine, listener.Addr().String())
	})
	return nil
}

func (c *Cluster) newRealNode(options RealNodeOptions, bins nodeBinaries) (*RealNode, error) {
	if c.isClosed() {
		return nil, fmt.Errorf("the cluster: %w", errClosed)
	}
	n := &RealNode{Name: options.Name, cluster: c, options: options, bins: bins}
	var err error
	// The cluster's port is what no other cluster has now.
	if n.cgroups, err = newCgroupTree(fmt.Sprintf("%d-%s", c.state.APIPort, options.Name)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRealNode, err)
	}
	if n.dir, err = openWorkdir(filepath.Join(c.state.dir, dirNodes, options.Name)); err != nil {
		return nil, err
	}
	n.dir.temporary = c.state.temporary
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.Join(fmt.Errorf("the cluster: %w", errClosed), n.dir.close())
	}
	used := func(index int) bool {
		return slices.ContainsFunc(c.realNodes, func(other *RealNode) bool { return other.index == index })
	}
	for n.index = 1; used(n.index); n.index++ {
	}
	if n.index > maxRealNodes {
		return nil, errors.Join(fmt.Errorf("a cluster has at most %d", maxRealNodes), n.dir.close())
	}
	n.Address = nodeAddress(n.index)
	n.ways = map[string]string{c.apiAddress(): c.apiAddress(), kubernetesService + ":443": c.apiAddress()}
	n.spawner = newSpawner()
	c.realNodes = append(c.realNodes, n)
	return n, nil
}

func (c *Cluster) forgetRealNode(n *RealNode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.realNodes = slices.DeleteFunc(c.realNodes, func(other *RealNode) bool { return other == n })
}

func (c *Cluster) closeRealNodes() error {
	c.mu.Lock()
	nodes, wire := slices.Clone(c.realNodes), c.wire
	c.wire = nil
	c.mu.Unlock()
	var errs []error
	for _, n := range nodes {
		errs = append(errs, n.close())
	}
	c.end(wire)
	return errors.Join(errs...)
}

// waitReady waits until the node is Ready in this start's words, and the controllers' taints have followed.
func (n *RealNode) waitReady(ctx context.Context) error {
	n.mu.Lock()
	running := []*process{n.kubelet, n.containerd, n.machine}
	n.mu.Unlock()
	since := time.Now()
	return pollWhile(ctx, running, func(ctx context.Context) error { return n.readySince(ctx, since) })
}
