package devcluster

import (
	"errors"
	"fmt"
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// listenIn brings up the loopback interface of the process's network and listens there. A socket stays in the network that it was made
// in, so all else can happen in ours.
func listenIn(p *process, addresses []string) ([]net.Listener, error) {
	return within(p, func() ([]net.Listener, error) {
		if err := loopbackUp(); err != nil {
			return nil, fmt.Errorf("bring up the loopback interface of %s: %w", p.name, err)
		}
		var listeners []net.Listener
		for _, address := range addresses {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				return nil, errors.Join(err, closeAll(listeners))
			}
			listeners = append(listeners, listener)
		}
		return listeners, nil
	})
}

// dialIn connects to an address (IP:port) in the process's network.
func dialIn(p *process, address string) (net.Conn, error) {
	return within(p, func() (net.Conn, error) { return net.Dial("tcp", address) })
}

// within calls do in the process's network.
func within[T any](p *process, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result)
	go func() {
		// Never unlocked: the thread, which is in another network then, ends with this goroutine.
		runtime.LockOSThread()
		var r result
		if r.err = enterNetwork(p); r.err == nil {
			r.value, r.err = do()
		}
		done <- r
	}()
	r := <-done
	return r.value, r.err
}

func enterNetwork(p *process) error {
	network, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", p.cmd.Process.Pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the network of %s: %w", p.name, err)
	}
	defer unix.Close(network) //nolint:errcheck // it was only read
	if err := unix.Setns(network, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network of %s: %w", p.name, err)
	}
	return nil
}

func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket) //nolint:errcheck // nothing was written
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}

func closeAll(listeners []net.Listener) error {
	var errs []error
	for _, listener := range listeners {
		errs = append(errs, listener.Close())
	}
	return errors.Join(errs...)
}
