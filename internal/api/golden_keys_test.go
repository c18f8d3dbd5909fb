package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/approval"
)

// goldenKeys are keys of which one host has moved to the next authority.
type goldenKeys struct{}

func (goldenKeys) move() client.AuthorityMove {
	return client.AuthorityMove{Authority: "pin-1", Next: "pin-2", PEM: "(pem)", Moved: 1,
		Waiting: []gozzard.AgentID{"a2"}, Offline: []gozzard.AgentID{}, Servers: []string{"s2"}}
}

func (k goldenKeys) Keys(context.Context, func(gozzard.AgentID) bool) (client.Keys, error) {
	move := k.move()
	return client.Keys{Signing: []client.SigningKey{{Epoch: 1, ID: "0123456789abcdef", Made: client.At(goldenNow()), Key: "gzk1.1.x"}},
		SigningExternal: true, Authority: &move}, nil
}

func (goldenKeys) RotateSigning(context.Context, gozzard.Caller) (client.RotatedKey, error) {
	return client.RotatedKey{Epoch: 2, ID: "fedcba9876543210", Replaces: "0123456789abcdef"}, nil
}

func (k goldenKeys) RotateAuthority(context.Context, gozzard.Caller, func(gozzard.AgentID) bool) (
	client.AuthorityMove, error) {
	return k.move(), nil
}

func (k goldenKeys) FinishAuthority(_ context.Context, _ gozzard.Caller, confirm int, _ func(gozzard.AgentID) bool) (
	client.AuthorityMove, error) {
	if confirm != 1 {
		return client.AuthorityMove{}, gozzard.Errorf(gozzard.ErrConflict, "1 hosts have not moved")
	}
	return k.move(), nil
}

// goldenRequests is a desk without requests.
func goldenRequests(t *testing.T, store approval.Store) *approval.Desk {
	t.Helper()
	d, err := approval.NewDesk(t.Context(), approval.Options{Store: store, Wait: time.Hour, Now: goldenNow,
		Rights: func(gozzard.Caller) *gozzard.Rights { return nil }})
	check(t, err)
	return d
}

func playKeys(t *testing.T, r *recorder) {
	err := r.desk.Ask(t.Context(), gozzard.Caller{App: "user:alice", User: "alice"}, approval.AdminGrant, "make carol an admin",
		"carol")
	var held *approval.Held
	if !errors.As(err, &held) {
		t.Fatal(err)
	}

	r.send("GET", "/api/v1/keys", "")
	r.send("POST", "/api/v1/keys/signing", "")
	r.send("POST", "/api/v1/keys/authority", "")
	r.send("POST", "/api/v1/keys/authority/finish", `{"confirm":0}`)
	r.send("POST", "/api/v1/keys/authority/finish", `{"confirm":1}`)
	r.send("GET", "/api/v1/requests", "")
	r.send("PUT", "/api/v1/requests/1", `{"state":"approved","digest":"x"}`)
	r.send("PUT", "/api/v1/requests/1", `{"state":"rejected"}`)
	r.send("PUT", "/api/v1/requests/1", `{"state":"rejected"}`)
	r.send("PUT", "/api/v1/requests/2", `{"state":"rejected"}`)
	r.send("PUT", "/api/v1/requests/1", `{"state":"done"}`)
}

// playSessions opens and ends sessions of the console, in a browser on the machine of the server.
func playSessions(t *testing.T, r *recorder) {
	r.send("POST", "/api/v1/users", `{"name":"carol","password":"a long password","grants":[{"role":"viewer"}]}`)
	local := func(req *http.Request) { req.Host, req.RemoteAddr = "127.0.0.1:8080", "127.0.0.1:999" }
	r.send("GET", "/api/v1/session/ways", "", stranger, local)
	r.send("GET", "/api/v1/session", "", stranger, local)

	w := r.send("POST", "/api/v1/session", `{"user":"carol","password":"a long password"}`, stranger, local)
	var s client.Session
	check(t, json.Unmarshal(w.Body.Bytes(), &s))
	cookie := func(req *http.Request) { req.AddCookie(w.Result().Cookies()[0]) }
	r.send("GET", "/api/v1/session", "", stranger, local, cookie)
	r.send("GET", "/api/v1/sessions", "", stranger, local, cookie)
	r.send("DELETE", "/api/v1/session/others", "", stranger, local, cookie)
	r.send("DELETE", "/api/v1/session/others", "", stranger, local, cookie, header("X-Gozzard-CSRF", s.CSRF))
	r.send("DELETE", "/api/v1/session", "", stranger, local, cookie, header("X-Gozzard-CSRF", s.CSRF))

	link, err := url.Parse(r.text("url", "POST", "/api/v1/session/link", "", local))
	check(t, err)
	r.send("POST", "/api/v1/session/enter", `{"code":"`+link.Query().Get("code")+`"}`, stranger, local)
	r.send("POST", "/api/v1/session/enter", `{"code":"`+link.Query().Get("code")+`"}`, stranger, local)
}
