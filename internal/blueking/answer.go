package blueking

import (
	"net/http"
	"strconv"

	"github.com/gozzard/gozzard"
)

// answer is the answer to one request.
type answer struct {
	id       string
	status   int
	retry    string // header Retry-After
	gateway  string // header X-Bkapi-Error-Message, if the gateway itself rejects the request
	envelope Envelope
}

func (a *answer) fail(status, code int, text string) {
	a.status = status
	a.envelope = Envelope{Code: code, Message: text}
}

// failGateway makes the answer of a gateway that rejects the request itself. Headers cannot have every language: english
// is the same text in English.
func (a *answer) failGateway(n gatewayNumber, text, english string) {
	a.fail(n.Status, n.Code, text)
	a.envelope.CodeName = n.name
	a.gateway = english
}

// send writes the answer and returns its code. An answer that cannot be encoded becomes an internal error.
func (a *answer) send(w http.ResponseWriter, d Door) int {
	a.envelope.RequestID = a.id
	body, err := a.envelope.Encode()
	if err != nil {
		d.Log.Error("request failed", "request_id", a.id, "err", err)
		a.fail(http.StatusInternalServerError, d.Numbers(gozzard.ErrInternal).Code, Text(nil))
		a.envelope.RequestID = a.id
		if body, err = a.envelope.Encode(); err != nil { // two strings and a number can always be encoded
			panic(err)
		}
	}

	if a.retry != "" {
		w.Header().Set("Retry-After", a.retry)
	}

	if a.gateway != "" {
		w.Header().Set("X-Bkapi-Error-Code", strconv.Itoa(a.envelope.Code))
		w.Header().Set("X-Bkapi-Error-Message", a.gateway)
	}

	write(w, a.status, a.id, body)
	return a.envelope.Code
}
