package enrol_test

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/enrol"
)

// TestTD5OneAddress: a client that starts handshakes without end gets a limited number per second, and an agent of
// another address can connect meanwhile.
func TestTD5OneAddress(t *testing.T) {
	r := newRig(t)
	m := r.member("a", 1)
	const attempts, looked, burst, perSecond = 350, 300, 200, 100
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	if c, err := from.Dial("tcp", r.broker.Addr()); err != nil {
		t.Skipf("this system has one address of loopback: %v", err)
	} else {
		_ = c.Close()
	}

	var finished atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()

	for range attempts {
		wg.Go(func() {
			raw, err := from.DialContext(t.Context(), "tcp", r.broker.Addr())
			if err != nil {
				t.Error(err)
				return
			}
			defer raw.Close()
			c := tls.Client(raw, &tls.Config{RootCAs: r.authority.Pool(), ServerName: enrol.ServerName,
				MinVersion: tls.VersionTLS13})
			// the server has answered; it complains about the missing certificate later
			if c.HandshakeContext(t.Context()) == nil {
				finished.Add(1)
			}
		})
	}

	e := r.link(m, "machine")
	eventually(t, "the agent", e.isUp)
	t.Logf("the agent came in after %d of %d handshakes", finished.Load(), attempts)
	eventually(t, "the handshakes", func() bool { return finished.Load() >= looked })

	if took := time.Since(begin).Seconds(); float64(looked) > burst+perSecond*took+1 {
		t.Errorf("%d handshakes of one address in %.2f s", looked, took)
	}

	wg.Wait()
}
