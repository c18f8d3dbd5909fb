package approval

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
)

// Kind is what a request asks for.
type Kind string

// The kinds. They are stored, so they cannot change.
const (
	AdminGrant  Kind = "admin-grant"  // a grant of the role admin
	RevokedHost Kind = "revoked-host" // a token that brings back a revoked host
	RootCommand Kind = "root-command" // commands of root on many hosts
)

// State is the state of a request.
type State string

// The states. Only the first one can change. Expired is not stored: it follows from the time.
const (
	Waiting  State = "waiting"
	Approved State = "approved"
	Rejected State = "rejected"
	Expired  State = "expired"
)

// Request is an act that waits for a second person, or waited.
type Request struct {
	ID      int64
	Kind    Kind
	What    string // the act in words
	Act     []byte // the act, for the part of the program that carries it out
	Digest  string // of all fields above and of those about the asker and the times, but the id
	App     string // the app of the asker
	Person  string // the user that asks
	Created time.Time
	Expires time.Time

	State   State
	Decided time.Time
	Decider string // the user that approved or rejected it
	Result  string // of an approved act: "done" and what came of it, or why it failed; "": it is under way
}

// digest covers everything that a second person approves.
func (r *Request) digest() string {
	h := sha256.New()
	text := func(b string) {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b)))) // writing to a hash never fails
		_, _ = h.Write([]byte(b))
	}
	text("gozzard request 1")
	text(string(r.Kind))
	text(r.What)
	text(string(r.Act))
	text(r.App)
	text(r.Person)
	text(fmt.Sprint(r.Created.UnixMilli(), r.Expires.UnixMilli()))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// At is the request as it is at a time: one that waited too long has expired.
func (r Request) At(now time.Time) Request {
	if r.State == Waiting && !now.Before(r.Expires) {
		r.State = Expired
	}
	return r
}

// Held is the error of an act that waits for a second person.
type Held struct {
	Request Request
	Secret  string // what the asker gets now, such as a token, which has no effect before the approval
}

func (h *Held) Error() string {
	return fmt.Sprintf("this waits as request %d for another person: gozzard request approve %d %s", h.Request.ID,
		h.Request.ID, h.Request.Digest)
}

// Unwrap gives the error a kind, for callers that know nothing of requests.
func (h *Held) Unwrap() error { return &gozzard.Error{Kind: gozzard.ErrConflict, Message: h.Error()} }

// AuditEntry is one row of the audit.
type AuditEntry struct {
	At     time.Time
	Caller gozzard.Caller
	What   string
}

// Store stores requests. A change is durable when its call returns. The audit row is written in the same transaction.
type Store interface {
	// AddRequest stores a request and sets its id. It returns ErrConflict if the asker has most waiting ones at now.
	AddRequest(ctx context.Context, r *Request, most int, now time.Time, audit func(id int64) AuditEntry) error

	// Requests lists the newest requests, newest first.
	Requests(ctx context.Context, limit int) ([]Request, error)

	// Request reads one request; ErrNotFound if there is none.
	Request(ctx context.Context, id int64) (Request, error)

	// DecideRequest stores state and decider of a request that waits. It returns ErrConflict for any other.
	DecideRequest(ctx context.Context, r *Request, audit AuditEntry) error

	// RequestResult stores what came of an approved request.
	RequestResult(ctx context.Context, id int64, result string) error
}
