package api_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/release"
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/internal/upgrade"
	"github.com/gozzard/gozzard/test/fuzztest"
)

var errKept = gozzard.Errorf(gozzard.ErrConflict, "nothing is changed here")

// still keeps everything as it is, so that one input does not decide what the next one finds.
type still struct{ auth.Config }

func (s still) LoadAccounts(context.Context) (auth.Config, bool, error) { return s.Config, true, nil }
func (still) ChangeAccounts(context.Context, auth.Change) error         { return errKept }

func (still) AddEnrolToken(context.Context, enrol.TokenRecord, enrol.AuditEntry) error {
	return errKept
}
func (still) EnrolTokens(context.Context) ([]enrol.TokenRecord, error)         { return nil, nil }
func (still) RevokeEnrolToken(context.Context, string, enrol.AuditEntry) error { return errKept }
func (still) Members(context.Context) ([]enrol.AgentRecord, error)             { return nil, nil }
func (still) NoteAct(context.Context, enrol.AuditEntry) error                  { return errKept }

func (still) ShownAuthorities(context.Context) (map[gozzard.AgentID]string, error) {
	return map[gozzard.AgentID]string{}, nil
}

func (still) ShowAuthorities(context.Context, map[gozzard.AgentID]string) error { return errKept }

func (still) Enrol(_ context.Context, _ string, _ gozzard.AgentID,
	decide func(enrol.TokenRecord, enrol.AgentRecord) (enrol.AgentRecord, error),
	_ enrol.AuditEntry) (enrol.AgentRecord, error) {
	if rec, err := decide(enrol.TokenRecord{}, enrol.AgentRecord{}); err != nil {
		return rec, err
	}
	return enrol.AgentRecord{}, errKept
}

func (still) ChangeMember(_ context.Context, _ gozzard.AgentID,
	change func(enrol.AgentRecord) (enrol.AgentRecord, error), _ enrol.AuditEntry) (enrol.AgentRecord, error) {
	return enrol.AgentRecord{}, errKept
}

func (still) AuditHead(context.Context) (gozzard.AuditHead, error) { return gozzard.AuditHead{}, nil }
func (still) FindAudit(context.Context, gozzard.AuditFilter, int) ([]gozzard.AuditFound, int64, error) {
	return nil, 0, nil
}
func (still) AuditRow(context.Context, int64) (gozzard.AuditFound, error) {
	return gozzard.AuditFound{}, errKept
}
func (still) AuditText(context.Context, [32]byte) ([]byte, error) { return nil, errKept }

func (still) AddRelease(context.Context, upgrade.Release, upgrade.AuditEntry) error  { return errKept }
func (still) RemoveRelease(context.Context, string, upgrade.AuditEntry) error        { return errKept }
func (still) AddUpgrade(context.Context, *upgrade.Upgrade, upgrade.AuditEntry) error { return errKept }
func (still) SaveUpgrade(context.Context, *upgrade.Upgrade, []upgrade.Host, upgrade.AuditEntry) error {
	return errKept
}
func (still) Upgrades(context.Context, int) ([]upgrade.Upgrade, error) { return nil, nil }

func (still) Releases(context.Context) ([]upgrade.Release, error) {
	return []upgrade.Release{{Version: "1.2.3", Manifest: []byte(manifest), Signature: make([]byte, 64)}}, nil
}

const manifest = `{"gozzard_release":1,"version":"1.2.3","created":"2026-01-01T00:00:00Z","expires":"2099-01-01T00:00:00Z","files":[{"platform":"linux/amd64",` +
	`"name":"gozzard","size":1,"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}]}`

// noFleet has no hosts.
type noFleet struct{}

func (noFleet) Members() []gozzard.AgentID                 { return nil }
func (noFleet) Look(gozzard.AgentID) upgrade.HostView      { return upgrade.HostView{} }
func (noFleet) Order(gozzard.AgentID, gozzard.UpdateOrder) {}

type stillPlane struct{ *plane }

func (stillPlane) ApplyTopology(context.Context, record.ApplyRequest) (record.ApplyAnswer, error) {
	return record.ApplyAnswer{}, errKept
}

