package cmdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gozzard/gozzard"
)

// Rejected is an answer of CMDB that is not a success.
type Rejected struct {
	Call    string
	Code    int
	Message string
}

// Error is the error for logs.
func (r *Rejected) Error() string {
	return fmt.Sprintf("CMDB rejected %s with code %d: %.*q", r.Call, r.Code, maxMessage, r.Message)
}

// Unwrap is an error with a kind: the caller can correct it.
func (r *Rejected) Unwrap() error { return gozzard.Errorf(gozzard.ErrInvalid, "%s", r.Error()) }

// CMDBError is the code and the message of CMDB, at most a few hundred bytes of it.
func (r *Rejected) CMDBError() (code int, message string) {
	return r.Code, fmt.Sprintf("%.*s", maxMessage, r.Message)
}

// Do makes one call for a caller and returns the data of the answer. It repeats the call only after a refusal by a rate
// limit: after another error CMDB may have done what it was asked for.
func (c *Client) Do(ctx context.Context, name string, body any) (json.RawMessage, error) {
	request, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("cannot write a call of %s: %w", name, err)
	}

	for refused := 0; ; {
		if err := c.throttle.wait(ctx); err != nil {
			return nil, failedCall(name, err)
		}
		status, answer, err := c.exchange(ctx, name, request)
		if err == nil {
			var e envelope
			if e, err = read(status, answer); err == nil {
				return e.result(name, status)
			}
		}
		var r *refusal
		if ctx.Err() != nil || !errors.As(err, &r) || refused == maxRefusals {
			return nil, failedCall(name, err)
		}
		refused++
		c.throttle.pause(max(r.after, backOff(c.o.Pause, refused)))
	}
}

// result is the data of an answer, or why there is none.
func (e *envelope) result(name string, status int) (json.RawMessage, error) {
	switch {
	case !e.Result || e.Code != 0:
		code := int(e.Code)
		if code == 0 { // CMDB gives none
			code = codeNone
		}
		return nil, &Rejected{Call: name, Code: code, Message: e.Message}
	case status != 200:
		return nil, failedCall(name, fmt.Errorf("answered with status %d", status))
	case len(e.Data) == 0:
		return json.RawMessage("null"), nil
	}
	return e.Data, nil
}

// codeNone is what GSEKit answers if another system gives no code.
const codeNone = 4100002

// failedCall is an error of a call of which nobody knows whether CMDB did it.
func failedCall(name string, err error) error {
	return &gozzard.Error{Kind: gozzard.ErrUnavailable, Cause: err, Message: "cannot ask CMDB: " + name + " failed, and it may have been done: look in CMDB before you repeat it"}
}
