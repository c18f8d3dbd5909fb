package audit

import (
	"context"
	"errors"

	"github.com/gozzard/gozzard"
)

// The acts of rows about refusals. They are stored, so they cannot change.
const (
	ActFailed   = "login:failed"  // wrong credentials, or none for a change
	ActLocked   = "login:locked"  // too many of those: further ones are not looked at for a while
	ActRight    = "refused:right" // the caller is known and has no right to do it
	ActLimit    = "refused:limit" // a limit or quota rejects it
	ActEnrol    = "enrol:refused" // a host that was not enrolled, or whose certificate was not renewed
	maxAbout    = 200             // bytes of what a row says about a refusal
	othersAbout = "further events of this minute"
)

// noter takes notes. Recorder is the only one outside of tests.
type noter interface{ note(e event) }

type noterKey struct{}

// With adds a recorder to the context of requests.
func With(ctx context.Context, r *Recorder) context.Context {
	return context.WithValue(ctx, noterKey{}, noter(r))
}

// event is a refusal, without its time and request id: equal ones are counted together.
type event struct {
	act    string
	caller gozzard.Caller
	door   string
	source string
	about  string
	id     string // of the request
}

// Note adds a row about something that was refused, or that changed nothing and still matters: the act, and what it was
// about, in the program's own words. Door, source address and request id come from the context. It never blocks and never
// fails: equal notes within a minute are one row with their number. Without a recorder in the context it does nothing.
//
// What changes the record has its row in the transaction of the change; Note is not for that.
func Note(ctx context.Context, caller gozzard.Caller, act, about string) {
	n, ok := ctx.Value(noterKey{}).(noter)
	if !ok {
		return
	}
	o := gozzard.OriginOf(ctx)
	n.note(event{act: act, door: o.Door, source: o.Source, id: o.RequestID, about: about[:min(len(about), maxAbout)],
		caller: gozzard.Caller{App: caller.App, User: caller.User, Asserted: caller.Asserted}})
}

// Refused notes that a request was refused, if its error is one about credentials, rights or limits. The doors call it
// for every error that they answer with.
func Refused(ctx context.Context, caller gozzard.Caller, err error) {
	var e *gozzard.Error
	if !errors.As(err, &e) || e.Refusal.Visit {
		return
	}

	act := e.Refusal.Act
	switch {
	case act != "":
	case e.Kind == gozzard.ErrUnauthenticated, e.Kind == gozzard.ErrCodeRequired:
		act = ActFailed
	case e.Kind == gozzard.ErrUserForbidden, e.Kind == gozzard.ErrAppForbidden, e.Kind == gozzard.ErrOperatorRequired:
		act = ActRight
	default:
		return
	}

	if caller.App == "" {
		caller.App = e.Refusal.App
	}
	about := e.Refusal.About
	if about == "" && caller.App != "" { // the message to a known caller has no text of a stranger
		about = e.Message
	}
	Note(ctx, caller, act, about)
}
