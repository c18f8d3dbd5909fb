package client

import (
	"encoding/json"
	"net/http"

	"github.com/gozzard/gozzard"
)

// ErrorAnswer is the answer to every request that fails.
type ErrorAnswer struct {
	Error ErrorDetail `json:"error"`
}

// ErrorDetail says what is wrong with a request, or what failed.
type ErrorDetail struct {
	Kind      gozzard.ErrorKind `json:"kind"`
	Message   string            `json:"message"`
	Faults    []gozzard.Fault   `json:"faults,omitempty"` // every fault of the request, with its place
	RequestID string            `json:"request_id"`       // the server's log has it
}

// errorOf makes the error of an answer. An answer that is not of this API, such as a page of a proxy, becomes an
// error by its status.
func errorOf(status int, answer []byte) error {
	var body ErrorAnswer
	if err := json.Unmarshal(answer, &body); err == nil && body.Error.Kind != "" {
		e := &gozzard.Error{Kind: body.Error.Kind, Message: body.Error.Message, Faults: body.Error.Faults}
		if e.Kind == gozzard.ErrInternal && body.Error.RequestID != "" {
			e.Message += " " + body.Error.RequestID
		}
		return e
	}

	kind := gozzard.ErrInternal
	switch status {
	case http.StatusUnauthorized:
		kind = gozzard.ErrUnauthenticated
	case http.StatusForbidden:
		kind = gozzard.ErrUserForbidden
	case http.StatusNotFound:
		kind = gozzard.ErrNotFound
	case http.StatusTooManyRequests:
		kind = gozzard.ErrRateLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		kind = gozzard.ErrUnavailable
	}

	return gozzard.Errorf(kind, "the server answers %d %s", status, http.StatusText(status))
}
