package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// statusOf is the table of HTTP statuses by error kind.
func statusOf(kind gozzard.ErrorKind) int {
	switch kind {
	case gozzard.ErrInvalid:
		return http.StatusBadRequest
	case gozzard.ErrUnauthenticated, gozzard.ErrCodeRequired, gozzard.ErrOperatorRequired:
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

// fail answers with an error.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	a.failStatus(w, r, statusOf(gozzard.KindOf(err)), err)
}

// failStatus answers with an error under a given status. The cause of the error is written to the log only, because
// it may name files and hosts of the server.
func (a *api) failStatus(w http.ResponseWriter, r *http.Request, status int, err error) {
	detail := client.ErrorDetail{Kind: gozzard.KindOf(err), RequestID: gozzard.RequestIDOf(r.Context())}
	var e *gozzard.Error
	if errors.As(err, &e) && e.Kind != gozzard.ErrInternal {
		detail.Message, detail.Faults = strings.ToValidUTF8(e.Message, "\uFFFD"), e.Faults
		if detail.Message == "" && len(e.Faults) > 0 {
			detail.Message = "the request has " + faultCount(len(e.Faults))
		}
	} else {
		detail.Message = "internal error; the server's log has its cause under this request id"
	}

	if status >= http.StatusInternalServerError {
		level := slog.LevelError
		if r.Context().Err() != nil && errors.Is(err, context.Canceled) { // the caller does not wait any more
			level = slog.LevelDebug
		}
		a.Log.Log(r.Context(), level, "request failed", "method", r.Method, "path", r.URL.Path, "request_id",
			detail.RequestID, "err", err)
	}

	words := inLanguageOf(r)
	detail.Message = words(detail.Message)
	if len(detail.Faults) > 0 {
		detail.Faults = faultsIn(words, detail.Faults)
	}
	body, encErr := encode(client.ErrorAnswer{Error: detail})
	if encErr != nil {
		a.Log.ErrorContext(r.Context(), "cannot encode an error", "request_id", detail.RequestID, "err", encErr)
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

func faultCount(n int) string {
	if n == 1 {
		return "one fault"
	}
	return strconv.Itoa(n) + " faults"
}

// answer sends a value as JSON.
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
	if err := newEncoder(&b).Encode(v); err != nil {
		return nil, fmt.Errorf("cannot encode the answer: %w", err)
	}
	return b.Bytes(), nil
}

func newEncoder(b *bytes.Buffer) *json.Encoder {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false) // an answer is JSON and is never shown as HTML, so < and > stay readable
	return enc
}

// send writes an answer in JSON. A failed write means that the caller has closed the connection, so it is ignored.
func send(w http.ResponseWriter, status int, body []byte) {
	sendAs(w, status, jsonType, body)
}

const jsonType = "application/json; charset=utf-8"

func sendAs(w http.ResponseWriter, status int, kind string, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	sendHeader(w, status, kind)
	_, _ = w.Write(body)
}

// sendHeader begins an answer whose length is known already.
func sendHeader(w http.ResponseWriter, status int, kind string) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
}

// done answers a change that has no result.
func done(w http.ResponseWriter, err error) error {
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, struct{}{})
}
