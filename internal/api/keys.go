package api

import (
	"context"
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// Keys are the keys of the server. online reports whether an agent is connected.
type Keys interface {
	Keys(ctx context.Context, online func(gozzard.AgentID) bool) (client.Keys, error)
	RotateSigning(ctx context.Context, caller gozzard.Caller) (client.RotatedKey, error)
	RotateAuthority(ctx context.Context, caller gozzard.Caller, online func(gozzard.AgentID) bool) (
		client.AuthorityMove, error)
	FinishAuthority(ctx context.Context, caller gozzard.Caller, confirm int, online func(gozzard.AgentID) bool) (
		client.AuthorityMove, error)
}

func keyRoutes() []Route {
	conflict := []gozzard.ErrorKind{gozzard.ErrConflict, gozzard.ErrNotFound}
	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/keys", Access: AccessAdmin, serve: (*api).getKeys,
			Summary: "List the keys of the server, and how far hosts are on their way to the next authority.",
			Answers: answers(http.StatusOK, client.Keys{}, "The public parts of the keys."), Errors: conflict},

		{Method: http.MethodPost, Path: "/api/v1/keys/signing", Access: AccessAdmin, serve: (*api).postSigningKey,
			Summary: "Replace the key that signs commands by a new one.", Errors: conflict,
			Answers: answers(http.StatusCreated, client.RotatedKey{}, "The new key, which the server uses from now on.")},

		{Method: http.MethodPost, Path: "/api/v1/keys/authority", Access: AccessAdmin, serve: (*api).postAuthority,
			Summary: "Make the next authority; hosts move to it when they renew their certificates.", Errors: conflict,
			Answers: answers(http.StatusCreated, client.AuthorityMove{}, "The hosts on their way.")},

		{Method: http.MethodPost, Path: "/api/v1/keys/authority/finish", Access: AccessAdmin,
			serve:   (*api).postAuthorityFinish,
			Summary: "Put the next authority in the place of the present one, whose key is deleted.",
			Body:    jsonBody(client.AuthorityFinish{}), Errors: conflict,
			Answers: answers(http.StatusOK, client.AuthorityMove{}, "The hosts that moved and those that are cut off.")},
	}
}

// keys are the keys of the server.
func (a *api) keys() (Keys, error) {
	if a.Keys == nil {
		return nil, gozzard.Errorf(gozzard.ErrNotFound, "this server has no keys to rotate")
	}
	return a.Keys, nil
}

// online reports which agents are connected now.
func (a *api) online(caller gozzard.Caller) func(gozzard.AgentID) bool {
	online := map[gozzard.AgentID]bool{}
	for _, h := range a.Plane.Hosts(caller) {
		online[h.Info.Agent] = h.Online
	}
	return func(agent gozzard.AgentID) bool { return online[agent] }
}

// getKeys lists the keys of the server.
func (a *api) getKeys(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	keys, err := a.keys()
	if err != nil {
		return err
	}
	out, err := keys.Keys(r.Context(), a.online(caller))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, out)
}

// postSigningKey rotates the signing key.
func (a *api) postSigningKey(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	keys, err := a.keys()
	if err != nil {
		return err
	}
	out, err := keys.RotateSigning(r.Context(), caller)
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, out)
}

// postAuthority begins the rotation of the authority.
func (a *api) postAuthority(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	keys, err := a.keys()
	if err != nil {
		return err
	}
	out, err := keys.RotateAuthority(r.Context(), caller, a.online(caller))
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, out)
}

// postAuthorityFinish ends the rotation of the authority.
func (a *api) postAuthorityFinish(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	keys, err := a.keys()
	if err != nil {
		return err
	}
	var in client.AuthorityFinish
	if err := readValue(w, r, maxShortBody, &in); err != nil {
		return err
	}
	out, err := keys.FinishAuthority(r.Context(), caller, in.Confirm, a.online(caller))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, out)
}
