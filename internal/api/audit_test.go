package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/blueking"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/auth"
)

// heldAudit is an audit of two rows.
type heldAudit []gozzard.AuditLink

func newAudit() heldAudit {
	var prev gozzard.AuditHash
	var list heldAudit
	for i, act := range []string{"operate:stop", "operate:kill"} {
		l := gozzard.AuditLink{AuditRow: gozzard.AuditRow{Seq: int64(i + 1),
			At: time.UnixMilli(1_800_000_000_123).UTC(), Act: act, Targets: 7,
			Caller: gozzard.Caller{App: "a", User: "张三", Asserted: true}, TaskID: "GSETASK:20260101000000:1",
			RequestHash: [32]byte{1}, HostsHash: [32]byte{2}}}
		l.Hash = l.Chain(prev)
		prev = l.Hash
		list = append(list, l)
	}
	return list
}

func (h heldAudit) FindAudit(_ context.Context, f gozzard.AuditFilter, limit int) (list []gozzard.AuditFound, next int64,
	err error) {
	for _, l := range h {
		if l.Seq > f.After && f.Match(&l.AuditRow) {
			list = append(list, gozzard.AuditFound{AuditLink: l})
		}
		if len(list) == limit {
			return list, l.Seq, nil
		}
	}
	return list, 0, nil
}

func (h heldAudit) AuditRow(_ context.Context, seq int64) (gozzard.AuditFound, error) {
	if seq < 1 || seq > int64(len(h)) {
		return gozzard.AuditFound{}, gozzard.Errorf(gozzard.ErrNotFound, "the audit has no row %d", seq)
	}
	return gozzard.AuditFound{AuditLink: h[seq-1], Result: "ok=7", ResultRow: 9}, nil
}

func (h heldAudit) AuditText(_ context.Context, digest [32]byte) ([]byte, error) {
	switch digest[0] {
	case 2:
		return []byte("one\t0:10.0.0.1\ntwo\t0:10.0.0.2\n"), nil
	case 3:
		return []byte(`{"control":{"start_cmd":"./run"}}`), nil
	}
	return nil, gozzard.Errorf(gozzard.ErrNotFound, "the audit has no text %x", digest[:])
}

func (h heldAudit) AuditHead(context.Context) (gozzard.AuditHead, error) {
	last := h[len(h)-1]
	return gozzard.AuditHead{Seq: last.Seq, Hash: last.Hash}, nil
}

