package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// statusOf is the table of error kinds.
func statusOf(kind gozzard.ErrorKind) int {
	switch kind {
	case gozzard.ErrInvalid:
		return http.StatusBadRequest
	case gozzard.ErrUnauthenticated, gozzard.ErrOperatorRequired:
		return http.StatusUnauthorized
	case gozzard.ErrUserForbidden, gozzard.ErrAppForbidden:
		return http.StatusForbidden
	case gozzard.ErrNotFound:
		return http.StatusNotFound
	case gozzard.ErrConflict:
		return http.StatusConflict
	case gozzard.ErrRateLimited:
		return http.StatusTooManyRequests
	case gozzard.ErrStorageFull:
		return http.StatusInsufficientStorage
	case gozzard.ErrUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

type errorBody struct {
	Error errorText `json:"error"`
}

type errorText struct {
	Kind      gozzard.ErrorKind `json:"kind"`
	Message   string            `json:"message"`
	Faults    []gozzard.Fault   `json:"faults,omitempty"`
	RequestID string            `json:"request_id"`
}

// fail answers with an error.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	a.failStatus(w, r, statusOf(gozzard.KindOf(err)), err)
}

// failStatus answers with an error under a given status. The cause goes to the log only: it may name files and
// hosts of ours.
func (a *api) failStatus(w http.ResponseWriter, r *http.Request, status int, err error) {
	text := errorText{Kind: gozzard.KindOf(err), RequestID: gozzard.NewRequestID()}
	var e *gozzard.Error
	if errors.As(err, &e) && e.Kind != gozzard.ErrInternal {
		text.Message = strings.ToValidUTF8(e.Message, "\uFFFD")
		text.Faults = e.Faults
		if text.Message == "" && len(e.Faults) > 0 {
			text.Message = "the request is wrong in " + places(len(e.Faults))
		}
	} else {
		text.Message = "internal error, the log has it under this request id"
	}

	if status >= http.StatusInternalServerError {
		a.Log.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "request_id",
			text.RequestID, "err", err)
	}

	body, encErr := encode(errorBody{text})
	if encErr != nil {
		a.Log.ErrorContext(r.Context(), "answer lost", "request_id", text.RequestID, "err", encErr)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}

	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", a.Challenge)
	}
	if retry := gozzard.RetryAfter(err); retry != "" {
		w.Header().Set("Retry-After", retry)
	}

	send(w, status, body)
}

func places(n int) string {
	if n == 1 {
		return "one place"
	}
	return strconv.Itoa(n) + " places"
}

// answer sends a value.
func answer(w http.ResponseWriter, status int, v any) error {
	body, err := encode(v)
	if err != nil {
		return err
	}
	send(w, status, body)
	return nil
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // names and commands are told as they are; the answer is JSON and is not shown as HTML
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot encode the answer: %w", err)
	}
	return b.Bytes(), nil
}

// send writes an answer. An error here means that the caller has gone, which nobody can be told.
func send(w http.ResponseWriter, status int, body []byte) {
	sendAs(w, status, "application/json; charset=utf-8", body)
}

func sendAs(w http.ResponseWriter, status int, kind string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