func stillHandler(f *testing.F, s *server) http.Handler {
	f.Helper()
	keep := still{auth.Config{Apps: []auth.App{{Code: "app", Secrets: []auth.Digest{auth.Hash(secret)},
		AssertsUsers: true, Grants: []gozzard.Grant{{Role: gozzard.RoleAdmin}}}}}}
	accounts, err := auth.Open(f.Context(), keep, auth.Options{})
	if err != nil {
		f.Fatal(err)
	}

	authority, err := enrol.OpenAuthority(f.TempDir(), nil)
	if err != nil {
		f.Fatal(err)
	}

	registry, err := enrol.NewRegistry(f.Context(), enrol.RegistryOptions{Store: keep, Authority: authority,
		Key: func() signing.Key { return signing.Key{} }})
	if err != nil {
		f.Fatal(err)
	}

	s.plane.log = func(gozzard.Target, gozzard.LogQuery) (gozzard.LogChunk, error) { return gozzard.LogChunk{}, nil }
	s.plane.history = func(gozzard.Target, gozzard.HistoryQuery) (gozzard.History, error) { return gozzard.History{}, nil }
	repository, err := release.OpenRepository(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}

	releases, err := upgrade.New(f.Context(), upgrade.Options{Store: keep, Repository: repository, Fleet: noFleet{}})
	if err != nil {
		f.Fatal(err)
	}

	return api.New(api.Options{Plane: stillPlane{s.plane}, Authenticate: blueking.ByHeaders(accounts.Directory()),
		Challenge: blueking.AuthorizationHeader, Accounts: accounts, Enrol: registry, Audit: keep, Releases: releases})
}

var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