// auditServer has an app that may do everything and one that may not.
func auditServer(t *testing.T) *server {
	t.Helper()
	book, err := auth.New(auth.Config{Apps: []auth.App{
		{Code: "app", Secrets: []auth.Digest{auth.Hash(secret)}, AssertsUsers: true,
			Grants: []gozzard.Grant{{Role: gozzard.RoleAdmin}}},
		{Code: "part", Secrets: []auth.Digest{auth.Hash(secret)}, AssertsUsers: true,
			Grants: []gozzard.Grant{{Role: gozzard.RoleAdmin, Clouds: []int{0}, Accounts: []string{"*"}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &server{plane: newPlane(), handler: api.New(api.Options{Plane: newPlane(),
		Authenticate: blueking.ByHeaders(book), Challenge: blueking.AuthorizationHeader, Audit: newAudit()})}
}

func TestAudit(t *testing.T) {
	s := auditServer(t)
	res := s.call(http.MethodGet, "/api/v1/audit?limit=1", "")
	var page client.AuditPage
	if err := json.Unmarshal([]byte(res.body), &page); err != nil || res.code != 200 || len(page.Rows) != 1 ||
		page.Head.Seq != 2 {
		t.Fatalf("%d %s, %v", res.code, res.body, err)
	}

	var check gozzard.AuditCheck
	for check.Head != page.Head { // a reader can check the chain
		l, err := page.Rows[0].Link()
		if err != nil {
			t.Fatal(err)
		}
		if err := check.Follow(&l); err != nil {
			t.Fatal(err)
		}
		if check.Rows == 2 {
			break
		}
		res = s.call(http.MethodGet, "/api/v1/audit?after=1", "")
		if err := json.Unmarshal([]byte(res.body), &page); err != nil {
			t.Fatal(err)
		}
	}

	if err := check.End(page.Head); err != nil {
		t.Fatal(err)
	}

	for _, bad := range []string{"after=-1", "limit=0", "limit=1001", "before=1", "newest=true&after=1", "since=now",
		"until=1", "newest=maybe"} {
		if res := s.call(http.MethodGet, "/api/v1/audit?"+bad, ""); res.code != 400 {
			t.Errorf("%s: %d %s", bad, res.code, res.body)
		}
	}
}

func TestAuditRow(t *testing.T) {
	s := auditServer(t)
	res := s.call(http.MethodGet, "/api/v1/audit/2?start=1&limit=5", "")
	var d client.AuditDetail
	if err := json.Unmarshal([]byte(res.body), &d); err != nil || res.code != 200 || d.HostsTotal != 2 ||
		len(d.Hosts) != 1 || d.Hosts[0].Agent != "two" || d.Row.Result != "ok=7" {
		t.Fatalf("%d %s, %v", res.code, res.body, err)
	}

	digest := "03" + strings.Repeat("00", 31)
	if res := s.call(http.MethodGet, "/api/v1/audit/definitions/"+digest, ""); res.code != 200 ||
		!strings.Contains(res.body, "./run") {
		t.Errorf("%d %s", res.code, res.body)
	}
	for path, want := range map[string]int{"9": 404, "x": 400, "definitions/" + strings.Repeat("0", 64): 404,
		"definitions/02" + strings.Repeat("00", 31): 404, "definitions/zz": 400} {
		if res := s.call(http.MethodGet, "/api/v1/audit/"+path, ""); res.code != want {
			t.Errorf("%s: %d %s, want %d", path, res.code, res.body, want)
		}
	}
	if res := s.call(http.MethodGet, "/api/v1/audit?action=kill", ""); !strings.Contains(res.body, `"seq":2`) ||
		strings.Contains(res.body, `"seq":1,`) {
		t.Errorf("%d %s", res.code, res.body)
	}
}

func TestAuditIsForAdminsOfEverything(t *testing.T) {
	s := auditServer(t)
	as := func(code, key string) func(*http.Request) {
		return header("X-Bkapi-Authorization", `{"bk_app_code":"`+code+`","bk_app_secret":"`+key+
			`","bk_username":"me"}`)
	}
	if res := s.call(http.MethodGet, "/api/v1/audit", "", as("part", secret)); res.code != 403 {
		t.Errorf("an admin of a part: %d %s", res.code, res.body)
	}
	if res := s.call(http.MethodGet, "/api/v1/audit", "", as("app", "wrong")); res.code != 401 {
		t.Errorf("a stranger: %d %s", res.code, res.body)
	}
}

// TestTI5: metrics are for this machine and for known callers only, and there is no profiler.
func TestTI5InsideIsNotShown(t *testing.T) {
	s := newServer(t)
	stranger := header("X-Bkapi-Authorization", "")
	if res := s.call(http.MethodGet, "/metrics", "", stranger); res.code != 401 {
		t.Errorf("metrics for a stranger: %d", res.code)
	}
	if res := s.call(http.MethodGet, "/metrics", ""); res.code != 200 {
		t.Errorf("metrics for a caller: %d", res.code)
	}

	local := func(r *http.Request) { r.RemoteAddr, r.Host = "127.0.0.1:1", "127.0.0.1:8080" }
	if res := s.call(http.MethodGet, "/metrics", "", stranger, local); res.code != 200 {
		t.Errorf("metrics on this machine: %d", res.code)
	}
	if res := s.call(http.MethodGet, "/metrics", "", stranger, local,
		header("X-Forwarded-For", "192.0.2.1")); res.code != 401 {
		t.Errorf("metrics by a proxy on this machine: %d", res.code)
	}
	for _, host := range []string{"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "10.0.0.1", ""} {
		res := s.call(http.MethodGet, "/metrics", "", stranger, local, func(r *http.Request) { r.Host = host })
		if res.code != 401 {
			t.Errorf("metrics for Host %q: %d", host, res.code)
		}
	}
	for _, host := range []string{"localhost", "LOCALHOST:1", "[::1]:8080", "[::1]", "127.0.0.9"} {
		res := s.call(http.MethodGet, "/metrics", "", stranger, local, func(r *http.Request) { r.Host = host })
		if res.code != 200 {
			t.Errorf("metrics for Host %q: %d", host, res.code)
		}
	}

	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/vars", "/api/v1/debug"} {
		if res := s.call(http.MethodGet, path, "", local); res.code != 404 {
			t.Errorf("%s: %d", path, res.code)
		}
	}

	if res := s.call(http.MethodGet, "/healthz", "", stranger); res.code != 200 || res.body != "{\"status\":\"ok\"}\n" {
		t.Errorf("healthz says more than it should: %s", res.body)
	}
}
