//go:build linux

package faults_test

import (
	"flag"
	"fmt"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

var comeBack = flag.Int("faults.comeback", 300, "hosts that come back all at once, in TestN9 and TestV20")

// TestN9MassReconnect: the server is killed and started again while a whole fleet is connected. All hosts reconnect,
// and callers get answers meanwhile. Times are printed and not asserted.
func TestN9MassReconnect(t *testing.T) {
	s := ft.StartServer(t, "", "--log-level=warn")
	s.StartSim(t, *comeBack)
	online := func() int { return int(metric(t, s, `gozzard_agents{online="true"}`)) }
	words := func() string { return fmt.Sprintf("%d of %d hosts are online", online(), *comeBack) }
	ft.Until(t, 5*time.Minute, words, func() bool { return online() == *comeBack })
	_, base, n0 := valid(t, s, 2*time.Second)

	s.Kill(syscall.SIGKILL)
	s.Again()
	s.AwaitReady()
	began := time.Now()
	stop := make(chan struct{})
	type figures struct {
		p50, p99 time.Duration
		n        int
	}
	asked := make(chan figures, 1)
	go func() {
		var f figures
		f.p50, f.p99, f.n = validUntil(t, s, stop)
		asked <- f
	}()

	var most time.Duration
	ft.Until(t, 5*time.Minute, words, func() bool {
		n := online()
		if most == 0 && n*100 >= *comeBack*99 {
			most = time.Since(began)
		}
		return n == *comeBack
	})

	all := time.Since(began)
	time.Sleep(max(0, 2*time.Second-all)) // enough answers for a percentile
	close(stop)
	f := <-asked
	fmt.Printf("fault N9: %d hosts after the server was killed and answers again: 99 %% are back after %s, all after %s, %.0f HELLOs had to wait; valid callers meanwhile: "+
		"%d requests, p50 %s, p99 %.2f times that of before (%s of %d); server has %d MiB\n", *comeBack,
		most.Round(10*time.Millisecond), all.Round(10*time.Millisecond),
		metric(t, s, `gozzard_security_refused_total{rule="hello_rate"}`), f.n, f.p50.Round(time.Microsecond),
		float64(f.p99)/float64(base), base.Round(time.Microsecond), n0, s.RSS()>>20)
}
