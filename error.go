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

// ErrorKind is what a person or program can do about an error. Each door maps kinds to its numbers in one table.
type ErrorKind string

// The kinds.
const (
	ErrInvalid          ErrorKind = "invalid"           // the request is wrong; repeat it corrected
	ErrUnauthenticated  ErrorKind = "unauthenticated"   // credentials missing or wrong
	ErrOperatorRequired ErrorKind = "operator_required" // the app is known, no user was named
	ErrUserForbidden    ErrorKind = "user_forbidden"
	ErrAppForbidden     ErrorKind = "app_forbidden"
	ErrNotFound         ErrorKind = "not_found"
	ErrConflict         ErrorKind = "conflict"
	ErrRateLimited      ErrorKind = "rate_limited"
	ErrStorageFull      ErrorKind = "storage_full" // the record has no room; nothing was changed
	ErrUnavailable      ErrorKind = "unavailable"  // try again later
	ErrInternal         ErrorKind = "internal"
)

// Error is an error that people act on. Causes are for logs; Message and Faults are for callers.
type Error struct {
	Kind    ErrorKind
	Message string
	Faults  []Fault // all faults of one request, with their places
	Cause   error
	Retry   time.Duration // of ErrRateLimited: when it is worth asking again
}

// Fault is one thing wrong with a request.
type Fault struct {
	Path string `json:"path"` // such as hosts[3].ip
	Text string `json:"text"`
}

func (f Fault) String() string {
	if f.Path == "" {
		return f.Text
	}
	return f.Path + ": " + f.Text
}

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

func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an Error of a kind.
func Errorf(kind ErrorKind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// KindOf finds the kind of an error, ErrInternal when it has none.
func KindOf(err error) ErrorKind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ErrInternal
}

// RetryAfter is the value of the HTTP header Retry-After for an error, in seconds. It is "" for errors without one.
func RetryAfter(err error) string {
	var e *Error
	if !errors.As(err, &e) || e.Kind != ErrRateLimited {
		return ""
	}
	return strconv.Itoa(max(1, int(math.Ceil(e.Retry.Seconds()))))
}

// NewRequestID draws the 32 hexadecimal digits by which an answer is found in the log.
func NewRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24: it ends the program instead
	return hex.EncodeToString(b[:])
}
