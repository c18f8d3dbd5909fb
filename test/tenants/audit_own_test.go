package tenants_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/fleettest"
)

// actOf is how the act of a row begins, for routes whose request needs steps before it.
var actOf = map[string]string{
	"POST /api/v1/totp":                  "user:totp-enrol coder",
	"PUT /api/v1/totp":                   "user:totp coder",
	"POST /api/v1/keys/authority/finish": "key:authority:finish:",
	"PUT /api/v1/requests/{id}":          "request:approve:",
}

// ownRequest makes requests that need something of their own: a token, a session, a second factor, a rotation that is
// under way, or a request that waits.
func (w *world) ownRequest(name string) *request {
	w.t.Helper()
	switch name {
	case "DELETE /api/v1/enrol/tokens/{id}":
		made := w.ask(&request{method: http.MethodPost, path: "/api/v1/enrol/tokens", body: `{"ttl":"1h","uses":1}`})
		return &request{method: http.MethodDelete, path: fmt.Sprint("/api/v1/enrol/tokens/", made["id"])}
	case "DELETE /api/v1/users/{name}/tokens/{id}":
		made := w.ask(&request{method: http.MethodPost, path: "/api/v1/users/v1/tokens", body: `{"note":"x","days":1}`})
		return &request{method: http.MethodDelete, path: fmt.Sprint("/api/v1/users/v1/tokens/", made["id"])}
	case "POST /api/v1/login":
		w.sessionUser("walker", "")
		return &request{method: http.MethodPost, path: "/api/v1/login", body: loginOf("walker")}
	case "POST /api/v1/logout":
		return &request{method: http.MethodPost, path: "/api/v1/logout"}
	case "POST /api/v1/totp":
		w.sessionUser("coder", "")
		return &request{method: http.MethodPost, path: "/api/v1/totp", body: loginOf("coder")}
	case "PUT /api/v1/totp":
		return w.confirmation()
	case "POST /api/v1/keys/authority/finish":
		return w.finishedRotation()
	case "PUT /api/v1/requests/{id}":
		return w.approval()
	}
	return nil
}

// confirmation confirms a second factor with its code.
func (w *world) confirmation() *request {
	w.t.Helper()
	w.sessionUser("coder", "")
	made := w.ask(&request{method: http.MethodPost, path: "/api/v1/totp", body: loginOf("coder")})
	code, err := fleettest.TOTPCode(fmt.Sprint(made["secret"]), time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	return &request{method: http.MethodPut, path: "/api/v1/totp",
		body: encode(client.TOTPRequest{User: "coder", Password: userPassword, Code: code})}
}

// finishedRotation finishes a rotation of the authority. The hosts of this world do not renew certificates, so the
// request confirms that all of them are cut off.
func (w *world) finishedRotation() *request {
	w.t.Helper()
	w.post("/api/v1/keys/authority", "") // refused if one is under way

	code, got := w.sendAs(adminCredentials, &request{method: http.MethodGet, path: "/api/v1/keys"})
	var keys struct {
		Authority struct{ Waiting, Offline []gozzard.AgentID }
	}
	if err := json.Unmarshal(complete(got), &keys); code != http.StatusOK || err != nil {
		w.t.Fatalf("the keys: %d %v: %.300s", code, err, got)
	}
	hosts := len(keys.Authority.Waiting) + len(keys.Authority.Offline)
	if hosts == 0 {
		w.t.Fatalf("no host is on its way to the next authority: %s", got)
	}

	return &request{method: http.MethodPost, path: "/api/v1/keys/authority/finish",
		body: encode(client.AuthorityFinish{Confirm: hosts})}
}

// approval approves a token for a revoked host, which another admin asked for.
func (w *world) approval() *request {
	w.t.Helper()
	w.sessionUser("asker", `{"role":"admin"}`)
	w.ask(&request{method: http.MethodPut, path: "/api/v1/enrol/agents/host-n1", body: `{"state":"revoked"}`})

	asker := w.session("asker")
	before := w.head()
	code, got := w.sendAs(asker, &request{method: http.MethodPost, path: "/api/v1/enrol/tokens",
		body: `{"ttl":"1h","uses":1,"agent":"host-n1"}`})
	var held client.Held
	err := json.Unmarshal([]byte(got), &held)
	if err != nil || code != http.StatusAccepted || held.Request == nil || held.Request.State != "waiting" {
		w.t.Fatalf("the token does not wait for a second person: %d %v: %.300s", code, err, got)
	}

	if !w.hasRow(before, "request:ask:") {
		w.t.Errorf("a request waits for a second person, and no row of the audit says so: %s", got)
	}

	return &request{method: http.MethodPut, path: fmt.Sprint("/api/v1/requests/", held.Request.ID),
		body: encode(client.RequestDecision{State: "approved", Digest: held.Request.Digest})}
}

// ask sends a request of the admin that must succeed, and returns the fields of its answer.
func (w *world) ask(r *request) (fields map[string]any) {
	w.t.Helper()
	code, got := w.sendAs(adminCredentials, r)
	if err := json.Unmarshal([]byte(got), &fields); err != nil || code >= 300 {
		w.t.Fatalf("%s: %d %v: %.300s", r, code, err, got)
	}
	return fields
}

const userPassword = "0123456789abcdef"

func loginOf(user string) string { return fmt.Sprintf(`{"user":%q,"password":%q}`, user, userPassword) }

// sessionUser makes a user that logs in, unless there is one.
func (w *world) sessionUser(name, grant string) {
	w.post("/api/v1/users", fmt.Sprintf(`{"name":%q,"password":%q,"grants":[%s]}`, name, userPassword, grant))
}

// session logs a user in and returns the credentials of the session.
func (w *world) session(user string) string {
	w.t.Helper()
	made := w.ask(&request{method: http.MethodPost, path: "/api/v1/login", body: loginOf(user)})
	return fmt.Sprint("Bearer ", made["token"])
}

// credentialsFor are those of the admin, except where the route is about a session or a person.
func (w *world) credentialsFor(name string) string {
	switch name {
	case "POST /api/v1/login", "POST /api/v1/totp", "PUT /api/v1/totp":
		return ""
	case "POST /api/v1/logout":
		w.sessionUser("walker", "")
		return w.session("walker")
	case "PUT /api/v1/requests/{id}":
		w.sessionUser("approver", `{"role":"admin"}`)
		return w.session("approver")
	}
	return adminCredentials
}
