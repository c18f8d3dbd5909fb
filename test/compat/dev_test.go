//go:build linux

package compat_test

import (
	"net/http"
	"path/filepath"
	"testing"
)

// TestDev opens the data folder of a killed `gozzard dev`: the newest writes are only in the write-ahead log of its
// database.
func TestDev(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		data := filepath.Join(unpack(t, version, "dev"), "data")
		s := &server{data: data, listen: freeAddress(t)}
		s.daemon = start(t, "dev", "dev", "--data", data, "--listen", s.listen, "--hosts", "2")
		s.await(filepath.Join(data, "dev.json"))

		var state process
		s.until("both hosts have reported", func() bool {
			now := s.processes("demo")
			state = now["web@127.0.0.1"]
			return !state.Stale && !now["web@127.0.0.2"].Stale && len(s.online()) == 2 && state.State == "running"
		})

		if p := s.processes("demo")["web@127.0.0.2"]; p.State != "stopped" || p.Managed || pidOf("web2") != 0 {
			t.Errorf("web was stopped on the second host, now: %+v", p)
		}
		if state.PID != pidOf("web") {
			t.Errorf("web on the first host: %+v, its pid file has %d", state, pidOf("web"))
		}

		must(t, nil, "audit", "verify", "--data", data)

		g := newGolden(t, version, "dev")
		status, answer := s.call(s.admin, http.MethodGet, "/api/v1/audit?limit=100", "")
		g.document("GET /api/v1/audit", status, answer)
		g.compare()
	})
}