// FuzzRequest sends paths, queries and bodies to every route: every answer is one of this API and never an internal
// error, and nothing is done for a stranger.
func FuzzRequest(f *testing.F) {
	z := fuzztest.New(f)
	routes := api.Routes()
	for _, seed := range [][4]string{
		{"/api/v1/operations", "", "wait=1s&confirm=2",
			`{"action":"restart","namespace":"shop","names":["web"],"hosts":[{"cloud":0,"ip":"10.0.0.1"},{"agent":"a2"}],"confirm":2}`},
		{"/api/v1/operations", "", "",
			`{"action":"start","biz":2,"env":3,"expression":"front*.[web,db].*.nginx.*","when_offline":"wait","wait_seconds":90}`},
		{"/api/v1/tasks", "", "since=2026-01-02T15:04:05Z&action=start&host=0:10.0.0.1&name=w*&state=failed&before=17&mine=true", ""},
		{"/api/v1/tasks/{id}/retry", "GSETASK:20240102030405:7", "", `{"confirm":2,"dry_run":true,"when_offline":"wait"}`},
		{"/api/v1/tasks/{id}/cancel", "GSETASK:20240102030405:7", "", `{"attempts":[0,2]}`},
		{"/api/v1/tasks/{id}", "GSETASK:20240102030405:7", "wait=1s", ""},
		{"/api/v1/processes", "", "namespace=shop&name=w*&host=0:10.0.0.1&state=running&limit=10&start=0", ""},
		{"/api/v1/processes", "", "biz=2&env=3&expression=*",
			`{"namespace":"shop","name":"web","labels":{"tier":"front"},"hosts":[{"agent":"a1"}],"spec":{"identity":{"proc_name":"web","setup_path":"/opt","user":"root"},"control":{"start_cmd":"./s"}}}`},
		{"/api/v1/hosts", "", "state=online&ip=10.0.0.*&limit=5", ""},
		{"/api/v1/events", "", "after=1&limit=10&namespace=shop&kind=exited", ""},
		{"/api/v1/history", "", "host=0:10.0.0.1&namespace=shop&name=web&from=15&to=300&points=3", ""},
		{"/api/v1/logs", "", "host=0:10.0.0.1&namespace=shop&name=web&offset=15&lines=3", ""},
		{"/api/v1/topology/{biz}", "2", "dry_run=true&version=1", shop},
		{"/api/v1/topology/{biz}/tree", "2", "env=3", ""},
		{enrol.JoinPath, "", "", `{"token":"abc.` + strings.Repeat("A", 43) +
			`","agent":"a-1","ips":["10.0.0.1"],"machine":"m","hostname":"h","csr":"-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n"}`},
		{enrol.RenewPath, "", "", `{"machine":"m","csr":""}`},
		{"/api/v1/enrol/tokens", "", "", `{"ttl":"1h","uses":1,"cloud":0,"cidrs":["10.0.0.0/8"],"approve":true}`},
		{"/api/v1/enrol/agents/{agent}", "a-1", "", `{"state":"revoked"}`},
		{"/api/v1/hosts/{agent}", "a1", "", ""},
		{"/api/v1/apps", "", "",
			`{"code":"shop","asserts_users":true,"grants":[{"role":"operator","businesses":[2],"namespaces":["shop*"],"clouds":[0],"nets":["10.0.0.0/8"],"actions":["start"]}]}`},
		{"/api/v1/users/{name}/tokens", "me", "", `{"note":"ci","life":"24h"}`},
		{"/api/v1/grants", "", "app=shop&user=me", `{"user":"me","grant":{"role":"viewer"}}`},
		{"/api/v1/login", "", "", `{"user":"me","password":"x"}`},
		{"/login/oidc/callback", "", "code=x&state=y", ""},
		{"/api/v1/audit", "", "after=0&limit=10", ""},
		{"/api/v1/releases", "", "", `{"manifest":"` + base64.StdEncoding.EncodeToString([]byte(manifest)) +
			`","signature":"` + strings.Repeat("A", 85) + `A="}`},
		{"/api/v1/releases/{version}", "1.2.3", "", ""},
		{"/api/v1/releases/{version}/files/{file}", "1.2.3", "", "x"},
		{enrol.ReleasePath + "/{version}/{file}", "1.2.3", "", ""},
		{"/api/v1/rolls", "", "limit=5", `{"version":"1.2.3","stages":[1,10,100],"agents":["a-1"]}`},
		{"/api/v1/rolls/{version}", "1.2.3", "", `{"state":"approved"}`},
		{"/api/v1/servers/{id}", "s1", "", `{"drained":true}`},
	} {
		for i, rt := range routes {
			if rt.Path == seed[0] {
				z.Add(uint8(i), true, seed[1], seed[2], []byte(seed[3]))
			}
		}
	}

	s := newBusinessServer(f)
	s.putShop(f)
	h := stillHandler(f, s)
	z.Fuzz(func(t *testing.T, which uint8, known bool, part, query string, body []byte) {
		rt := routes[int(which)%len(routes)]
		s.ops = nil
		r := request(rt, part, query, body)

		if known {
			r.Header.Set("X-Bkapi-Authorization", `{"bk_app_code":"app","bk_app_secret":"`+secret+
				`","bk_username":"me"}`)
		}

		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)

		if w.Code == http.StatusInternalServerError || w.Code < 200 {
			t.Fatalf("%s %s: HTTP %d %.300s", rt.Method, r.URL, w.Code, w.Body)
		}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") && w.Body.Len() > 0 &&
			!json.Valid(w.Body.Bytes()) {
			t.Fatalf("%s %s: not JSON: %.300s", rt.Method, r.URL, w.Body)
		}

		if !known && (len(s.ops) > 0 || !rt.Open() && w.Code < 300) {
			t.Fatalf("a stranger was served by %s %s: HTTP %d %.300s", rt.Method, r.URL, w.Code, w.Body)
		}
	})
}

func request(rt api.Route, part, query string, body []byte) *http.Request {
	if part == "" || slices.Contains([]string{".", ".."}, part) { // the router answers these by itself
		part = "x"
	}

	u := &url.URL{Path: placeholder.ReplaceAllLiteralString(rt.Path, part),
		RawPath: placeholder.ReplaceAllLiteralString(rt.Path, url.PathEscape(part)), RawQuery: query}
	r := httptest.NewRequest(rt.Method, "/", bytes.NewReader(body))
	r.URL, r.RemoteAddr = u, "192.0.2.1:999"
	r.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true}

	if strings.HasSuffix(rt.Path, "/stream") { // it has no end of its own
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		r = r.WithContext(ctx)
	}

	if bytes.HasPrefix(body, []byte("biz:")) {
		r.Header.Set("Content-Type", "application/yaml")
	}

	return r
}
