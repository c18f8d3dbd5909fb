package tenants_test

import (
	"cmp"
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/server"
)

// rowsElsewhere lists routes at which the requests of this test change nothing, and the test that finds their rows.
var rowsElsewhere = map[string]string{
	"POST /api/v1/enrol":                          "by a token and over TLS: internal/enrol TestTR1RenewalHasARow",
	"POST /api/v1/enrol/renew":                    "by a certificate: internal/enrol TestTR1RenewalHasARow",
	"POST /api/v1/enrol/leave":                    "by a certificate: internal/enrol TestTS14HostLeaves",
	"POST /api/v1/servers/token":                  "this server is alone: test/cluster TestTS17ServerTokens",
	"POST /api/v1/relays/join":                    "by a token and over TLS: test/storetest relays",
	"DELETE /api/v1/relays/{relay}":               "its relays have other ids: test/storetest relays",
	"POST /api/v1/servers/join":                   "by a token and over TLS: test/cluster TestTS17ServerTokens",
	"PUT /api/v1/servers/{id}":                    "this server is alone: test/cluster TestC6Drain",
	"POST /api/v1/session":                        "in a browser: internal/auth TestTR1SessionsHaveRows",
	"POST /api/v1/session/enter":                  "in a browser: internal/auth TestTR1SessionsHaveRows",
	"POST /api/v1/session/link":                   "changes nothing; its use has a row: internal/auth TestTR1SessionsHaveRows",
	"DELETE /api/v1/session":                      "in a browser: internal/auth TestTR1SessionsHaveRows",
	"DELETE /api/v1/session/others":               "in a browser: internal/auth TestTR1SessionsHaveRows",
	"PUT /api/v1/enrol/agents/{agent}":            "test/storetest enrolments",
	"DELETE /api/v1/hosts/{agent}":                "test/storetest forget",
	"POST /api/v1/restore/confirm":                "internal/sqlstore restore tests",
	"POST /api/v1/releases":                       "test/storetest releases",
	"DELETE /api/v1/releases/{version}":           "test/storetest releases",
	"PUT /api/v1/releases/{version}/files/{file}": "stores bytes whose digest the published manifest has: no change of what is known",
	"POST /api/v1/rolls":                          "test/storetest releases",
	"PUT /api/v1/rolls/{version}":                 "test/storetest releases",
	"POST /api/v1/tasks/{id}/cancel":              "nothing waits here: test/fleettest TestCancelNative",
	"POST /api/v1/config/jobs/{job}/stop":         "no job runs long enough here: test/storetest stop",
	"POST /api/v1/receivers":                      "with receivers: test/notify TestNotifyActsAreInTheAudit",
	"DELETE /api/v1/receivers/{receiver}":         "with receivers: test/notify TestNotifyActsAreInTheAudit",
	"PUT /api/v1/receivers/{receiver}":            "with receivers: test/notify TestChangeReceiver",
	"POST /api/v1/receivers/{receiver}/test":      "with receivers: test/notify TestNotifyActsAreInTheAudit",
	"POST /api/v1/subscriptions":                  "with receivers: test/notify TestNotifyActsAreInTheAudit",
	"PUT /api/v1/subscriptions/{subscription}":    "with receivers: test/notify TestTI21ChangeOfASubscriptionWidensNothing",
	"DELETE /api/v1/subscriptions/{subscription}": "with receivers: test/notify TestNotifyActsAreInTheAudit",
	"POST /api/v1/dead-letters/{letter}/retry":    "with receivers: test/notify TestNotifyActsAreInTheAudit",
	"DELETE /api/v1/dead-letters/{letter}":        "with receivers: test/notify TestNotifyActsAreInTheAudit",
	"DELETE /api/v1/config/templates/{template}":  "its templates have other ids: test/storetest config",
}

// TestTR1EveryChangeHasARow sends requests of an admin to every route of all doors that changes something. Each request
// that changes something adds a row to the audit, with its door, its source address and its request id.
func TestTR1EveryChangeHasARow(t *testing.T) {
	w := newWorldOf(t, networks, "", func(o *server.Options) {
		o.SecondPerson = server.SecondPersonOptions{For: []string{"revoked-hosts"}, Wait: time.Hour}
	})
	m := newMaker(w, *seed)
	w.makeTargets()
	m.jobs = 1

	proven, doors := 0, map[string]int{}
	for _, rt := range m.routes {
		name := rt.method + " " + rt.path
		if !rt.writes() || rowsElsewhere[name] != "" {
			continue
		}
		// A retry needs a job that failed (its row: test/storetest reopen), and there is no CMDB to flush from.
		if base := path.Base(rt.path); base == "retry" || base == "flush_process" {
			continue
		}

		done := false
		for try := 0; try < 60 && !done; try++ {
			w.settle()
			r := cmp.Or(w.ownRequest(name), accountRequests(try % 3)[name], m.to(rt))
			r.key = ""
			credentials := w.credentialsFor(name)
			before := w.head() // after what the request needs, which has rows of its own
			code, got := w.sendAs(credentials, r)
			if w.outcome(rt, code, got) != isDone {
				continue
			}
			done = true
			if !w.hasRow(before, actOf[name]) {
				t.Errorf("%s changed something, and no row of the audit says so: %d %.300s", r, code, got)
			}
		}
		if !done {
			t.Errorf("%s: no request of the admin changed anything, which proves nothing", name)
		}
		proven++
		doors[rt.door]++
	}

	if len(doors) != 4 {
		t.Errorf("doors: %v", doors)
	}
	fmt.Printf("threat TR1: %d routes that change something, each with its row: %v\n", proven, doors)
}

const adminCredentials = `{"bk_app_code":"admin","bk_app_secret":"admin-secret","bk_username":"u"}`

// post sends a request of the admin.
func (w *world) post(path, body string) (int, string) {
	return w.sendAs(adminCredentials, &request{method: http.MethodPost, path: path, body: body})
}

// head is the newest row of the audit.
func (w *world) head() int64 {
	w.t.Helper()
	h, err := w.Store.AuditHead(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return h.Seq
}

// hasRow reports whether there is a row of a request since another row. The act of the row begins with act.
func (w *world) hasRow(since int64, act string) bool {
	w.t.Helper()
	links, err := w.Store.AuditAfter(w.t.Context(), since, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range links {
		l := &links[i]
		refusal := strings.HasPrefix(l.Act, "login:failed") || strings.HasPrefix(l.Act, "refused:")
		if l.Ref == 0 && !refusal && strings.HasPrefix(l.Act, act) && l.Origin != (gozzard.Origin{}) && l.Source == "192.0.2.7" && l.RequestID != "" && l.Door != "" {
			return true
		}
	}
	return false
}
