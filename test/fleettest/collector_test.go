//go:build linux

package fleettest_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestCollectorOfKilledClients: a client that is killed in the middle of a request, as programs are at the end of every test, is
// no fault of what it sent.
func TestCollectorOfKilledClients(t *testing.T) {
	t.Parallel() // it mostly waits
	c := ft.StartCollector(t)
	for _, body := range []string{"", "\x1f\x8b\x08\x00"} {
		conn, err := net.Dial("tcp", c.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		before := c.Requests()
		fmt.Fprintf(conn, "POST /v1/metrics HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 100\r\n\r\n%s", body)
		ft.Until(t, time.Minute, func() string { return "the request did not come" }, func() bool { return c.Requests() > before })
		conn.Close()
	}
}
