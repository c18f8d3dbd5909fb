package api

import (
	"net/http"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// The limits of the cloud areas of a relay: how many, and their largest id.
const (
	maxAreas = 256
	maxArea  = 1<<31 - 1
)

func relayRoutes() []Route {
	conflict := []gozzard.ErrorKind{gozzard.ErrConflict}
	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/relays", Access: AccessAdmin, serve: (*api).getRelays,
			Summary: "List the relays of closed networks, and those that may still join.",
			Answers: answers(http.StatusOK, client.RelayList{}, "The relays, by name."), Errors: conflict},

		{Method: http.MethodPost, Path: "/api/v1/relays/token", Access: AccessAdmin, serve: (*api).postRelayToken,
			Summary: "Make a token with which one relay joins.",
			Body:    jsonBody(client.RelayTokenRequest{}), Errors: conflict,
			Answers: answers(http.StatusCreated, client.RelayToken{}, "The token. Only this answer has its secret text.")},

		{Method: http.MethodPost, Path: enrol.RelayJoinPath, Access: AccessHost, serve: (*api).postRelayJoin,
			Summary: "Join as a relay, with a token; the relay gets its certificate.",
			Body:    jsonBody(enrol.RelayJoinRequest{}), Errors: conflict,
			Answers: answers(http.StatusOK, enrol.RelayAnswer{}, "What the relay needs to connect.")},

		{Method: http.MethodDelete, Path: "/api/v1/relays/{relay}", Access: AccessAdmin, serve: (*api).deleteRelay,
			Summary:    "Remove a relay, or a token of one that did not join; hosts behind it lose their connections.",
			Parameters: []Parameter{inPath("relay", "The id of the relay.")},
			Errors:     []gozzard.ErrorKind{gozzard.ErrConflict, gozzard.ErrNotFound},
			Answers:    answers(http.StatusOK, client.RemovedRelay{}, "The relay is removed.")},
	}
}

// relayDesk knows the relays.
func (a *api) relayDesk() (*enrol.RelayDesk, error) {
	if a.Relays == nil {
		return nil, gozzard.Errorf(gozzard.ErrConflict, "this server serves only agents on its own machine: "+
			"start it with --agent-listen on an address of the network, or --enrol")
	}
	return a.Relays, nil
}

// getRelays lists the relays.
func (a *api) getRelays(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	desk, err := a.relayDesk()
	if err != nil {
		return err
	}
	list, err := desk.Relays(r.Context())
	if err != nil {
		return err
	}
	out := client.RelayList{Relays: make([]client.Relay, 0, len(list))}
	for i := range list {
		out.Relays = append(out.Relays, renderRelay(&list[i]))
	}
	return answer(w, http.StatusOK, out)
}

func renderRelay(r *enrol.RelayRecord) client.Relay {
	v := client.Relay{ID: r.ID, Name: r.Name, Areas: r.Areas, State: string(r.State), Created: client.At(r.Created),
		Expires: client.At(r.Expires), CreatedBy: r.CreatedBy, Agents: r.Agents, API: r.API, Server: r.Server, Hosts: r.Hosts,
		Seen: client.At(r.Seen)}
	if !r.Seen.IsZero() {
		v.Silent = int(r.Ago / time.Second)
	}
	if r.State == enrol.RelayActive {
		v.Expires = client.At(r.NotAfter)
	}
	return v
}

// postRelayToken makes a token for one relay. No other answer shows its text.
func (a *api) postRelayToken(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	desk, err := a.relayDesk()
	if err != nil {
		return err
	}
	req := enrol.RelayTokenRequest{TTL: enrol.DefaultTTL}
	err = readFields[client.RelayTokenRequest](w, r, maxShortBody, func(root *strictjson.Value) {
		name, areas := root.Get("name"), root.Get("areas")
		req.Name = name.Str()
		areas.List(maxAreas, func(e *strictjson.Value) { req.Areas = append(req.Areas, int(e.Int(0, maxArea))) })
		v := root.Get("ttl")
		text := v.OptStr()
		if text == "" {
			return
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			v.Fault("must be a duration such as 1h30m")
		}
		req.TTL = d
	})
	if err != nil {
		return err
	}

	token, rec, err := desk.CreateToken(r.Context(), caller, req)
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, client.RelayToken{ID: token.ID, Token: token.String(), Expires: client.At(rec.Expires)})
}

// postRelayJoin gives a relay its certificate. The token in the body is its credential, so a wrong one counts as a failed
// login.
func (a *api) postRelayJoin(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	desk, err := a.relayDesk()
	if err != nil {
		return err
	}
	return join(w, r, "relay", desk.Join)
}

// deleteRelay removes a relay.
func (a *api) deleteRelay(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	desk, err := a.relayDesk()
	if err != nil {
		return err
	}
	id := r.PathValue("relay")
	if err := desk.Remove(r.Context(), caller, id); err != nil {
		return err
	}
	return answer(w, http.StatusOK, client.RemovedRelay{ID: id, State: "removed"})
}
