package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Request is an act that waits for a second person, or waited.
type Request struct {
	ID      int64  `json:"id"`
	Kind    string `json:"kind"` // admin-grant, revoked-host or root-command
	What    string `json:"what"`
	Digest  string `json:"digest"` // of everything that is approved
	App     string `json:"app"`
	User    string `json:"user"` // that asked
	Created Time   `json:"created"`
	Expires Time   `json:"expires"`
	State   string `json:"state"`             // waiting, approved, rejected or expired
	Decider string `json:"decider,omitempty"` // the user that approved or rejected it
	Result  string `json:"result,omitempty"`  // what came of an approved one
}

// RequestList is the newest requests, newest first.
type RequestList struct {
	Requests []Request `json:"requests"`
}

// RequestDecision is the body of PUT /api/v1/requests/{id}. An approval repeats the digest.
type RequestDecision struct {
	State  string `json:"state"` // approved or rejected
	Digest string `json:"digest,omitempty"`
}

// Held is the answer, with the status 202, to an act that waits for a second person.
type Held struct {
	Request *Request `json:"request"`
	Token   string   `json:"token,omitempty"` // an enrolment token, valid after the approval
}

// Error says how another person approves it.
func (h *Held) Error() string {
	return fmt.Sprintf("this waits as request %d for another person until %s: gozzard request approve %d %s", h.Request.ID,
		h.Request.Expires.Format(time.RFC3339), h.Request.ID, h.Request.Digest)
}

// heldBy reports whether an answer says that the act waits.
func heldBy(answer []byte) *Held {
	var h Held
	if json.Unmarshal(answer, &h) != nil || h.Request == nil || h.Request.ID == 0 {
		return nil
	}
	return &h
}

// Requests lists the newest requests.
func (c *Client) Requests(ctx context.Context) ([]Request, error) {
	var out RequestList
	err := c.get(ctx, "/api/v1/requests", nil, &out)
	return out.Requests, err
}

// DecideRequest makes a request "approved" or "rejected".
func (c *Client) DecideRequest(ctx context.Context, id int64, state, digest string) (out Request, err error) {
	err = c.write(ctx, http.MethodPut, "/api/v1/requests/"+strconv.FormatInt(id, 10), RequestDecision{state, digest}, &out)
	return out, err
}
