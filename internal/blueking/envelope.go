package blueking

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// The error codes of the BlueKing bus.
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

const (
	// notFoundText is the answer for an unknown path; callers know it.
	notFoundText = "The content does not exist"
	internalText = "internal error, the log has it under this request id"
)

// Number is an error code with its HTTP status, which is used on gateway paths.
type Number struct {
	Code   int
	Status int
}

// NumberOf is the table of error kinds and numbers.
func NumberOf(kind gozzard.ErrorKind) Number {
	switch kind {
	case gozzard.ErrInvalid, gozzard.ErrConflict:
		return Number{CodeArgument, http.StatusBadRequest}
	case gozzard.ErrUnauthenticated, gozzard.ErrCodeRequired:
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

// Envelope is the form of every answer.
type Envelope struct {
	Result    bool   `json:"result"`
	Code      int    `json:"code"`
	Message   string `json:"message"`
	Data      any    `json:"data"`
	RequestID string `json:"request_id"`
	CodeName  string `json:"code_name,omitempty"` // of an error of the gateway itself
}

// Encode is the JSON of an answer.
func (e *Envelope) Encode() ([]byte, error) {
	if data, ok := e.Data.(strictjson.Appender); ok {
		return e.append(nil, data), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the answer is JSON, so names and commands need no HTML escapes
	if err := enc.Encode(e); err != nil {
		return nil, fmt.Errorf("cannot encode answer %s: %w", e.RequestID, err)
	}
	return b.Bytes(), nil
}

// write sends an answer. It ignores errors: the caller has closed the connection.
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

// append writes an answer whose data is a strictjson.Appender.
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
