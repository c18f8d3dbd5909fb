package gozzard

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrorKind says what a caller can do about an error. Each door maps the kinds to its numbers in one table.
type ErrorKind string

// The kinds.
const (
	ErrInvalid          ErrorKind = "invalid"           // the request is wrong; correct it
	ErrUnauthenticated  ErrorKind = "unauthenticated"   // credentials missing or wrong
	ErrCodeRequired     ErrorKind = "code_required"     // the password is right, and a code of the second factor is missing
	ErrOperatorRequired ErrorKind = "operator_required" // the app is known, but the request names no user
	ErrUserForbidden    ErrorKind = "user_forbidden"    // the user has no right to do this
	ErrAppForbidden     ErrorKind = "app_forbidden"     // the app has no right to do this
	ErrNotFound         ErrorKind = "not_found"
	ErrConflict         ErrorKind = "conflict"
	ErrRateLimited      ErrorKind = "rate_limited" // try again after Error.Retry
	ErrStorageFull      ErrorKind = "storage_full" // the record has no space left; nothing was changed
	ErrUnavailable      ErrorKind = "unavailable"  // try again later
	ErrInternal         ErrorKind = "internal"     // a mistake of the program; the log has it
)

// Error is an error that a caller can act on. Message and Faults are for the caller, Cause is for the log.
type Error struct {
	Kind    ErrorKind
	Message string
	Faults  []Fault // everything that is wrong with the request
	Cause   error
	Retry   time.Duration // of ErrRateLimited: how long to wait
	Refusal Refusal       // for the audit; callers do not see it
}

// Refusal is what the audit says about a request that was refused. All may be empty: the kind of the error says enough
// then.
type Refusal struct {
	Act   string // such as "login:locked"
	About string // such as the app whose secret was wrong; never a text that a stranger wrote
	App   string // the app that sent the request, if its secret was right and only its user is rejected
	Visit bool   // the request only wanted to read and had no credentials: the audit says nothing about it
}

// Refused adds to an error what the audit says about it. Errors of other types stay as they are.
func Refused(err error, r Refusal) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	with := *e
	with.Refusal = r
	return &with
}

// Fault is one thing wrong with a request.
type Fault struct {
	Path string `json:"path"` // such as hosts[3].ip
	Text string `json:"text"`
}

// String is the fault with its place.
func (f Fault) String() string {
	if f.Path == "" {
		return f.Text
	}
	return f.Path + ": " + f.Text
}

// Error is the message with all faults and the cause, for logs.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for i, f := range e.Faults {
		if i > 0 || e.Message != "" {
			b.WriteString("; ")
		}
		b.WriteString(f.String())
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	return b.String()
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an Error of a kind with a message.
func Errorf(kind ErrorKind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// KindOf is the kind of an error, ErrInternal when it has none.
func KindOf(err error) ErrorKind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ErrInternal
}

// RetryAfter is the value of the HTTP header Retry-After for an error, in seconds; "" means no header.
func RetryAfter(err error) string {
	var e *Error
	if !errors.As(err, &e) || e.Kind != ErrRateLimited {
		return ""
	}
	return strconv.Itoa(max(1, int(math.Ceil(e.Retry.Seconds()))))
}

// NewRequestID makes the random id that connects an answer with its log lines: 32 hexadecimal digits.
func NewRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24: it ends the program instead
	return hex.EncodeToString(b[:])
}
