package devcluster

import (
	"io"
	"net"
)

// forward takes connections from one network to another, until the listener is closed.
func forward(listener net.Listener, dial func() (net.Conn, error)) {
	for {
		inner, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer inner.Close()
			outer, err := dial()
			if err != nil {
				return
			}
			defer outer.Close()
			done := make(chan struct{})
			go func() {
				defer close(done)
				io.Copy(outer, inner)             //nolint:errcheck // the ends tell each other
				outer.(*net.TCPConn).CloseWrite() //nolint:errcheck,forcetypeassert // dialled as TCP
			}()
			io.Copy(inner, outer) //nolint:errcheck // as above
			inner.Close()
			<-done
		}()
	}
}
