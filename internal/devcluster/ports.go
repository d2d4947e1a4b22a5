package devcluster

import (
	"context"
	"net"
	"strconv"
	"time"
)

const loopback = "127.0.0.1"

// freePort finds a port that nobody listens on. It may be taken again before we use it: Start tries once more then.
func freePort() (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// portAgain returns the port of the last start if it can be had. Children of a killed parent may need a moment to let go
// of it; a stranger on it will not, and then it's another port.
func portAgain(ctx context.Context, last int) (int, error) {
	if last == 0 {
		return freePort()
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := poll(ctx, func(context.Context) error {
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(last)))
		if err == nil {
			err = l.Close()
		}
		return err
	})
	if err != nil {
		return freePort()
	}
	return last, nil
}
