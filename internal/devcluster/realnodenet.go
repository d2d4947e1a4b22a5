package devcluster

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
)

// The network of a cluster's real nodes is one Ethernet with a bridge on each node: node N and its pods are 10.244.N.1 and up. It
// is in no network of this machine, so that clusters can have the same addresses side by side.
const (
	nodeNetwork  = "10.244.0.0/16"
	nodeBridge   = "cni0"
	nodeUplink   = "uplink"
	maxRealNodes = 250
	// kubernetesService is the address of the Service "kubernetes": the first of serviceRange.
	kubernetesService = "10.96.0.1"
)

func nodeAddress(index int) string { return fmt.Sprintf("10.244.%d.1", index) }

// wireScript is the switch between the nodes: a bridge in a network of its own.
const wireScript = `set -e
ip link add name switch type bridge
ip link set switch up
while :; do sleep 5; done`

// connect plugs the node into the cluster's network and gives it its addresses.
func (n *RealNode) connect(ctx context.Context, machine *process) error {
	wire, err := n.cluster.ensureWire(ctx)
	if err != nil {
		return err
	}
	port := "node" + strconv.Itoa(n.index)
	// What a node that was powered off leaves behind may be there for a moment.
	err = inNetwork(ctx, wire, `ip link delete "$1" 2>/dev/null || true
ip link add name "$1" type veth peer name `+nodeUplink+` netns "$2"
ip link set "$1" master switch up`, port, strconv.Itoa(machine.cmd.Process.Pid))
	if err != nil {
		return err
	}
	err = inNetwork(ctx, machine, `ip link set lo up
ip address add `+kubernetesService+`/32 dev lo
ip link add name `+nodeBridge+` type bridge
ip address add "$1/16" dev `+nodeBridge+`
ip link set `+nodeUplink+` master `+nodeBridge+` up
ip link set `+nodeBridge+` up
echo 1 >/proc/sys/net/ipv4/ip_forward`, n.Address)
	if err != nil {
		return err
	}
	return n.openWays()
}

// openWays opens all ways again, after a start.
func (n *RealNode) openWays() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for in, out := range n.ways {
		if err := n.open(in, out); err != nil {
			return err
		}
	}
	return nil
}

// reach lets the node, and what in its network can reach the address, reach an address of this machine.
func (n *RealNode) reach(in, out string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ways[in] == out {
		return nil
	}
	n.ways[in] = out
	if n.machine == nil {
		return nil
	}
	return n.open(in, out)
}

func (n *RealNode) open(in, out string) error {
	listeners, err := listenIn(n.machine, []string{in})
	if err != nil {
		return err
	}
	n.listeners = append(n.listeners, listeners...)
	for _, listener := range listeners {
		go forward(listener, func() (net.Conn, error) { return net.Dial("tcp", out) })
	}
	return nil
}

// Expose lets pods reach a server of this machine, such as a test's own on "127.0.0.1:PORT", and returns the address that they use. It
// holds as long as the node lives.
func (n *RealNode) Expose(address string) (string, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	in := net.JoinHostPort(n.Address, port)
	return in, n.reach(in, address)
}

// Unplug cuts the node off from the other nodes: what is sent to it gets no answer. It stays Ready, because its kubelet reaches the API
// server another way.
func (n *RealNode) Unplug(ctx context.Context) error { return n.plug(ctx, "down") }

// Plug undoes Unplug.
func (n *RealNode) Plug(ctx context.Context) error { return n.plug(ctx, "up") }

func (n *RealNode) plug(ctx context.Context, state string) error {
	wire, err := n.cluster.ensureWire(ctx)
	if err != nil {
		return err
	}
	return inNetwork(ctx, wire, `ip link set "$1" "$2"`, "node"+strconv.Itoa(n.index), state)
}

// ensureWire starts the switch with the first node.
func (c *Cluster) ensureWire(ctx context.Context) (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wire == nil {
		wire, err := c.spawner.runMachine(c.state.dir, "switch", wireScript)
		if err != nil {
			return nil, err
		}
		c.wire = wire
	}
	err := pollWhile(ctx, []*process{c.wire}, func(ctx context.Context) error { return inNetwork(ctx, c.wire, `ip link show switch`) })
	return c.wire, err
}

// inNetwork runs a script in the network of the process.
func inNetwork(ctx context.Context, p *process, script string, args ...string) error {
	all := append([]string{"--target", strconv.Itoa(p.cmd.Process.Pid), "--net", "/bin/sh", "-ec", script, "sh"}, args...)
	return run(exec.CommandContext(ctx, "nsenter", all...), "the network of "+p.name)
}

// run runs a command that has something to say only where it fails.
func run(cmd *exec.Cmd, what string) error {
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", what, err, bytes.TrimSpace(output))
	}
	return nil
}
