package api

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/strictjson"
)

func serverJoinRoutes() []Route {
	conflict := []gozzard.ErrorKind{gozzard.ErrConflict}
	return []Route{
		{Method: http.MethodPost, Path: "/api/v1/servers/token", Access: AccessAdmin, serve: (*api).postServerToken,
			Summary: "Make a token with which one more server gets the keys of the installation, at this server.",
			Body:    jsonBody(client.ServerTokenRequest{}), Errors: conflict,
			Answers: answers(http.StatusCreated, client.ServerToken{}, "The token. Only this answer has its secret text.")},

		{Method: http.MethodPost, Path: enrol.ServerJoinPath, Access: AccessHost, serve: (*api).postServerJoin,
			Summary: "Get the keys of the installation, as a new server with a token.",
			Body:    jsonBody(enrol.ServerJoinRequest{}), Errors: conflict,
			Answers: answers(http.StatusOK, enrol.ServerJoinAnswer{}, "The keys, sealed for the sender of the request.")},
	}
}

// serverDesk gives keys to new servers.
func (a *api) serverDesk() (*enrol.ServerDesk, error) {
	if a.Servers == nil {
		return nil, gozzard.Errorf(gozzard.ErrConflict, "this server is alone, so no other server needs its keys: to share its "+
			"record with others, start it with --record and --cluster-listen")
	}
	return a.Servers, nil
}

// postServerToken makes a token for one server. No other answer shows its text.
func (a *api) postServerToken(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	desk, err := a.serverDesk()
	if err != nil {
		return err
	}
	ttl := enrol.MaxServerTTL
	err = readFields[client.ServerTokenRequest](w, r, maxShortBody, func(root *strictjson.Value) {
		v := root.Get("ttl")
		text := v.OptStr()
		if text == "" {
			return
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			v.Fault("must be a duration such as 1h30m")
		}
		ttl = d
	})
	if err != nil {
		return err
	}

	token, expires, err := desk.CreateToken(r.Context(), caller, ttl)
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, client.ServerToken{ID: token.ID, Token: token.String(), Expires: client.At(expires)})
}

// postServerJoin gives the keys to a new server. The proof in the body is its credential, so a wrong one counts as a
// failed login.
func (a *api) postServerJoin(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	desk, err := a.serverDesk()
	if err != nil {
		return err
	}
	return join(w, r, "server", desk.Give)
}

// join admits what comes with a token in place of a login: a wrong one counts as a failed login. role names it in the answer.
func join[Request, Answer any](w http.ResponseWriter, r *http.Request, role string,
	admit func(ctx context.Context, from netip.Addr, req Request) (Answer, error)) error {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return err
	}

	var got Answer
	err = auth.Login(r, func() (string, error) {
		var req Request
		if err := readValue(w, r, maxShortBody, &req); err != nil {
			return "", err
		}
		got, err = admit(r.Context(), from.Addr().Unmap(), req)
		return role, err
	})
	if err != nil {
		return refusedHost(err, role)
	}
	return answer(w, http.StatusOK, got)
}
