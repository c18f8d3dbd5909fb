package blueking

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// The numbers of BlueKing's bus.
const (
	CodeOK               = 0
	CodeGeneral          = 1306000
	CodeBackend          = 1306201
	CodeOperatorRequired = 1306401
	CodeUserForbidden    = 1306402
	CodeAppForbidden     = 1306403
	CodeNotFound         = 1306404
	CodeArgument         = 1306406
	CodeRateLimited      = 1306429
)

// notFoundText is what callers know for a path that is not served.
const notFoundText = "The content does not exist"

// Number is what an error is called in answers: the bus's code, and the HTTP status where the path carries one.
type Number struct {
	Code   int
	Status int
}

// NumberOf is the table of error kinds.
func NumberOf(kind gozzard.ErrorKind) Number {
	switch kind {
	case gozzard.ErrInvalid, gozzard.ErrConflict:
		return Number{CodeArgument, http.StatusBadRequest}
	case gozzard.ErrUnauthenticated:
		return Number{CodeGeneral, http.StatusUnauthorized}
	case gozzard.ErrOperatorRequired:
		return Number{CodeOperatorRequired, http.StatusUnauthorized}
	case gozzard.ErrUserForbidden:
		return Number{CodeUserForbidden, http.StatusForbidden}
	case gozzard.ErrAppForbidden:
		return Number{CodeAppForbidden, http.StatusForbidden}
	case gozzard.ErrNotFound:
		return Number{CodeNotFound, http.StatusNotFound}
	case gozzard.ErrRateLimited:
		return Number{CodeRateLimited, http.StatusTooManyRequests}
	case gozzard.ErrStorageFull:
		return Number{CodeGeneral, http.StatusInternalServerError}
	}
	return Number{CodeBackend, http.StatusInternalServerError}
}

// Envelope is every answer.
type Envelope struct {
	Result    bool   `json:"result"`
	Code      int    `json:"code"`
	Message   string `json:"message"`
	Data      any    `json:"data"`
	RequestID string `json:"request_id"`
}

// Text is what a caller is told of an error: message and faults, never the cause, which may name files and hosts of
// ours.
func Text(err error) string {
	var e *gozzard.Error
	if !errors.As(err, &e) || e.Kind == gozzard.ErrInternal {
		return "internal error, the log has it under this request id"
	}
	told := gozzard.Error{Message: e.Message, Faults: e.Faults}
	if s := strings.ToValidUTF8(told.Error(), "\uFFFD"); s != "" {
		return s
	}
	return string(e.Kind)
}

// Encode gives the bytes of an answer.
func (e *Envelope) Encode() ([]byte, error) {
	if data, ok := e.Data.(strictjson.Appender); ok {
		return e.append(nil, data), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // names and commands are told as they are; the answer is JSON and is not shown as HTML
	if err := enc.Encode(e); err != nil {
		return nil, fmt.Errorf("cannot encode answer %s: %w", e.RequestID, err)
	}
	return b.Bytes(), nil
}

// write sends encoded bytes. An error here means that the caller has gone, which nobody can be told.
func write(w http.ResponseWriter, status int, requestID string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Bkapi-Request-Id", requestID)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// append writes an answer whose data writes itself.
func (e *Envelope) append(b []byte, data strictjson.Appender) []byte {
	b = append(b, `{"result":`...)
	b = strconv.AppendBool(b, e.Result)
	b = append(b, `,"code":`...)
	b = strconv.AppendInt(b, int64(e.Code), 10)
	b = append(b, `,"message":`...)
	b = strictjson.AppendString(b, e.Message)
	b = append(b, `,"data":`...)
	b = data.AppendJSON(b)
	b = append(b, `,"request_id":`...)
	b = strictjson.AppendString(b, e.RequestID)
	return append(b, '}', '\n')
}
