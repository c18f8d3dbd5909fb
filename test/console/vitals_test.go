//go:build linux

package console_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/test/console"
	"github.com/gozzard/gozzard/test/fleettest"
)

// rawInfo is a host with two processors.
func rawInfo() gozzard.HostInfo {
	return gozzard.HostInfo{Agent: "raw-1", Addrs: []gozzard.HostAddr{{IP: netip.MustParseAddr("10.9.8.7")}}, OS: "linux",
		Arch: "amd64", Hostname: "raw", Version: "0", CPUs: 2, MemBytes: 8 << 30}
}

// TestClockAndLoad: the page and the command line say that a clock is wrong, and how busy a host is.
func TestClockAndLoad(t *testing.T) {
	t.Parallel()
	f, h := console.StartRawHost(t, rawInfo())
	p := f.Open(t)
	p.EnterByLink()
	p.Go("/console/hosts/raw-1")
	p.Wait("heading", "10.9.8.7")
	p.WaitText("not known")

	// A clock that is right, as far as the network of this machine allows.
	h.SetVitals(gozzard.Vitals{RoundTrip: 1000, Load: 3000, MemFree: 2 << 30})
	p.WaitText("agrees with the server")
	p.WaitText("1.50 for each processor")
	p.WaitText("2.0 GB")
	p.Accessible()

	// A clock that is far ahead. The page reads the hosts again by itself.
	h.SetVitals(gozzard.Vitals{At: (30*time.Minute + 30*time.Second).Milliseconds(), RoundTrip: 1000, Load: 3000, MemFree: 2 << 30})
	p.WaitText("clock 30 min")
	p.WaitText("chrony")
	p.Accessible()
	p.Go("/console/hosts")
	p.WaitText("clock 30 min")
	p.WaitText("1.50")
	p.Accessible()
	p.Click("button", "中文")
	p.WaitText("时钟快 30 分")
	p.Accessible()

	// The same on the command line.
	var seen []byte
	fleettest.Until(t, time.Minute, func() string { return string(seen) }, func() bool {
		var err error
		seen, err = f.Command(t, "hosts", "-o", "wide").CombinedOutput()
		return err == nil && bytes.Contains(seen, []byte("ahead")) && bytes.Contains(seen, []byte("1.50"))
	})
}
