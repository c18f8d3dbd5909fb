package api

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/approval"
	"github.com/gozzard/gozzard/internal/auth"
)

func requestRoutes() []Route {
	missing := []gozzard.ErrorKind{gozzard.ErrNotFound, gozzard.ErrConflict}
	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/requests", Access: AccessCaller, serve: (*api).getRequests,
			Summary: "List the newest requests for a second person: a caller's own, and all of them for an admin.",
			Answers: answers(http.StatusOK, client.RequestList{}, "The requests, newest first.")},

		{Method: http.MethodPut, Path: "/api/v1/requests/{id}", Access: AccessCaller, serve: (*api).putRequest,
			Summary:    "Approve or reject a request. An approved one is carried out at once, as it was asked for.",
			Parameters: []Parameter{inPath("id", "The number of the request.")},
			Body:       jsonBody(client.RequestDecision{}), Errors: missing,
			Answers: answers(http.StatusOK, client.Request{}, "The request after the decision.")},
	}
}

// getRequests lists the requests that the caller may see.
func (a *api) getRequests(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	out := client.RequestList{Requests: []client.Request{}}
	if a.Requests == nil {
		return answer(w, http.StatusOK, out)
	}
	list, err := a.Requests.List(r.Context(), caller)
	if err != nil {
		return err
	}
	for i := range list {
		out.Requests = append(out.Requests, renderRequest(&list[i]))
	}
	return answer(w, http.StatusOK, out)
}

// putRequest approves or rejects a request.
func (a *api) putRequest(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	var in client.RequestDecision
	if err := readValue(w, r, maxShortBody, &in); err != nil {
		return err
	}
	if in.State != string(approval.Approved) && in.State != string(approval.Rejected) {
		return &gozzard.Error{Kind: gozzard.ErrInvalid,
			Faults: []gozzard.Fault{{Path: "state", Text: `must be "approved" or "rejected"`}}}
	}
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || a.Requests == nil {
		return gozzard.Errorf(gozzard.ErrNotFound, "there is no such request")
	}

	got, err := a.Requests.Decide(r.Context(), caller, auth.Alone(caller), id, in.Digest,
		in.State == string(approval.Approved))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, renderRequest(&got))
}

func renderRequest(r *approval.Request) client.Request {
	out := client.Request{ID: r.ID, Kind: string(r.Kind), What: r.What, Digest: r.Digest, App: r.App, User: r.Person,
		Created: client.At(r.Created), Expires: client.At(r.Expires), State: string(r.State), Decider: r.Decider, Result: r.Result}
	return out
}

// held answers an act that waits for a second person. It reports false for other errors.
func held(w http.ResponseWriter, err error) bool {
	var h *approval.Held
	if !errors.As(err, &h) {
		return false
	}
	got := renderRequest(&h.Request)
	return answer(w, http.StatusAccepted, client.Held{Request: &got, Token: h.Secret}) == nil
}
