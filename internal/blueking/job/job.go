package job

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

// The error codes of Job. All others are those of the bus.
const (
	codeGSE       = 1210001 // a service behind Job failed
	codeViolation = 1241002 // the request breaks one of Job's rules
)

// Plane is the part of the control plane that this door uses.
type Plane interface {
	Operate(ctx context.Context, op *gozzard.Operation) (gozzard.Task, error)
	Results(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID) (record.TaskResults, error)
	Resolve(caller gozzard.Caller, t gozzard.Target) (fleet.Host, bool)
}

// Options are the parts and settings of the door.
type Options struct {
	Plane    Plane
	Auth     *auth.Directory
	Log      *slog.Logger
	Observe  func(route string, code int, d time.Duration) // called after every request; nil means not at all
	MaxHosts int                                           // in one request; 100,000
}

type server struct {
	plane    Plane
	maxHosts int
}

// New makes the door. Requests must reach it with their path as sent: see blueking.Handler.Owns.
func New(o Options) *blueking.Handler {
	if o.MaxHosts == 0 {
		o.MaxHosts = record.MaxTargets
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &server{plane: o.Plane, maxHosts: o.MaxHosts}
	return blueking.New(blueking.Door{
		Prefixes: prefixes(), Routes: s.routes(), Numbers: numberOf, DescribeError: describeError, Quiet: true,
		Auth: o.Auth, Log: o.Log, Observe: o.Observe,
	})
}

// numberOf is the table of error kinds: that of the bus, except for failures behind Job.
func numberOf(kind gozzard.ErrorKind) blueking.Number {
	switch kind {
	case gozzard.ErrInternal, gozzard.ErrUnavailable, gozzard.ErrStorageFull:
		return blueking.Number{Code: codeGSE, Status: http.StatusInternalServerError}
	}
	return blueking.NumberOf(kind)
}

// describeError is the number and the text of an error.
func describeError(w blueking.Words, err error) (blueking.Number, string) {
	var v *violation
	if errors.As(err, &v) {
		return blueking.Number{Code: codeViolation, Status: http.StatusBadRequest}, w.Error(err)
	}
	return numberOf(gozzard.KindOf(err)), w.Error(err)
}

// violation is an error of a well-formed request that breaks one of Job's rules.
type violation struct{ err error }

func (v *violation) Error() string { return v.err.Error() }

func (v *violation) Unwrap() error { return v.err }
