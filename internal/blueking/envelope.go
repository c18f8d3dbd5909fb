package blueking

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
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

// NewRequestID draws the 32 hexadecimal digits by which an answer is found in the log.
func NewRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24: it ends the program instead
	return hex.EncodeToString(b[:])
}

// Text is what a caller is told of an error: message and faults, never the cause, which may name files and hosts of ours.
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
	if data, ok := e.Data.(Appender); ok {
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

// RetryAfter is the header of that name for an error, "" when there is none: whoever asks too much is told when to come back.
func RetryAfter(err error) string {
	var e *gozzard.Error
	if !errors.As(err, &e) || e.Kind != gozzard.ErrRateLimited {
		return ""
	}
	return strconv.Itoa(max(1, int(math.Ceil(e.Retry.Seconds()))))
}
