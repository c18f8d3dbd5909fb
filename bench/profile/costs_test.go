//go:build linux

package profile

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	c := parse([]byte(`File: fleet
Duration: 65s, Total samples = 60ms
-----------+-------------------------------------------------------
      20ms   syscall.Syscall
             net.(*conn).Read
             github.com/nats-io/nats-server/v2/server.(*client).readLoop
-----------+-------------------------------------------------------
      30ms   crypto/tls.(*halfConn).encrypt
             github.com/nats-io/nats-server/v2/server.(*client).writeLoop
-----------+-------------------------------------------------------
      10ms   main.something
`))
	if got, want := c.Top(3), "TLS 50 %, the broker reads and routes 33 %"; got != want {
		t.Errorf("top %q, want %q", got, want)
	}
	if c.total != 60*time.Millisecond || c.by[spentElse] != 10*time.Millisecond {
		t.Errorf("total %s, other %s", c.total, c.by[spentElse])
	}
}
