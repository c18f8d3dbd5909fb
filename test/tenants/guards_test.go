package tenants_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/gozzard/gozzard"
)

// TestWorldHasTheGuardsOfTheProgram: the world of these tests is the server of the program. Its answers pass the
// limits, and its reports pass the filter of addresses. An enrolled agent that claims the address of another tenant's
// host does not get it.
func TestWorldHasTheGuardsOfTheProgram(t *testing.T) {
	w := newWorld(t, "")
	rec := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/api/v1/hosts", http.NoBody))
	if rec.Header().Get("Content-Security-Policy") == "" {
		t.Errorf("an answer did not pass the limits: %v", rec.Header())
	}

	own, foreign := netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.2.0.1")
	w.receive("host-a1", 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHello, Session: 2,
		Journal: gozzard.JournalPos{ID: [16]byte{1}, LSN: 1}, Hello: &gozzard.Hello{Host: gozzard.HostInfo{
			Agent: "host-a1", Hostname: "again", OS: "linux",
			Addrs: []gozzard.HostAddr{{IP: own}, {IP: foreign}}}}})
	w.until("the second HELLO is there", func() bool {
		h, ok := w.Plane.Resolve(admin, gozzard.Target{Agent: "host-a1"})
		return ok && h.Info.Hostname == "again"
	})

	for ip, agent := range map[netip.Addr]gozzard.AgentID{own: "host-a1", foreign: "host-b1"} {
		h, ok := w.Plane.Resolve(admin, gozzard.Target{Addr: gozzard.HostAddr{IP: ip}})
		if !ok || h.Info.Agent != agent {
			t.Errorf("%s is %s, want %s", ip, h.Info.Agent, agent)
		}
	}
}
