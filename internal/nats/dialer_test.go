package nats_test

import (
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/gozzard/gozzard/internal/nats"
)

// TestRejectedConnectionsAreClosed: a server rejects the handshakes of a link for as long as it likes. The link does not keep
// the sockets of its earlier attempts: an agent would have no files left for the processes that it starts.
func TestRejectedConnectionsAreClosed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var made, closed atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			made.Add(1)
			go func() {
				defer conn.Close()
				_, _ = conn.Write([]byte("this is no handshake\r\n"))
				_, _ = io.Copy(io.Discard, conn) // until the link closes it
				closed.Add(1)
			}()
		}
	}()

	e := link(t, nats.LinkOptions{URL: listener.Addr().String(), Agent: agentID(1), TLS: &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "server"}})
	eventually(t, "attempts whose sockets are closed", func() bool { return made.Load() >= 4 && closed.Load() >= made.Load()-1 })
	e.stop()
	eventually(t, "the end of the last one", func() bool { return closed.Load() == made.Load() })
}
